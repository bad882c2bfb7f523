//! The episodes' intervals in the videos, checked against one another and against the number of rows.

use std::collections::BTreeMap;

use crate::{DType, Episode, Info, VideoSpan, Warning};

/// Warns, once a camera and kind, of gaps and overlaps between neighbours in a video, and of intervals that do not fit the
/// episode's rows. Half a frame is no fault: `from_timestamp` is a sum of rounded numbers.
pub(crate) fn check(info: &Info, episodes: &[Episode], warnings: &mut Vec<Warning>) {
    for camera in info
        .features()
        .iter()
        .filter(|feature| feature.dtype() == DType::Video)
    {
        let mut faults = Faults::default();
        let mut files: BTreeMap<&str, Vec<(&Episode, &VideoSpan)>> = BTreeMap::new();
        for episode in episodes {
            if let Some(span) = episode.video(camera.key()) {
                faults.check_length(camera.key(), info.fps(), episode, span);
                files.entry(span.path()).or_default().push((episode, span));
            }
        }
        for spans in files.values_mut() {
            spans.sort_by(|(_, a), (_, b)| a.from_timestamp_s().total_cmp(&b.from_timestamp_s()));
            for pair in spans.windows(2) {
                faults.check_neighbours(camera.key(), info.fps(), pair[0], pair[1]);
            }
        }
        warnings.extend(
            [faults.length, faults.gap, faults.overlap]
                .into_iter()
                .flatten(),
        );
    }
}

/// The first fault of each kind, with the number of all.
#[derive(Debug, Default)]
struct Faults {
    length: Option<Warning>,
    gap: Option<Warning>,
    overlap: Option<Warning>,
}

impl Faults {
    /// `to_timestamp` may mean the end of the last frame or the time of it.
    fn check_length(&mut self, camera: &str, fps: f64, episode: &Episode, span: &VideoSpan) {
        let Some(to_s) = span.to_timestamp_s() else {
            return;
        };
        let interval_s = to_s - span.from_timestamp_s();
        let interval_frames = interval_s * fps;
        let length = episode.length() as f64;
        if (length - 1.5..=length + 0.5).contains(&interval_frames) {
            return;
        }
        record(
            &mut self.length,
            Warning::VideoLength {
                camera: camera.to_owned(),
                path: span.path().to_owned(),
                episode_index: episode.episode_index(),
                interval_s,
                length: episode.length(),
                count: 1,
            },
        );
    }

    fn check_neighbours(
        &mut self,
        camera: &str,
        fps: f64,
        (episode, span): (&Episode, &VideoSpan),
        (next, next_span): (&Episode, &VideoSpan),
    ) {
        let end_s = span.from_timestamp_s() + episode.length() as f64 / fps;
        let gap_s = next_span.from_timestamp_s() - end_s;
        if gap_s > 0.5 / fps {
            record(
                &mut self.gap,
                Warning::VideoGap {
                    camera: camera.to_owned(),
                    path: span.path().to_owned(),
                    episode_index: episode.episode_index(),
                    next_episode_index: next.episode_index(),
                    gap_s,
                    count: 1,
                },
            );
        } else if gap_s < -0.5 / fps {
            record(
                &mut self.overlap,
                Warning::VideoOverlap {
                    camera: camera.to_owned(),
                    path: span.path().to_owned(),
                    episode_index: episode.episode_index(),
                    next_episode_index: next.episode_index(),
                    overlap_s: -gap_s,
                    count: 1,
                },
            );
        }
    }
}

/// Keeps the first warning, and counts.
fn record(first: &mut Option<Warning>, new: Warning) {
    match first {
        Some(
            Warning::VideoGap { count, .. }
            | Warning::VideoOverlap { count, .. }
            | Warning::VideoLength { count, .. },
        ) => *count += 1,
        _ => *first = Some(new),
    }
}
