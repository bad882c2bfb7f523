//! A part of a remote file, which is fetched at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::Error;

/// The most bytes of a piece. Small enough that a reader waits for little that it does not want, and that a broken connection costs
/// little; large enough that what goes over a line meanwhile outweighs a request's delay, with a dozen requests under way.
pub(super) const MAX_PIECE_BYTES: u64 = 1 << 20;

/// Ranges that lie so near to each other are fetched as one: a gap costs less than a request.
const MERGE_GAP_BYTES: u64 = 16 << 10;

/// How often somebody who waits looks whether to give up.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What names a piece, for good and for all processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    /// As the cache's folder has it: a digest of what the piece is of, and its length.
    pub(super) name: String,
    pub(super) key: Arc<str>,
    pub(super) range: Range<u64>,
}

impl Spec {
    /// `version` tells a file from another that has the same key at another time.
    fn new(source: &str, key: &Arc<str>, version: &str, range: Range<u64>) -> Self {
        let mut digest = Sha256::new();
        for part in [source, key, version] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.update(range.start.to_le_bytes());
        let digest = digest.finalize();
        let hex: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
        Self {
            name: format!("{hex}-{}", len(&range)),
            key: Arc::clone(key),
            range,
        }
    }
}

/// The pieces that make up some ranges of a file of `size` bytes.
pub(super) fn cut(
    source: &str,
    key: &str,
    version: &str,
    size: u64,
    ranges: &[Range<u64>],
) -> Vec<Spec> {
    let key: Arc<str> = key.into();
    let mut ranges: Vec<Range<u64>> = ranges
        .iter()
        .map(|range| range.start.min(size)..range.end.min(size))
        .filter(|range| range.start < range.end)
        .collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(MERGE_GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    let mut specs = Vec::new();
    for range in merged {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(MAX_PIECE_BYTES));
            specs.push(Spec::new(source, &key, version, start..end));
            start = end;
        }
    }
    specs
}

pub(super) fn len(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// A piece that somebody of this process needs.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) spec: Spec,
    state: Mutex<State>,
    changed: Condvar,
    /// Whether somebody waits for it, or soon will.
    is_wanted: AtomicBool,
}

/// How far a piece has come.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// To be fetched; where it is not claimed, another process has begun to.
    Waiting { is_claimed: bool },
    /// On its way.
    UnderWay,
    /// In the cache's folder.
    Here,
    /// Not in the cache: to be read from the source.
    Direct,
    /// It could not be fetched.
    Failed(Arc<Error>),
    /// Nobody needs it any more.
    Released,
}

