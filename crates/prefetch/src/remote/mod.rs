//! Sources that lie elsewhere, behind opendal's services.

mod attempt;
mod index;
mod reader;
mod redact;
mod runtime;
mod service;
mod transport;

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use opendal::options::{ListOptions, ReadOptions};
use opendal::{EntryMode, ErrorKind, Metadata, Operator};
use tokio::runtime::Runtime;

use crate::location::Location;
use crate::{Error, FetchStats, SourceOptions};
use attempt::{Failure, with_retries};
use index::Index;
pub use index::IndexWriter;
pub(crate) use reader::RemoteReader;
use transport::{Counters, Transport};

/// The most bytes that one request asks for: what a broken connection costs.
const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// The slowest that an answer may come, in bytes a second, once its time is used up.
const SLOWEST_BYTES_PER_S: u64 = 64 << 10;

/// How often somebody who waits for an answer looks whether to give up.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What is known of a remote file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub(crate) size: u64,
    /// What changes with the file's bytes, where the source says.
    pub(crate) etag: Option<String>,
}

impl FileStat {
    fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.content_length(),
            etag: metadata.etag().map(str::to_owned),
        }
    }

    /// What a request for a part of the file may insist on.
    fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }
}

/// A source that lies elsewhere.
#[derive(Debug)]
pub(crate) struct Remote {
    location: Location,
    options: SourceOptions,
    /// The commit of a dataset of the Hub.
    revision: Option<String>,
    counters: Arc<Counters>,
    connection: Mutex<Option<Connection>>,
    /// By key: what listings and questions have told.
    files: Mutex<HashMap<String, FileStat>>,
    /// What opening files reads of them.
    index: OnceLock<Index>,
}

/// What a process needs to send requests.
#[derive(Debug, Clone)]
struct Connection {
    /// The process that it belongs to: another that was forked off it has neither its threads nor a right to its sockets.
    process: u32,
    operator: Operator,
}

impl Remote {
    /// Sets up the service; asks the Hub which commit a dataset's revision is.
    pub(crate) fn connect(location: Location, options: &SourceOptions) -> Result<Self, Error> {
        let mut remote = Self {
            location,
            options: options.clone(),
            revision: None,
            counters: Arc::default(),
            connection: Mutex::default(),
            files: Mutex::default(),
            index: OnceLock::new(),
        };
        if let Some(request) = service::revision_request(&remote.location)? {
            let transport = remote.transport()?;
            let revision =
                remote.ask("look up the revision of", "", remote.limit(0), move || {
                    service::revision(transport.clone(), request.clone())
                })?;
            remote.revision = Some(revision);
        }
        // What is missing of settings is told now.
        remote.connection()?;
        Ok(remote)
    }

    pub(crate) fn name(&self) -> String {
        self.location.to_string()
    }

    pub(crate) fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    pub(crate) fn stats(&self) -> FetchStats {
        self.counters.stats()
    }

    /// What is known of a file, asked for where no listing has told it.
    pub(crate) fn stat(&self, key: &str) -> Result<FileStat, Error> {
        if let Some(stat) = lock(&self.files).get(key) {
            return Ok(stat.clone());
        }
        if let Some(index) = self
            .index
            .get()
            .filter(|index| index.is_of(self.revision()))
            && let Some(stat) = index.stat(key)
        {
            lock(&self.files).insert(key.to_owned(), stat.clone());
            return Ok(stat);
        }
        let operator = self.connection()?.operator;
        let path = key.to_owned();
        let stat = self.ask("open", key, self.limit(0), move || {
            let (operator, path) = (operator.clone(), path.clone());
            async move {
                let metadata = operator.stat(&path).await?;
                Ok(FileStat::of(&metadata))
            }
        })?;
        lock(&self.files).insert(key.to_owned(), stat.clone());
        Ok(stat)
    }

    /// Uses an index from now on, unless there is one already. Whether it is of what is being read, as far as that can be told at once.
    pub(crate) fn use_index(&self, path: &Path) -> Result<bool, Error> {
        let index = Index::open(path)?;
        let may_fit = self.revision.is_none() || index.is_of(self.revision());
        if may_fit {
            // The first stays.
            let _ = self.index.set(index);
        }
        Ok(may_fit)
    }

    /// A file's size, where it is known already.
    pub(crate) fn listed_size(&self, key: &str) -> Option<u64> {
        lock(&self.files).get(key).map(|stat| stat.size)
    }

    /// Reads a part of a file.
    ///
    /// Gives up once `stop` is set.
    pub(crate) fn read(
        &self,
        key: &str,
        range: Range<u64>,
        stop: Option<&AtomicBool>,
    ) -> Result<Bytes, Error> {
        let mut part = self.read_part(key, first_part(&range), stop)?;
        if part.len() as u64 == range.end - range.start {
            return Ok(part);
        }
        let mut all = BytesMut::with_capacity((range.end - range.start) as usize);
        loop {
            all.extend_from_slice(&part);
            let rest = range.start + all.len() as u64..range.end;
            if rest.is_empty() {
                return Ok(all.freeze());
            }
            part = self.read_part(key, first_part(&rest), stop)?;
        }
    }

