//! Every frame comes once, out of a pool that keeps its bound.

use std::collections::BTreeMap;

use super::reader::Reader;
use super::setup::{Setup, Violation, broken};
use crate::coverage::{Coverage, CoverageReport};
use crate::ownership::Share;
use crate::plan::{Plan, Step};

/// The consumers' emissions of one epoch are disjoint, and together they are every selected frame, once. The coverage digest
/// says so too, and a digest with one frame missing, repeated or replaced says that it is not so.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
pub fn exactly_once(setup: &Setup) -> Result<(), Violation> {
    let broken = broken("exactly_once");
    let selection = setup.selection()?;
    let mut emitted_by = BTreeMap::new();
    let mut coverage = Coverage::default();
    let mut last = None;
    for (consumer, plan) in setup.plans()?.into_iter().enumerate() {
        let announced = plan.remaining();
        let mut own = Coverage::default();
        for step in plan {
            let Step::Emit(emission) = step else { continue };
            let frame = (emission.episode_index, emission.frame_index);
            if let Some(other) = emitted_by.insert(frame, consumer) {
                return Err(broken(format!(
                    "{} is emitted by consumers {other} and {consumer}",
                    name(frame)
                )));
            }
            own.record(frame.0, frame.1);
            last = Some(frame);
        }
        if own.num_frames() != announced {
            let emitted = own.num_frames();
            return Err(broken(format!(
                "consumer {consumer} announced {announced} frames and emitted {emitted}"
            )));
        }
        coverage.merge(own);
    }

    let mut num_selected = 0;
    for episode in selection.episodes() {
        for frame_index in episode.frames() {
            num_selected += 1;
            let frame = (episode.episode_index(), frame_index);
            if !emitted_by.contains_key(&frame) {
                return Err(broken(format!(
                    "{} is selected and not emitted",
                    name(frame)
                )));
            }
        }
    }
    if emitted_by.len() != num_selected || selection.num_frames() != num_selected as u64 {
        let (emitted, counted) = (emitted_by.len(), selection.num_frames());
        return Err(broken(format!(
            "{num_selected} frames are selected, {emitted} emitted, {counted} counted"
        )));
    }

    let selected = selection.coverage();
    let report = CoverageReport::new(selected, coverage);
    if !report.exactly_once {
        return Err(broken(format!(
            "the digests differ although every frame came once: {report}"
        )));
    }
    let last = last.ok_or_else(|| broken("no frame is emitted".to_owned()))?;
    for (what, emitted) in mistakes(&emitted_by.into_keys().collect::<Vec<_>>(), last) {
        if CoverageReport::new(selected, emitted).exactly_once {
            return Err(broken(format!(
                "the digest does not notice that {} is {what}",
                name(last)
            )));
        }
    }
    Ok(())
}

/// Digests of what was emitted with a mistake made at one frame.
fn mistakes(frames: &[(usize, usize)], at: (usize, usize)) -> Vec<(&'static str, Coverage)> {
    let mut missing = Coverage::default();
    for &frame in frames.iter().filter(|&&frame| frame != at) {
        missing.record(frame.0, frame.1);
    }
    let with = |frame: (usize, usize)| {
        let mut coverage = missing;
        coverage.record(frame.0, frame.1);
        coverage
    };
    let mut repeated = with(at);
    repeated.record(at.0, at.1);
    let mut mistakes = vec![
        ("missing", missing),
        ("repeated", repeated),
        (
            "replaced by one that is not in the dataset",
            with((at.0, usize::MAX)),
        ),
    ];
    if let Some(&other) = frames.iter().find(|&&frame| frame != at) {
        mistakes.push(("replaced by another that now comes twice", with(other)));
    }
    mistakes
}

/// At most `episode_pool_size` episodes are admitted and not yet evicted; frames come out of these only; an episode is
/// admitted once, and evicted once it is exhausted; nothing is emitted while there is room for an episode that waits in the same
/// chapter; at the end nothing is held. Without shuffle one episode at a time is held.
///
/// # Errors
///
/// [`Violation::Broken`] if it does not hold, [`Violation::Invalid`] if nothing can be planned.
pub fn pool_is_bounded(setup: &Setup) -> Result<(), Violation> {
    let broken = broken("pool_is_bounded");
    let selection = setup.selection()?;
    let pool_size = setup.pool_size();
    for share in setup.shares()? {
        let mut reader = Reader::new(&selection, pool_size);
        let chapter_ends = chapter_ends(&share, setup)?;
        for step in Plan::new(&share, &setup.options)? {
            let seen = reader.num_held() + reader.num_released();
            let chapter_end = chapter_ends
                .iter()
                .find(|&&end| end > reader.num_released());
            let waiting = chapter_end.map_or(0, |&end| end - seen);
            if matches!(step, Step::Emit(_)) && reader.num_held() < pool_size && waiting > 0 {
                let held = reader.num_held();
                return Err(broken(format!(
                    "a frame is emitted while {waiting} episodes wait and {held} are held"
                )));
            }
            reader.follow(step, false).map_err(&broken)?;
        }
        if reader.num_held() > 0 {
            return Err(broken(format!(
                "{} episodes are held at the end",
                reader.num_held()
            )));
        }
    }
    Ok(())
}

/// How many episodes of a share are admitted until each of its chapters ends.
fn chapter_ends(share: &Share, setup: &Setup) -> Result<Vec<usize>, Violation> {
    let lengths: BTreeMap<_, _> = share
        .episodes()
        .map(|episode| (episode.episode_index(), episode.num_frames()))
        .collect();
    let mut longest: Vec<u64> = lengths.values().copied().collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    let full_pool: u64 = longest.iter().take(setup.pool_size()).sum();
    let chapter_frames = setup.options.chapter_frames.max(16 * full_pool);
    let num_chapters = share.num_frames().div_ceil(chapter_frames.max(1));

    let (mut ends, mut frames) = (Vec::new(), 0);
    let mut num_reached = 0;
    let admitted = Plan::new(share, &setup.options)?.filter_map(|step| match step {
        Step::Admit { episode_index } => Some(lengths[&episode_index]),
        _ => None,
    });
    for (place, length) in admitted.enumerate() {
        frames += length;
        let reached = frames * num_chapters / share.num_frames();
        if reached > num_reached {
            ends.push(place + 1);
            num_reached = reached;
        }
    }
    Ok(ends)
}

fn name((episode_index, frame_index): (usize, usize)) -> String {
    format!("frame {frame_index} of episode {episode_index}")
}
