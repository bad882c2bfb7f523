//! A real server of S3's protocol on loopback, for the files of a folder: s3s, which checks signatures.

use std::net::SocketAddr;
use std::path::Path;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The name of the bucket.
pub const BUCKET: &str = "datasets";
/// The key that lets in, and what belongs to it.
pub const ACCESS_KEY: &str = "AKIDEXAMPLE";
/// See [`ACCESS_KEY`].
pub const SECRET_KEY: &str = "not-much-of-a-secret";

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    _runtime: Runtime,
}

impl S3 {
    /// Serves the folder [`BUCKET`] below `root` as a bucket.
    ///
    /// # Panics
    ///
    /// When there is no port to be had, or no such folder.
    #[must_use]
    pub fn start(root: &Path) -> Self {
        assert!(root.join(BUCKET).is_dir(), "a bucket is a folder");
        let files = FileSystem::new(root).expect("the root is a folder");
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = service.build();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads for the server");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port of the loopback");
        let address = listener.local_addr().expect("the port's number");
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                // A client that goes away in the middle is its own affair.
                tokio::spawn(async move {
                    let server = Builder::new(TokioExecutor::new());
                    drop(server.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self {
            address,
            _runtime: runtime,
        }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}