    fn read_part(
        &self,
        key: &str,
        range: Range<u64>,
        stop: Option<&AtomicBool>,
    ) -> Result<Bytes, Error> {
        let operator = self.connection()?.operator;
        // What is read of a file is all of one version of it. (A commit of the Hub is one by itself.)
        let mut if_match = None;
        if self.revision.is_none() && operator.info().capability().read_with_if_match {
            let files = lock(&self.files);
            let stat = files.get(key);
            if_match = stat.and_then(|stat| stat.strong_etag().map(str::to_owned));
        }
        let path = key.to_owned();
        let len = range.end - range.start;
        let action = format!("read bytes {} to {} of", range.start, range.end.max(1) - 1);
        self.ask_unless(stop, &action, key, self.limit(len), move || {
            let (operator, path, range) = (operator.clone(), path.clone(), range.clone());
            let if_match = if_match.clone();
            async move {
                let options = ReadOptions {
                    range: range.into(),
                    if_match,
                    ..ReadOptions::default()
                };
                let bytes = operator.read_options(&path, options).await?.to_bytes();
                if bytes.len() as u64 == len {
                    return Ok(bytes);
                }
                let message = format!("{} bytes came where {len} were asked for", bytes.len());
                Err(opendal::Error::new(ErrorKind::Unexpected, message).set_temporary())
            }
        })
    }

    /// The keys of all files below a folder, sorted.
    pub(crate) fn list(&self, dir: &str) -> Result<Vec<String>, Error> {
        if matches!(self.location, Location::Http { .. }) {
            return Err(Error::CannotList { url: self.url(dir) });
        }
        let operator = self.connection()?.operator;
        let path = format!("{dir}/");
        // A listing comes in pages, of a thousand files each, and may have many.
        let limit = self.limit(0) * 20;
        let listed = self.ask("list", dir, limit, move || {
            let (operator, path) = (operator.clone(), path.clone());
            async move {
                let options = ListOptions {
                    recursive: true,
                    ..ListOptions::default()
                };
                match operator.list_options(&path, options).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
                    listed => listed,
                }
            }
        })?;
        let mut files = lock(&self.files);
        let mut keys = Vec::with_capacity(listed.len());
        for entry in listed {
            if entry.metadata().mode() != EntryMode::FILE {
                continue;
            }
            let key = entry.path().to_owned();
            files.insert(key.clone(), FileStat::of(entry.metadata()));
            keys.push(key);
        }
        keys.sort_unstable();
        Ok(keys)
    }

    fn transport(&self) -> Result<Transport, Error> {
        Transport::new(&self.options, Arc::clone(&self.counters)).map_err(|error| Error::Settings {
            url: self.name(),
            reason: redact::redact(&error.to_string()),
        })
    }

    /// What this process sends requests with.
    fn connection(&self) -> Result<Connection, Error> {
        let mut slot = lock(&self.connection);
        let process = std::process::id();
        if let Some(connection) = &*slot
            && connection.process == process
        {
            return Ok(connection.clone());
        }
        let transport = self.transport()?;
        let connection = Connection {
            process,
            operator: service::operator(&self.location, self.revision.as_deref(), transport)?,
        };
        if let Some(parents) = slot.replace(connection.clone()) {
            std::mem::forget(parents);
        }
        Ok(connection)
    }

    /// The most requests at once.
    pub(crate) fn max_requests(&self) -> usize {
        self.options.requests_at_once()
    }

    fn runtime(&self) -> Result<Arc<Runtime>, Error> {
        runtime::runtime().map_err(|error| Error::Settings {
            url: self.name(),
            reason: format!("no threads for requests can be started: {error}"),
        })
    }

    /// How long an answer of so many bytes may take.
    fn limit(&self, bytes: u64) -> Duration {
        self.options.timeout + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S)
    }

    /// Makes a request, again where that may help, and waits for the answer.
    fn ask<T, F, Fut>(
        &self,
        action: &str,
        key: &str,
        limit: Duration,
        request: F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = opendal::Result<T>> + Send + 'static,
    {
        self.ask_unless(None, action, key, limit, request)
    }

    /// The same, but gives up once `stop` is set.
    fn ask_unless<T, F, Fut>(
        &self,
        stop: Option<&AtomicBool>,
        action: &str,
        key: &str,
        limit: Duration,
        request: F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = opendal::Result<T>> + Send + 'static,
    {
        let span = tracing::debug_span!("request", action, url = self.url(key));
        let _entered = span.enter();
        let options = self.options.clone();
        let counters = Arc::clone(&self.counters);
        let (sender, answer) = mpsc::sync_channel(1);
        let task = self.runtime()?.spawn(async move {
            let on_retry = move || {
                counters.retries.fetch_add(1, Ordering::Relaxed);
            };
            // Nobody waits any more where sending fails.
            let _ = sender.send(with_retries(&options, limit, on_retry, request).await);
        });
        let answer = loop {
            let is_stopped = stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            match answer.recv_timeout(LOOK_UP) {
                Err(RecvTimeoutError::Timeout) if !is_stopped => {}
                answer => break answer,
            }
        };
        task.abort();
        let outcome = answer.unwrap_or_else(|_| {
            Err(Failure {
                attempts: 1,
                seen: attempt::Seen::default(),
                reason: "the request was given up".to_owned(),
                // Not `Interrupted`, after which readers try again.
                kind: io::ErrorKind::ConnectionAborted,
            })
        });
        outcome.map_err(|failure| Error::Remote {
            action: action.to_owned(),
            url: self.url(key),
            hint: service::hint(&self.location, failure.seen.status),
            status: failure.seen.status,
            attempts: failure.attempts,
            kind: failure.kind,
            reason: failure.reason,
        })
    }

    /// A file's name for people.
    fn url(&self, key: &str) -> String {
        let root = self.location.to_string();
        if key.is_empty() {
            root
        } else {
            format!("{root}/{key}")
        }
    }
}

/// As much of a range as one request asks for.
fn first_part(range: &Range<u64>) -> Range<u64> {
    range.start..range.end.min(range.start.saturating_add(MAX_REQUEST_BYTES))
}

/// Nothing panics while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
