//! What a user should know of a dataset that can be read nevertheless.

use std::fmt;

/// Something about the dataset that is odd, but does not stand in the way of reading it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Rows of the episode table are there twice, and equal; each was taken once.
    DuplicateEpisodes {
        /// The file that repeats what was read before.
        path: String,
        /// The first episode that it repeats.
        episode_index: usize,
        /// The number of episodes that it repeats.
        count: usize,
    },

    /// info.json counts less than the tables hold; the tables are followed.
    Totals {
        /// The field of info.json.
        field: &'static str,
        /// Its value.
        promised: usize,
        /// The number found.
        found: usize,
    },

    /// A feature is of a type that this version does not read; it is left out.
    UnreadFeature {
        /// The feature's name.
        key: String,
        /// The type that info.json declares.
        dtype: String,
    },

    /// Frames of a video between two neighbouring episodes belong to neither.
    VideoGap {
        /// The camera.
        camera: String,
        /// The video file of the first such place.
        path: String,
        /// The episode before the first such place.
        episode_index: usize,
        /// The episode after it.
        next_episode_index: usize,
        /// How long the gap is, in seconds.
        gap_s: f64,
        /// The number of such places in all videos of the camera.
        count: usize,
    },

    /// Two neighbouring episodes of a video share frames.
    VideoOverlap {
        /// The camera.
        camera: String,
        /// The video file of the first such place.
        path: String,
        /// The first of the two episodes.
        episode_index: usize,
        /// The second of them.
        next_episode_index: usize,
        /// How long the overlap is, in seconds.
        overlap_s: f64,
        /// The number of such places in all videos of the camera.
        count: usize,
    },

    /// An episode's interval in a video does not fit the number of its rows.
    VideoLength {
        /// The camera.
        camera: String,
        /// The video file of the first such episode.
        path: String,
        /// The first such episode.
        episode_index: usize,
        /// The interval in the episode table, from `from_timestamp` to `to_timestamp`, in seconds.
        interval_s: f64,
        /// The number of the episode's rows.
        length: usize,
        /// The number of such episodes.
        count: usize,
    },

    /// `meta/stats.json` could not be read; there are no statistics.
    Stats {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateEpisodes {
                path,
                episode_index,
                count,
            } => write!(
                f,
                "`{path}` repeats {count} episodes that are in the episode table already, episode {episode_index} first; \
                 each was taken once; remove the copy"
            ),
            Self::Totals {
                field,
                promised,
                found,
            } => write!(
                f,
                "`meta/info.json`: `{field}` is {promised}, but the episode table holds {found}; the table is followed"
            ),
            Self::UnreadFeature { key, dtype } => write!(
                f,
                "`meta/info.json`: feature `{key}` is of dtype `{dtype}`, which is not read; it is left out of the samples"
            ),
            Self::VideoGap {
                camera,
                path,
                episode_index,
                next_episode_index,
                gap_s,
                count,
            } => write!(
                f,
                "camera `{camera}`: `{path}` has {gap_s:.4} s between episode {episode_index} and episode \
                 {next_episode_index} that belong to neither ({count} such places); if pictures of discarded takes were left \
                 in, every frame after them is wrong: look at the first frames of episode {next_episode_index}"
            ),
            Self::VideoOverlap {
                camera,
                path,
                episode_index,
                next_episode_index,
                overlap_s,
                count,
            } => write!(
                f,
                "camera `{camera}`: in `{path}` episode {next_episode_index} starts {overlap_s:.4} s before episode \
                 {episode_index} ends ({count} such places); one of them shows the other's frames"
            ),
            Self::VideoLength {
                camera,
                path,
                episode_index,
                interval_s,
                length,
                count,
            } => write!(
                f,
                "camera `{camera}`: episode {episode_index} has {length} rows, which do not fill its {interval_s:.4} s of \
                 `{path}` ({count} such episodes); if pictures of discarded takes were left in, its frames are wrong: \
                 compare its last frame with its last row"
            ),
            Self::Stats { reason } => {
                write!(
                    f,
                    "`meta/stats.json` cannot be read, so there are no statistics: {reason}"
                )
            }
        }
    }
}
