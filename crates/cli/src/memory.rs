//! How much memory the process took.

/// The most memory that the process has had resident so far, in bytes; `None` where the system does not tell.
///
/// Linux keeps it as `VmHWM`, in kibibytes.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_in_kibibytes() {
        let status =
            "Name:\tepisode-pool\nVmPeak:\t  900000 kB\nVmHWM:\t   73404 kB\nVmRSS:\t   70000 kB\n";
        assert_eq!(parse(status), Some(73_404 * 1024));
        assert_eq!(parse("Name:\tepisode-pool\n"), None);
        assert_eq!(parse("VmHWM:\tmuch kB\n"), None);
    }
}
