//! What all requests pass through: the limit on requests at once, the counters, and the notes about each attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use futures_util::StreamExt;
use http::header::RANGE;
use http::{Request, Response, StatusCode};
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpRedirect, HttpTransport};
use opendal_http_transport_reqwest::ReqwestTransport;
use tokio::sync::Semaphore;

use super::attempt::{note, retry_after};
use crate::{FetchStats, SourceOptions};

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
            permits: Arc::new(Semaphore::new(options.max_requests.max(1))),
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
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let response = self.inner.fetch(request).await?;
        note(|seen| {
            seen.status = Some(response.status().as_u16());
            seen.retry_after = retry_after(response.headers(), SystemTime::now());
            seen.redirected = response.extensions().get::<HttpRedirect>().is_some();
            seen.ignored_range = wants_part && response.status() == StatusCode::OK;
        });
        let counters = Arc::clone(&self.counters);
        Ok(response.map(|body| {
            body.map_inner(|stream| {
                Box::new(stream.inspect(move |part| {
                    // Held until the body has come, or is not wanted any more.
                    let _ = &permit;
                    if let Ok(part) = part {
                        counters
                            .bytes
                            .fetch_add(part.len() as u64, Ordering::Relaxed);
                    }
                }))
            })
        }))
    }
}
