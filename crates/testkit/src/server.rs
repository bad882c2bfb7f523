//! A web server on loopback, with range requests, the routes of the Hugging Face Hub, and every fault that a network has.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

/// The repository that the server has, by the Hub's routes.
pub const REPOSITORY: &str = "robots/fixture";
/// The commit that its branch `main` is.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A request that came.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `HEAD`, `POST`.
    pub method: String,
    /// As it stood in the request, with its query.
    pub path: String,
    /// The first and the last byte asked for.
    pub range: Option<(u64, u64)>,
    /// The token or the user that it came with.
    pub authorization: Option<String>,
}

/// What a server does with a request instead of answering it well.
#[derive(Debug, Clone, Default)]
pub enum Fault {
    /// Nothing: it answers.
    #[default]
    None,
    /// Answers with a status, and more headers.
    Status(u16, Vec<(&'static str, String)>),
    /// Sends so many bytes of the body, and breaks the connection.
    BreakAfter(usize),
    /// Sends so many bytes of the body and says that this is all.
    ShortBody(usize),
    /// Sends the whole file whatever range is asked for.
    IgnoreRange,
    /// Says nothing until the client has gone, a minute at most.
    Silence,
    /// Sends the body in pieces, says nothing of its length, and goes on with zeros for ever.
    Endless,
    /// Sends the body a byte at a time, with a pause after each, until the client has gone.
    Drip(Duration),
}

type Faults = Box<dyn FnMut(&Request) -> Fault + Send>;

/// A running server. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    root: PathBuf,
    stopped: AtomicBool,
    requests: Mutex<Vec<Request>>,
    faults: Mutex<Faults>,
    line: Mutex<Line>,
}

/// The line to the client.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// How long an answer takes to begin.
    delay: Duration,
    /// For all connections together; none where it is as fast as can be.
    bytes_per_s: Option<f64>,
    /// When what has been sent so far is through.
    free_at: Instant,
}

/// What is sent at once over a slow line.
const CHUNK_BYTES: usize = 64 << 10;

impl Server {
    /// Serves the files below `root`: at `/files/`, and by the Hub's routes as the dataset and the bucket [`REPOSITORY`].
    ///
    /// # Panics
    ///
    /// When there is no port to be had.
    #[must_use]
    pub fn start(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
        let address = listener.local_addr().expect("the port's number");
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            stopped: AtomicBool::new(false),
            requests: Mutex::default(),
            faults: Mutex::new(Box::new(|_| Fault::None)),
            line: Mutex::new(Line {
                delay: Duration::ZERO,
                bytes_per_s: None,
                free_at: Instant::now(),
            }),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for stream in listener.incoming() {
                    if shared.stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    let shared = Arc::clone(&shared);
                    if let Ok(stream) = stream {
                        // A client that goes away in the middle is its own affair.
                        thread::spawn(move || shared.serve(stream));
                    }
                }
            }
        });
        Self {
            address,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of the files as those of a plain web server.
    #[must_use]
    pub fn files_url(&self) -> String {
        format!("{}/files", self.endpoint())
    }

    /// Says what is to be done with each request from now on.
    pub fn set_faults(&self, faults: impl FnMut(&Request) -> Fault + Send + 'static) {
        *lock(&self.shared.faults) = Box::new(faults);
    }

    /// Makes the line as slow as one to another continent: every answer begins after `delay`, and all bodies together come at `bytes_per_s`.
    /// For benches; no test depends on it.
    pub fn set_line(&self, delay: Duration, bytes_per_s: f64) {
        *lock(&self.shared.line) = Line {
            delay,
            bytes_per_s: Some(bytes_per_s),
            free_at: Instant::now(),
        };
    }

    /// The requests that came so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the acceptor.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// What is sent for a request.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn of(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn json(value: &serde_json::Value) -> Self {
        Self {
            body: value.to_string().into_bytes(),
            headers: vec![("Content-Type", "application/json".to_owned())],
            ..Self::of(200)
        }
    }
}

