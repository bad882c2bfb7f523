//! Keep-ranges: which frames of an episode are emitted, from a JSON file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::Error;

/// Reads a file such as `{"3": [[0, 40], [60, 90]], "7": []}`: for an episode, the half-open ranges of frames to emit.
///
/// Episodes that are not named keep all their frames.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<usize, Vec<Range<usize>>>, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::KeepRangesFile {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|reason| Error::KeepRanges {
        path: path.to_owned(),
        reason,
    })
}

fn parse(text: &str) -> Result<BTreeMap<usize, Vec<Range<usize>>>, String> {
    let raw: BTreeMap<String, Vec<[usize; 2]>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut ranges = BTreeMap::new();
    for (key, pairs) in raw {
        let episode_index: usize = key
            .parse()
            .map_err(|_error| format!("`{key}` is not an episode's number"))?;
        if let Some([from, to]) = pairs.iter().find(|[from, to]| from > to) {
            return Err(format!(
                "episode {episode_index}: the range [{from}, {to}] ends before it begins"
            ));
        }
        let pairs: Vec<_> = pairs.into_iter().map(|[from, to]| from..to).collect();
        if ranges.insert(episode_index, pairs).is_some() {
            return Err(format!("episode {episode_index} is named twice"));
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_are_half_open_pairs_by_episode() {
        let ranges = parse(r#"{"3": [[0, 40], [60, 90]], "7": []}"#).unwrap();
        assert_eq!(ranges[&3], [0..40, 60..90]);
        assert!(ranges[&7].is_empty());
    }

    #[test]
    fn faults_are_named() {
        for (text, expected) in [
            (r#"{"three": []}"#, "`three` is not an episode's number"),
            (
                r#"{"3": [[4, 2]]}"#,
                "episode 3: the range [4, 2] ends before it begins",
            ),
            (r#"{"3": [], "03": []}"#, "episode 3 is named twice"),
            ("[]", "expected a map"),
            (r#"{"3": [[1]]}"#, "expected an array of length 2"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
