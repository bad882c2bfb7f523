//! A real nginx on loopback, from Debian's package, for the files of a folder.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long it may take to come up; it usually takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody else may take a port between its choice and its use.
const ATTEMPTS: usize = 5;

const REMEDY: &str = "run `cargo xtask setup`, or `apt-get install nginx-light`";

/// A running nginx. Dropping it stops it.
#[derive(Debug)]
pub struct Nginx {
    process: Child,
    port: u16,
    // Last, so that the process is gone before its folder is.
    _folder: TempDir,
}

impl Nginx {
    /// Serves the files below `root`.
    ///
    /// # Panics
    ///
    /// If nginx is missing (the message says what to install), or does not come up.
    #[must_use]
    pub fn start(root: &Path) -> Self {
        for _ in 0..ATTEMPTS {
            if let Some(nginx) = Self::try_start(root) {
                return nginx;
            }
        }
        panic!("nginx did not come up in {ATTEMPTS} attempts");
    }

    fn try_start(root: &Path) -> Option<Self> {
        let folder = TempDir::new().expect("a temporary folder");
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port of the loopback")
            .port();
        let configuration = folder.path().join("nginx.conf");
        fs::write(&configuration, configure(folder.path(), root, port)).expect("a small file");
        let process = Command::new("nginx")
            .env("PATH", path_of_daemons())
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&configuration)
            .args(["-e", "error.log"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("nginx is missing here ({error}): {REMEDY}"));
        let mut nginx = Self {
            process,
            port,
            _folder: folder,
        };
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let has_ended = nginx.process.try_wait().map_or(true, |end| end.is_some());
            if has_ended {
                return None;
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(nginx);
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// The URL of the folder.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It has ended already, or does now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Debian has daemons where a user's PATH does not lead.
fn path_of_daemons() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")
}

fn configure(folder: &Path, root: &Path, port: u16) -> String {
    let (folder, root) = (folder.display(), root.display());
    // A single process, as whoever starts it.
    format!(
        "daemon off;
master_process off;
pid {folder}/pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root \"{root}\";
    }}
}}
"
    )
}
