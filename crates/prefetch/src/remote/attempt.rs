//! Asking again: which failures pass, and how long to wait.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;
use opendal::ErrorKind;

use super::redact::redact;
use crate::SourceOptions;

/// The longest pause between two attempts, unless the server asks for more.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The longest pause that a server may ask for: whoever wants more is not to be waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// What the transport saw of the last request of an attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The status of the answer.
    pub(super) status: Option<u16>,
    /// How long the server asks to be left alone.
    pub(super) retry_after: Option<Duration>,
    /// Whether the answer came from another place than the one asked.
    pub(super) redirected: bool,
    /// A whole file came where a part of it was asked for.
    pub(super) ignored_range: bool,
}

tokio::task_local! {
    /// What the transport notes for the attempt that it works for.
    static SEEN: Arc<Mutex<Seen>>;
}

/// Notes something about the attempt under way, if there is one.
pub(super) fn note(change: impl FnOnce(&mut Seen)) {
    // Outside any attempt nobody asks.
    let _ = SEEN.try_with(|seen| change(&mut lock(seen)));
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why something could not be had, after all attempts.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) attempts: u32,
    pub(super) seen: Seen,
    /// Without anything secret.
    pub(super) reason: String,
    pub(super) kind: io::ErrorKind,
}

/// Does `request` until it succeeds, fails for good, or was tried often enough. An attempt that takes longer than `limit` has failed.
///
/// `on_retry` is called before each repetition.
pub(super) async fn with_retries<T, F, Fut>(
    options: &SourceOptions,
    limit: Duration,
    on_retry: impl Fn(),
    request: F,
) -> Result<T, Failure>
where
    F: Fn() -> Fut,
    Fut: Future<Output = opendal::Result<T>>,
{
    let mut attempts = 0;
    loop {
        attempts += 1;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let attempt = SEEN.scope(Arc::clone(&seen), tokio::time::timeout(limit, request()));
        let outcome = attempt.await;
        let seen = lock(&seen).clone();
        let (reason, kind, passing) = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => judge(&error, &seen),
            Err(_) => (
                format!("it took longer than {} s", limit.as_secs()),
                io::ErrorKind::TimedOut,
                true,
            ),
        };
        let too_long = seen.retry_after.filter(|&wait| wait > MAX_RETRY_AFTER);
        if !passing || attempts >= options.max_attempts.max(1) || too_long.is_some() {
            let reason = match too_long {
                Some(wait) => format!("{reason}, and to be asked again in {} s", wait.as_secs()),
                None => reason,
            };
            return Err(Failure {
                attempts,
                seen,
                reason,
                kind,
            });
        }
        let pause = seen
            .retry_after
            .unwrap_or_else(|| backoff(options.backoff, attempts));
        tracing::debug!(
            attempts,
            reason,
            pause_s = pause.as_secs_f64(),
            "asking again"
        );
        on_retry();
        tokio::time::sleep(pause).await;
    }
}

/// What an error says, what it is, and whether it may pass.
fn judge(error: &opendal::Error, seen: &Seen) -> (String, io::ErrorKind, bool) {
    if seen.ignored_range {
        let reason = "the server sends whole files where a part of one is asked for".to_owned();
        return (reason, io::ErrorKind::Unsupported, false);
    }
    match seen.status {
        Some(status) if status >= 400 => {
            let name = http::StatusCode::from_u16(status)
                .ok()
                .and_then(|status| status.canonical_reason());
            let reason = format!("the server says {status} {}", name.unwrap_or_default());
            let passing = matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
                // A link that was followed may have expired; asking again leads to another.
                || (seen.redirected && matches!(status, 401 | 403));
            let kind = match status {
                401 | 403 => io::ErrorKind::PermissionDenied,
                404 | 410 => io::ErrorKind::NotFound,
                _ => io::ErrorKind::Other,
            };
            (reason.trim_end().to_owned(), kind, passing)
        }
        _ => {
            let (kind, passing) = match error.kind() {
                ErrorKind::NotFound => (io::ErrorKind::NotFound, false),
                ErrorKind::PermissionDenied => (io::ErrorKind::PermissionDenied, false),
                ErrorKind::RateLimited => (io::ErrorKind::Other, true),
                // A good answer that then comes in part only.
                ErrorKind::Unexpected => {
                    let is_part = seen.status.is_some_and(|status| status < 300);
                    (io::ErrorKind::Other, is_part || error.is_temporary())
                }
                _ => (io::ErrorKind::Other, false),
            };
            (redact(&causes(error)), kind, passing)
        }
    }
}

/// An error's message and those of its causes.
fn causes(error: &opendal::Error) -> String {
    let mut text = error.message().to_owned();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A pause before attempt `attempts + 1`: between half of `first * 2^(attempts - 1)` and all of it.
fn backoff(first: Duration, attempts: u32) -> Duration {
    let longest = first
        .saturating_mul(1 << attempts.saturating_sub(1).min(16))
        .min(MAX_BACKOFF);
    let chance = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
    longest.mul_f64(0.5 + 0.5 * chance)
}

/// How long a server asks to be left alone: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let first = Duration::from_millis(100);
        for attempts in 1..40 {
            let longest = (first * 2_u32.pow(attempts.min(20) - 1)).min(MAX_BACKOFF);
            let pause = backoff(first, attempts);
            assert!(
                pause <= longest && pause >= longest / 2,
                "{attempts}: {pause:?}"
            );
        }
    }

    #[test]
    fn a_server_says_when_to_come_back_in_seconds_or_by_a_date() {
        let header = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            headers
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(retry_after(&header("7"), now), Some(Duration::from_secs(7)));
        let date = header("Sun, 06 Nov 1994 08:49:47 GMT");
        assert_eq!(retry_after(&date, now), Some(Duration::from_secs(10)));
        assert_eq!(retry_after(&header("soon"), now), None);
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