impl Piece {
    pub(super) fn new(spec: Spec, state: State) -> Self {
        Self {
            spec,
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_wanted: AtomicBool::new(false),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how far it has come, and wakes those who wait.
    pub(super) fn set(&self, mut state: MutexGuard<'_, State>, next: State) {
        *state = next;
        drop(state);
        self.changed.notify_all();
    }

    /// Whether it was not wanted before, and has yet to be begun.
    pub(super) fn want(&self) -> bool {
        !self.is_wanted.swap(true, Ordering::Relaxed)
            && matches!(*self.state(), State::Waiting { .. })
    }

    /// Whether somebody waits for it, or soon will.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Whether it has yet to come.
    pub(super) fn is_coming(&self) -> bool {
        matches!(*self.state(), State::Waiting { .. } | State::UnderWay)
    }

    /// Waits until it is neither waiting nor under way, or until `give_up` says so.
    pub(super) fn wait(&self, give_up: &dyn Fn() -> bool) -> State {
        let is_coming = |state: &State| matches!(state, State::Waiting { .. } | State::UnderWay);
        self.wait_while(&is_coming, give_up)
    }

    /// Waits until it is not under way, or until `give_up` says so.
    pub(super) fn wait_under_way(&self, give_up: &dyn Fn() -> bool) -> State {
        self.wait_while(&|state| matches!(state, State::UnderWay), give_up)
    }

    fn wait_while(&self, what: &dyn Fn(&State) -> bool, give_up: &dyn Fn() -> bool) -> State {
        let mut state = self.state();
        while what(&state) && !give_up() {
            let (next, _) = self
                .changed
                .wait_timeout(state, LOOK_UP)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
        state.clone()
    }
}

/// The pieces of one file that are needed now.
#[derive(Debug, Default)]
pub(super) struct FilePieces {
    /// By start and end.
    pieces: Mutex<BTreeMap<(u64, u64), Arc<Piece>>>,
}

impl FilePieces {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(u64, u64), Arc<Piece>>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, piece: &Arc<Piece>) {
        let Range { start, end } = piece.spec.range;
        self.lock().insert((start, end), Arc::clone(piece));
    }

    pub(super) fn remove(&self, range: &Range<u64>) {
        self.lock().remove(&(range.start, range.end));
    }

    /// The piece that holds a position; or else where the next one begins.
    pub(super) fn find(&self, position: u64) -> Result<Arc<Piece>, Option<u64>> {
        let pieces = self.lock();
        // One that begins earlier than this ends before the position.
        let earliest = (position.saturating_sub(MAX_PIECE_BYTES), 0);
        let before = pieces.range(earliest..=(position, u64::MAX)).rev();
        for (_, piece) in before {
            if piece.spec.range.contains(&position) {
                return Ok(Arc::clone(piece));
            }
        }
        let after = pieces.range((position, u64::MAX)..).next();
        Err(after.map(|((start, _), _)| *start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Range<u64> = 0..u64::MAX;

    fn ranges(specs: &[Spec]) -> Vec<Range<u64>> {
        specs.iter().map(|spec| spec.range.clone()).collect()
    }

    #[test]
    fn near_ranges_are_one_and_long_ones_are_cut() {
        let mib = 1 << 20;
        let specs = cut("s", "k", "", 10 * mib, &[100..200, 0..50, mib..mib * 3 + 1]);
        assert_eq!(
            ranges(&specs),
            [0..200, mib..2 * mib, 2 * mib..3 * mib, 3 * mib..3 * mib + 1]
        );
        assert!(specs[0].name.ends_with("-200"));
        // Whoever asks for a whole file gets the same pieces.
        let whole = cut("s", "k", "", 2 * mib + 5, std::slice::from_ref(&WHOLE));
        assert_eq!(ranges(&whole), [0..mib, mib..2 * mib, 2 * mib..2 * mib + 5]);
        assert_eq!(cut("s", "k", "", 2 * mib + 5, &[7..9, WHOLE]), whole);
    }

    #[test]
    fn a_name_tells_source_file_version_and_range() {
        let name = |source, key: &str, version, start| {
            let range = start..start + 1;
            Spec::new(source, &key.into(), version, range).name
        };
        let names = [
            name("s", "k", "v", 0),
            name("sk", "", "v", 0),
            name("s", "k", "w", 0),
            name("s", "k", "v", 1),
        ];
        for (i, a) in names.iter().enumerate() {
            assert!(names[..i].iter().all(|b| a != b));
        }
        assert_eq!(name("s", "k", "v", 0), names[0]);
    }

    #[test]
    fn a_position_is_found_in_its_piece() {
        let file = FilePieces::default();
        for range in [10..20, 15..40, 100..110] {
            let spec = Spec::new("s", &"k".into(), "", range);
            file.insert(&Arc::new(Piece::new(spec, State::Here)));
        }
        let find = |position| file.find(position).map(|piece| piece.spec.range.clone());
        assert_eq!(find(9), Err(Some(10)));
        assert_eq!(find(12), Ok(10..20));
        assert_eq!(find(39), Ok(15..40));
        assert_eq!(find(40), Err(Some(100)));
        assert_eq!(find(110), Err(None));
        file.remove(&(10..20));
        assert_eq!(find(12), Err(Some(15)));
    }
}