impl Shared {
    /// The requests of one connection.
    fn serve(&self, mut stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else {
            return;
        };
        let mut reading = BufReader::new(reading);
        while let Ok(Some((request, body))) = read_request(&mut reading) {
            lock(&self.requests).push(request.clone());
            let fault = (lock(&self.faults))(&request);
            let delay = lock(&self.line).delay;
            thread::sleep(delay);
            if self.answer(&mut stream, &request, &body, fault).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Both);
    }

    /// Fails where the connection is to be closed.
    fn answer(
        &self,
        stream: &mut TcpStream,
        request: &Request,
        body: &[u8],
        fault: Fault,
    ) -> io::Result<()> {
        let closed = || io::Error::from(io::ErrorKind::ConnectionAborted);
        let range = match fault {
            Fault::IgnoreRange => None,
            _ => request.range,
        };
        let mut answer = match &fault {
            Fault::Status(status, headers) => Answer {
                headers: headers.clone(),
                ..Answer::of(*status)
            },
            Fault::Silence => {
                stream.set_read_timeout(Some(Duration::from_secs(60)))?;
                // Ends when the client closes its end.
                let _ = stream.read(&mut [0]);
                return Err(closed());
            }
            _ => self.route(request, body, range),
        };
        if let Fault::ShortBody(len) = fault {
            answer.body.truncate(len);
        }
        let mut head = format!("HTTP/1.1 {} x\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Fault::Endless = fault {
            head.push_str("Transfer-Encoding: chunked\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            answer.body.resize(answer.body.len().max(1), 0);
            loop {
                stream.write_all(format!("{:x}\r\n", answer.body.len()).as_bytes())?;
                stream.write_all(&answer.body)?;
                stream.write_all(b"\r\n")?;
                answer.body.fill(0);
            }
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
        stream.write_all(head.as_bytes())?;
        if request.method == "HEAD" {
            return Ok(());
        }
        if let Fault::BreakAfter(len) = fault {
            stream.write_all(&answer.body[..len.min(answer.body.len())])?;
            return Err(closed());
        }
        if let Fault::Drip(pause) = fault {
            for byte in &answer.body {
                stream.write_all(&[*byte])?;
                thread::sleep(pause);
            }
            return Ok(());
        }
        self.send(stream, &answer.body)
    }

    /// Sends a body as fast as the line is.
    fn send(&self, stream: &mut TcpStream, body: &[u8]) -> io::Result<()> {
        for chunk in body.chunks(CHUNK_BYTES) {
            let through_at = {
                let mut line = lock(&self.line);
                let Some(bytes_per_s) = line.bytes_per_s else {
                    return stream.write_all(body);
                };
                let takes = Duration::from_secs_f64(chunk.len() as f64 / bytes_per_s);
                line.free_at = line.free_at.max(Instant::now()) + takes;
                line.free_at
            };
            thread::sleep(through_at.saturating_duration_since(Instant::now()));
            stream.write_all(chunk)?;
        }
        Ok(())
    }

    fn route(&self, request: &Request, body: &[u8], range: Option<(u64, u64)>) -> Answer {
        let path = decoded(request.path.split('?').next().unwrap_or_default());
        if let Some(key) = path.strip_prefix("/files/") {
            return self.file(key, range);
        }
        // Where the resolve route leads to: a link that is signed.
        if let Some(key) = path.strip_prefix("/cdn/") {
            return self.file(key, range);
        }
        let at = |prefix: &str| path.strip_prefix(&format!("{prefix}/{REPOSITORY}/"));
        if at("/api/datasets") == Some("revision/main") {
            return Answer::json(&json!({ "id": REPOSITORY, "sha": COMMIT }));
        }
        let commit = |rest: &str| {
            rest.strip_prefix(COMMIT)
                .map(|rest| rest.trim_start_matches('/').to_owned())
        };
        if let Some(dir) = at("/api/datasets")
            .and_then(|rest| rest.strip_prefix("tree/"))
            .and_then(commit)
        {
            return self.tree(&dir);
        }
        if let Some(dir) = at("/api/buckets").and_then(|rest| rest.strip_prefix("tree")) {
            return self.tree(dir.trim_start_matches('/'));
        }
        let asks_paths = at("/api/datasets")
            .and_then(|rest| rest.strip_prefix("paths-info/"))
            .and_then(commit)
            .is_some()
            || at("/api/buckets") == Some("paths-info");
        if asks_paths {
            return self.paths_info(body);
        }
        let resolved = at("/datasets")
            .and_then(|rest| rest.strip_prefix("resolve/"))
            .and_then(commit);
        let resolved =
            resolved.or_else(|| Some(at("/buckets")?.strip_prefix("resolve/")?.to_owned()));
        if let Some(key) = resolved {
            if !self.root.join(&key).is_file() {
                return Answer::of(404);
            }
            let link = format!("/cdn/{key}?Expires=4102444800&Signature=secret");
            return Answer {
                headers: vec![("Location", link)],
                ..Answer::of(302)
            };
        }
        Answer::of(404)
    }

    fn file(&self, key: &str, range: Option<(u64, u64)>) -> Answer {
        let Ok(bytes) = fs::read(self.root.join(key)) else {
            return Answer::of(404);
        };
        let len = bytes.len() as u64;
        let sum = bytes.iter().fold(0_u64, |sum, &byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        let etag = format!("\"{len:x}-{sum:x}\"");
        let Some((first, last)) = range else {
            return Answer {
                body: bytes,
                headers: vec![("Accept-Ranges", "bytes".to_owned()), ("ETag", etag)],
                ..Answer::of(200)
            };
        };
        if first >= len {
            return Answer::of(416);
        }
        let last = last.min(len - 1);
        Answer {
            body: bytes[first as usize..=last as usize].to_vec(),
            headers: vec![
                ("Content-Range", format!("bytes {first}-{last}/{len}")),
                ("ETag", etag),
            ],
            ..Answer::of(206)
        }
    }

    fn tree(&self, dir: &str) -> Answer {
        let mut entries = Vec::new();
        collect(&self.root, dir, &mut entries);
        if entries.is_empty() {
            return Answer::of(404);
        }
        Answer::json(&json!(entries))
    }

    fn paths_info(&self, body: &[u8]) -> Answer {
        // A form: `paths=meta%2Finfo.json&expand=True`.
        let form = String::from_utf8_lossy(body);
        let paths = form
            .split('&')
            .filter_map(|field| field.strip_prefix("paths="));
        let known: Vec<_> = paths
            .filter_map(|path| entry(&self.root, &decoded(path)))
            .collect();
        Answer::json(&json!(known))
    }
}

/// A path without the escapes of URLs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the Hub says of a file or a folder.
fn entry(root: &Path, key: &str) -> Option<serde_json::Value> {
    let metadata = fs::metadata(root.join(key)).ok()?;
    let kind = if metadata.is_dir() {
        "directory"
    } else {
        "file"
    };
    Some(json!({ "type": kind, "path": key, "oid": "ab".repeat(20), "size": metadata.len() }))
}

fn collect(root: &Path, dir: &str, entries: &mut Vec<serde_json::Value>) {
    let Ok(found) = fs::read_dir(root.join(dir)) else {
        return;
    };
    for file in found.flatten() {
        let name = file.file_name();
        let key = format!("{dir}/{}", name.to_string_lossy());
        let key = key.trim_start_matches('/');
        entries.extend(entry(root, key));
        if file.path().is_dir() {
            collect(root, key, entries);
        }
    }
}

/// The next request of a connection, and its body; none when the client is done.
fn read_request(reading: &mut impl BufRead) -> io::Result<Option<(Request, Vec<u8>)>> {
    let mut line = String::new();
    if reading.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut next = || words.next().unwrap_or_default().to_owned();
    let mut request = Request {
        method: next(),
        path: next(),
        range: None,
        authorization: None,
    };
    let mut body_len = 0;
    loop {
        let mut header = String::new();
        if reading.read_line(&mut header)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let range = value
                    .strip_prefix("bytes=")
                    .and_then(|range| range.split_once('-'));
                request.range = range.and_then(|(first, last)| {
                    Some((first.parse().ok()?, last.parse().unwrap_or(u64::MAX)))
                });
            }
            "authorization" => request.authorization = Some(value.to_owned()),
            "content-length" => body_len = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; body_len];
    reading.read_exact(&mut body)?;
    Ok(Some((request, body)))
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
