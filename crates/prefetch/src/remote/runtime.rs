//! The threads that wait for servers.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Runtime};

/// Requests wait for the network: two threads serve many.
const THREADS: usize = 2;

/// This process's runtime, and the process that it belongs to.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// The runtime of this process, started when it is first asked for.
///
/// A process that was forked off another has none of its threads: it gets a runtime of its own.
pub(super) fn runtime() -> io::Result<Arc<Runtime>> {
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = &*slot
        && *owner == process
    {
        return Ok(Arc::clone(runtime));
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("prefetch-io")
        .enable_all()
        .build()?;
    let runtime = Arc::new(runtime);
    if let Some((_, parents)) = slot.replace((process, Arc::clone(&runtime))) {
        // Its threads are not here to be waited for.
        std::mem::forget(parents);
    }
    Ok(runtime)
}
