//! Hostile files: whatever the bytes, reading ends in rows or an error, in bounded memory.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dataset::Metadata;
use testkit::FIXTURES;

use crate::memory::Memory;

/// The damaged copies of each file.
const COPIES: u64 = 40;

/// The most memory that reading a damaged fixture may take at once: the files are below 1 MB, their rows below 2 MB.
const MAX_BYTES: u64 = 48 << 20;

/// A small generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Changes a few bytes: flips bits, sets extremes, cuts, or repeats.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        // Half of the changes go to the end of the file, where Parquet has its footer.
        let at = match random.below(2) {
            0 => random.below(bytes.len()),
            _ => bytes.len() - 1 - random.below(bytes.len().min(4096)),
        };
        match random.below(5) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 0x7f, 0x80, 0xff][random.below(4)],
            3 => bytes[at] = random.next() as u8,
            _ => {
                let end = bytes.len().min(at + random.below(16));
                let run = bytes[at..end].to_vec();
                match random.below(2) {
                    0 => drop(bytes.drain(at..end)),
                    _ => drop(bytes.splice(at..at, run)),
                }
            }
        }
    }
}

/// Reads what the changed file holds; errors are as good as rows.
fn read(storage: &Memory, path: &str, metadata: &Metadata) {
    let Some(file) = metadata.data_files().iter().position(|file| file == path) else {
        let _ = Metadata::read(storage);
        return;
    };
    let Ok(mut data) = metadata.open_data_file(storage, file) else {
        return;
    };
    for episode in metadata
        .episodes()
        .iter()
        .filter(|episode| episode.data_file() == file)
    {
        let _ = data.read_episode(episode);
    }
}

/// Silences the panics of this thread: a reader crate's are expected here, and showing one loads symbols into memory that is
/// measured.
fn silence_panics() {
    let this = std::thread::current().id();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() != this {
            hook(info);
        }
    }));
}

/// Every damaged copy on which a panic escaped, or memory went up.
fn faults() -> Vec<String> {
    let mut faults = Vec::new();
    for (number, name) in FIXTURES.iter().enumerate() {
        let whole = Memory::fixture(name);
        let metadata = Metadata::read(&whole).unwrap();
        let paths: Vec<String> = whole.paths().map(str::to_owned).collect();
        for (file, path) in paths.iter().enumerate() {
            for copy in 0..COPIES {
                let seed = (number as u64) << 40 | (file as u64) << 20 | copy;
                let mut bytes = whole.get(path).to_vec();
                damage(&mut bytes, &mut Random(seed));
                let mut storage = whole.clone();
                storage.insert(path, bytes);
                let mut result = Ok(());
                let used = allocation_counter::measure(|| {
                    result = catch_unwind(AssertUnwindSafe(|| read(&storage, path, &metadata)));
                });
                if result.is_err() || used.bytes_max >= MAX_BYTES {
                    faults.push(format!(
                        "{name}: {path}, seed {seed}: {result:?}, {} bytes at once",
                        used.bytes_max
                    ));
                }
            }
        }
    }
    faults
}

#[test]
fn damaged_files_are_errors_in_bounded_memory() {
    // The second reader is not put to it: on some damaged pages it goes on for ever, as its documentation says.
    let search = std::thread::spawn(|| {
        silence_panics();
        faults()
    });
    let faults = search.join().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
