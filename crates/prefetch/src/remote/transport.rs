//! What all requests pass through: the limit on requests at once, the counters, and the notes about each attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use futures_util::StreamExt;
use http::header::RANGE;
use http::{HeaderValue, Request, Response, StatusCode};
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpRedirect, HttpTransport};
use opendal_http_transport_reqwest::ReqwestTransport;
use tokio::sync::Semaphore;

use super::attempt::{note, retry_after};
use crate::{FetchStats, SourceOptions};

/// The most bytes of an answer that is no part of a file: a page of a listing, what the Hub says of a repository.
const MAX_BODY_BYTES: u64 = 64 << 20;

/// What was asked for so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Counters {
    pub(super) fn stats(&self) -> FetchStats {
        FetchStats {
            requests: self.requests.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            bytes_fetched: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// Sends the requests of a source.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    inner: ReqwestTransport,
    /// One for each request that may be under way.
    permits: Arc<Semaphore>,
    counters: Arc<Counters>,
}

impl Transport {
    pub(super) fn new(options: &SourceOptions, counters: Arc<Counters>) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(options.timeout)
            .read_timeout(options.timeout)
            .build()?;
        Ok(Self {
            inner: ReqwestTransport::new(client),
            permits: Arc::new(Semaphore::new(options.requests_at_once())),
            counters,
        })
    }
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|closed| {
            Error::new(ErrorKind::Unexpected, "no more requests are made").set_source(closed)
        })?;
        let wants_part = request.headers().contains_key(RANGE);
        let part_len = request.headers().get(RANGE).and_then(len_of_range);
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let response = self.inner.fetch(request).await?;
        note(|seen| {
            seen.status = Some(response.status().as_u16());
            seen.retry_after = retry_after(response.headers(), SystemTime::now());
            seen.redirected = response.extensions().get::<HttpRedirect>().is_some();
            seen.ignored_range = wants_part && response.status() == StatusCode::OK;
        });
        let limit = match part_len {
            Some(len) if response.status() == StatusCode::PARTIAL_CONTENT => len,
            _ => MAX_BODY_BYTES,
        };
        let counters = Arc::clone(&self.counters);
        Ok(response.map(|body| {
            body.map_inner(|stream| {
                let mut received = 0;
                Box::new(stream.map(move |part| {
                    // Held until the body has come, or is not wanted any more.
                    let _ = &permit;
                    let part = part?;
                    let len = part.len() as u64;
                    counters.bytes.fetch_add(len, Ordering::Relaxed);
                    received += len;
                    if received > limit {
                        // What goes on and on would fill the memory.
                        let message = format!("more than {limit} bytes came, which were to be all");
                        return Err(Error::new(ErrorKind::Unexpected, message));
                    }
                    Ok(part)
                }))
            })
        }))
    }
}

/// How many bytes a request asks for.
fn len_of_range(range: &HeaderValue) -> Option<u64> {
    let (first, last) = range
        .to_str()
        .ok()?
        .strip_prefix("bytes=")?
        .split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_length() {
        let len = |range| len_of_range(&HeaderValue::from_static(range));
        assert_eq!(len("bytes=10-19"), Some(10));
        assert_eq!(len("bytes=0-18446744073709551615"), None);
        assert_eq!(len("bytes=10-"), None);
        assert_eq!(len("bytes=20-10"), None);
    }
}
