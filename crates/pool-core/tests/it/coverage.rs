//! The digest tells what was emitted, and notices every kind of mistake.

use pool_core::{Coverage, CoverageReport};
use proptest::prelude::*;

use crate::setups::select;

fn digest(frames: &[(usize, usize)]) -> Coverage {
    let mut coverage = Coverage::default();
    for &(episode_index, frame_index) in frames {
        coverage.record(episode_index, frame_index);
    }
    coverage
}

fn report(selected: &[(usize, usize)], emitted: &[(usize, usize)]) -> String {
    CoverageReport::new(digest(selected), digest(emitted)).to_string()
}

#[test]
fn a_report_says_what_differs() {
    let selected = [(0, 0), (0, 1), (1, 0)];
    assert_eq!(
        report(&selected, &[(1, 0), (0, 0), (0, 1)]),
        "3 of 3 frames, each once"
    );
    assert_eq!(
        report(&selected, &[(1, 0)]),
        "1 of 3 frames, 2 fewer than selected"
    );
    assert_eq!(
        report(&selected, &[(0, 0), (0, 1), (1, 0), (1, 0)]),
        "4 of 3 frames, 1 more than selected",
    );
    let others = "3 of 3 frames, but not the selected ones, each once: some are missing, and others came twice or were not \
                  selected";
    assert_eq!(report(&selected, &[(0, 0), (0, 0), (1, 0)]), others);
    // Episode and frame are not interchangeable.
    assert_eq!(report(&selected, &[(0, 0), (0, 1), (0, 1)]), others);
    assert_eq!(report(&selected, &[(0, 0), (1, 0), (1, 0)]), others);
}

#[test]
fn a_report_groups_its_digits() {
    let selection = select(&[100_000; 13]);
    let coverage = selection.coverage();
    let report = CoverageReport::new(coverage, coverage);
    assert_eq!(
        report.to_string(),
        "1,300,000 of 1,300,000 frames, each once"
    );
    assert_eq!(
        (report.selected, report.emitted),
        (selection.num_frames(), 1_300_000)
    );
}

#[test]
fn frames_that_come_twice_do_not_cancel_out() {
    // An exclusive or would take each of these pairs for the other.
    assert_ne!(
        digest(&[(0, 0), (0, 0), (0, 1)]),
        digest(&[(0, 1), (0, 2), (0, 2)])
    );
    assert_ne!(digest(&[(0, 0), (0, 0)]), digest(&[(0, 1), (0, 1)]));
}

#[test]
fn digests_never_change() {
    // A digest may be kept, and compared with one of a later version.
    assert_eq!(
        digest(&[]).to_string(),
        "0-00000000000000000000000000000000"
    );
    // Computed by another implementation too, in another language.
    assert_eq!(
        digest(&[(3, 5), (70_000, 7)]).to_string(),
        "2-a927bb4026d424e922a762d4a94c2ee3"
    );
}

#[test]
fn a_text_that_is_no_digest_is_refused() {
    let good = digest(&[(0, 0)]).to_string();
    let sum = &good[2..];
    let bad = [
        "",
        "-",
        "1",
        "1-",
        &good[..33],
        &format!("{good}0"),
        &format!("+1-{sum}"),
        &format!("1-+{}", &sum[1..]),
    ];
    for text in bad {
        let error = text.parse::<Coverage>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("`{text}` is no coverage digest")),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn any_order_and_any_split_give_one_digest(
        frames in prop::collection::vec((any::<usize>(), any::<usize>()), 0..50),
        shuffled in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let whole = digest(&frames);
        let mut other = frames.clone();
        other.sort_by_key(|&(episode, frame)| (episode as u64 ^ seed).wrapping_mul(frame as u64 | 1));
        let (left, right) = other.split_at(shuffled.index(other.len() + 1));
        let mut merged = digest(right);
        merged.merge(digest(left));
        prop_assert_eq!(merged, whole);
        prop_assert_eq!(whole.to_string().parse::<Coverage>().unwrap(), whole);
    }
}
