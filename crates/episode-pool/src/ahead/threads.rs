//! The threads that decode.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use decode::Decoder;

use crate::Error;

/// A task's first half: reads, and returns what is left to do without reading; nothing if that failed.
pub(super) type Read = Box<dyn FnOnce(&mut Decoder) -> Option<Work> + Send>;

/// What is done with the bytes once they are read.
pub(super) type Work = Box<dyn FnOnce(&mut Decoder) + Send>;

/// Some frames of one file to decode.
pub(super) struct Task {
    /// The smallest goes first.
    pub(super) priority: u64,
    /// The file, so that no two threads wait for the same one.
    pub(super) file: Arc<str>,
    pub(super) read: Read,
}

/// Threads that decode for any number of consumers, each with decoders of its own.
///
/// - At most one thread reads from a file at a time: a slow file holds up one thread, and the others go on with other files.
/// - Dropping them leaves out what has not begun, and waits for what has.
#[derive(Debug)]
pub(crate) struct DecodeThreads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By priority, and then by age.
    tasks: BTreeMap<(u64, u64), Task>,
    /// The files that a thread is reading from.
    in_use: BTreeSet<Arc<str>>,
    num_pushed: u64,
    stopped: bool,
}

impl DecodeThreads {
    /// Starts `num_threads` threads.
    pub(crate) fn start(num_threads: usize) -> Result<Self, Error> {
        let mut threads = Self {
            shared: Arc::default(),
            handles: Vec::with_capacity(num_threads),
        };
        for number in 0..num_threads {
            let shared = Arc::clone(&threads.shared);
            let handle = thread::Builder::new()
                .name(format!("decode-{number}"))
                .spawn(move || shared.run())
                .map_err(|source| Error::SpawnDecodeThread {
                    thread: number,
                    source,
                })?;
            threads.handles.push(handle);
        }
        Ok(threads)
    }

    /// The number of threads.
    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Adds a task.
    pub(super) fn push(&self, task: Task) {
        let mut state = self.shared.lock();
        let number = state.num_pushed;
        state.num_pushed += 1;
        state.tasks.insert((task.priority, number), task);
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl Drop for DecodeThreads {
    fn drop(&mut self) {
        let tasks = {
            let mut state = self.shared.lock();
            state.stopped = true;
            std::mem::take(&mut state.tasks)
        };
        // Outside the lock: a task tells those who wait for it that it will not be done.
        drop(tasks);
        self.shared.changed.notify_all();
        for handle in self.handles.drain(..) {
            // A thread catches the panics of its tasks.
            let _ = handle.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's life.
    fn run(&self) {
        let mut decoder = Decoder::new();
        while let Some(Task { file, read, .. }) = self.next_task() {
            let work = catch_unwind(AssertUnwindSafe(|| read(&mut decoder)));
            self.lock().in_use.remove(&file);
            self.changed.notify_all();
            let done = work.and_then(|work| {
                catch_unwind(AssertUnwindSafe(|| {
                    if let Some(work) = work {
                        work(&mut decoder);
                    }
                }))
            });
            if done.is_err() {
                // What panicked will do so again where it is waited for, and be seen there.
                decoder = Decoder::new();
            }
        }
    }

    /// The first task whose file no other thread is reading from; `None` once all is to stop.
    fn next_task(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let State { tasks, in_use, .. } = &mut *state;
            let key = tasks
                .iter()
                .find(|(_, task)| !in_use.contains(&task.file))
                .map(|(&key, _)| key);
            if let Some(task) = key.and_then(|key| tasks.remove(&key)) {
                in_use.insert(Arc::clone(&task.file));
                return Some(task);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("tasks", &self.tasks.len())
            .field("in_use", &self.in_use)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn task(
        priority: u64,
        file: &str,
        read: impl FnOnce() -> Option<Work> + Send + 'static,
    ) -> Task {
        Task {
            priority,
            file: file.into(),
            read: Box::new(move |_| read()),
        }
    }

    #[test]
    fn a_slow_file_holds_up_one_thread_only() {
        let threads = DecodeThreads::start(2).unwrap();
        let (release, slow) = mpsc::sync_channel::<()>(1);
        let slow = Arc::new(Mutex::new(slow));
        let (sender, done) = mpsc::sync_channel(200);
        for number in 0..8 {
            let (sender, slow) = (sender.clone(), Arc::clone(&slow));
            threads.push(task(number, "slow.mp4", move || {
                slow.lock().unwrap().recv().unwrap();
                sender.send(("slow", number)).unwrap();
                None
            }));
        }
        for number in 0..100 {
            let sender = sender.clone();
            threads.push(task(1_000 + number, "quick.mp4", move || {
                Some(Box::new(move |_| sender.send(("quick", number)).unwrap()))
            }));
        }
        // All of the quick file, in its order, while the slow one gives nothing.
        for number in 0..100 {
            assert_eq!(done.recv().unwrap(), ("quick", number));
        }
        for number in 0..8 {
            release.send(()).unwrap();
            assert_eq!(done.recv().unwrap(), ("slow", number));
        }
    }

    #[test]
    fn a_panic_ends_its_task_and_not_its_thread() {
        let threads = DecodeThreads::start(1).unwrap();
        let (sender, done) = mpsc::sync_channel(200);
        threads.push(task(0, "a", || panic!("while reading")));
        threads.push(task(1, "a", || {
            Some(Box::new(|_| panic!("while decoding")))
        }));
        threads.push(task(2, "a", move || {
            sender.send(()).unwrap();
            None
        }));
        done.recv().unwrap();
    }

    #[test]
    fn dropping_leaves_out_what_has_not_begun() {
        let threads = DecodeThreads::start(1).unwrap();
        let ((sender, begun), (release, gate)) =
            (mpsc::sync_channel(200), mpsc::sync_channel::<()>(1));
        threads.push(task(0, "a", move || {
            sender.send(()).unwrap();
            let _ = gate.recv();
            None
        }));
        begun.recv().unwrap();
        let (sender, never) = mpsc::sync_channel::<()>(1);
        threads.push(task(1, "b", move || {
            sender.send(()).unwrap();
            None
        }));
        let shared = Arc::downgrade(&threads.shared);
        let dropping = thread::spawn(move || drop(threads));
        // The second task is let go of at once, the first when it is done.
        assert!(never.recv().is_err());
        drop(release);
        dropping.join().unwrap();
        // And the threads, each of which has a hold on this, are gone.
        assert_eq!(shared.strong_count(), 0);
    }
}
