//! Where a measurement was made, and with what.

use std::num::NonZero;
use std::time::{SystemTime, UNIX_EPOCH};

use episode_pool::decode;
use serde::Serialize;

/// The machine.
#[derive(Debug, Serialize)]
pub(crate) struct Host {
    /// As it calls itself; `unknown` where it does not say.
    pub(crate) name: String,
    /// The cores that the process may use.
    cores: usize,
    /// The processor, where the system tells it.
    cpu: Option<String>,
    memory_bytes: Option<u64>,
}

impl Host {
    pub(crate) fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let name = read("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
        Self {
            name: name.unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, NonZero::get),
            cpu: read("/proc/cpuinfo").and_then(|text| value_of(&text, "model name")),
            memory_bytes: read("/proc/meminfo").and_then(|text| {
                let kibibytes = value_of(&text, "MemTotal")?;
                let kibibytes: u64 = kibibytes.strip_suffix("kB")?.trim_end().parse().ok()?;
                kibibytes.checked_mul(1024)
            }),
        }
    }
}

/// What a file of the system says in the first line that begins with `name`, behind the colon.
fn value_of(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim().to_owned())
}

/// The versions of what decodes and loads.
#[derive(Debug, Serialize)]
pub(crate) struct Versions {
    pub(crate) episode_pool: &'static str,
    pub(crate) ffmpeg: &'static str,
}

impl Versions {
    pub(crate) fn these() -> Self {
        Self {
            episode_pool: env!("CARGO_PKG_VERSION"),
            ffmpeg: decode::ffmpeg_version(),
        }
    }
}

/// A moment as ISO 8601 writes it, in UTC: `2026-12-04T17:40:00Z`. Moments before 1970 become its start.
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March end with the leap day; 400 of them always have 146,097 days.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_told_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_000_000, "2026-11-30T00:53:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn values_stand_behind_a_colon() {
        let text = "processor\t: 0\nmodel name\t: A CPU: fast\nMemTotal:   12 kB\n";
        assert_eq!(value_of(text, "model name").as_deref(), Some("A CPU: fast"));
        assert_eq!(value_of(text, "MemTotal").as_deref(), Some("12 kB"));
        assert_eq!(value_of(text, "Swap"), None);
    }
}
