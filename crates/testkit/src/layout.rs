//! Which frame lies where: rows, files, and stretches of video.

use std::ops::Range;

/// One frame of a dataset, which is one row of its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The episode.
    pub episode_index: usize,
    /// The frame within the episode.
    pub frame_index: usize,
    /// The row's number in the dataset.
    pub index: usize,
    /// The time since the episode's start, in seconds.
    pub timestamp_s: f64,
    /// The task, as a value of `task_index`.
    pub task_index: i64,
}

/// The stretch of a video file that holds one episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The episode.
    pub episode_index: usize,
    /// The number of its frames.
    pub length: usize,
    /// The camera's position in the list of cameras.
    pub camera: usize,
    /// The ordinal of the video file among the camera's files.
    pub file: usize,
    /// The number of frames before it in the file.
    pub first_frame: usize,
}

/// How episodes are split into files; an episode is never cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split {
    /// All in one file.
    OneFile,
    /// A new file after this many episodes.
    Every(usize),
    /// As many files as counts, each of so many episodes.
    Counts(Vec<usize>),
}

impl Split {
    /// The episodes of each file.
    ///
    /// # Panics
    ///
    /// If [`Split::Counts`] do not sum to `num_episodes`, or [`Split::Every`] is 0.
    pub fn files(&self, num_episodes: usize) -> Vec<Range<usize>> {
        let every = match self {
            Split::OneFile => num_episodes.max(1),
            Split::Every(n) => *n,
            Split::Counts(counts) => {
                assert_eq!(
                    counts.iter().sum::<usize>(),
                    num_episodes,
                    "{counts:?} must sum to the number of episodes"
                );
                let ends = counts.iter().scan(0, |end, count| {
                    *end += count;
                    Some(*end)
                });
                return ends
                    .zip(counts)
                    .map(|(end, count)| end - count..end)
                    .collect();
            }
        };
        (0..num_episodes)
            .step_by(every)
            .map(|start| start..num_episodes.min(start + every))
            .collect()
    }
}

/// The chunk and the file within it of the file with ordinal `file`.
pub(crate) fn chunk_and_file(file: usize, chunks_size: usize) -> (usize, usize) {
    (file / chunks_size, file % chunks_size)
}

/// Fills in a path template of info.json, with `{name}` and `{name:03d}` for the named values.
pub(crate) fn path(template: &str, values: &[(&str, &dyn std::fmt::Display)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), &value.to_string())
                .replace(
                    &format!("{{{name}:03d}}"),
                    &format!("{:0>3}", value.to_string()),
                )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_all_episodes_in_order() {
        assert_eq!(Split::OneFile.files(5), vec![0..5; 1]);
        assert_eq!(Split::Every(2).files(5), [0..2, 2..4, 4..5]);
        assert_eq!(Split::Counts(vec![1, 3, 1]).files(5), [0..1, 1..4, 4..5]);
        assert!(Split::OneFile.files(0).is_empty());
    }

    #[test]
    fn templates_are_filled_in() {
        let values: [(&str, &dyn std::fmt::Display); 3] = [
            ("video_key", &"cam"),
            ("chunk_index", &2),
            ("file_index", &1234),
        ];
        assert_eq!(
            path(
                "v/{video_key}/c-{chunk_index:03d}/f-{file_index:03d}.mp4",
                &values
            ),
            "v/cam/c-002/f-1234.mp4"
        );
        assert_eq!(path("{chunk_index}_{file_index}", &values), "2_1234");
    }
}
