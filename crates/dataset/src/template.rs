//! Path templates of info.json, in the notation of Python's `str.format`.

use crate::Error;

/// A path with fields to be filled in: `data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet`.
///
/// - Fields are those that lerobot fills in: `chunk_index`, `file_index`, and in a video's path `video_key`.
/// - Numbers may have a width, and a leading zero for zeros instead of spaces: `03d`, `3d`, `d`. Keys have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathTemplate {
    /// Where it stands in info.json: `data_path`, `video_path`.
    name: &'static str,
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    ChunkIndex(Width),
    FileIndex(Width),
    VideoKey,
}

/// How many characters a number takes at least, and what fills them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Width {
    min: usize,
    zeros: bool,
}

/// Wider numbers than any file's name has are refused.
const MAX_WIDTH: usize = 32;

impl PathTemplate {
    /// Parses the value of the field `name` of info.json.
    pub(crate) fn parse(name: &'static str, text: &str) -> Result<Self, Error> {
        let failed = |reason: String| Error::Template {
            field: name,
            template: text.to_owned(),
            reason,
        };
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            // A doubled brace stands for itself.
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let Some((field, after)) = rest.split_once('}').filter(|_| brace == "{") else {
                return Err(failed(format!("`{brace}` is not matched")));
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::parse(name, field).map_err(failed)?);
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self {
            name,
            text: text.to_owned(),
            parts,
        })
    }

    /// The path of a file, which lies inside the dataset.
    pub(crate) fn render(
        &self,
        chunk_index: usize,
        file_index: usize,
        video_key: &str,
    ) -> Result<String, Error> {
        let mut path = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => path.push_str(text),
                Part::ChunkIndex(width) => path.push_str(&width.format(chunk_index)),
                Part::FileIndex(width) => path.push_str(&width.format(file_index)),
                Part::VideoKey => path.push_str(video_key),
            }
        }
        match fault(&path) {
            None => Ok(path),
            Some(fault) => Err(Error::Template {
                field: self.name,
                template: self.text.clone(),
                reason: format!("it gives the path `{}`, which {fault}", path.escape_debug()),
            }),
        }
    }
}

impl Part {
    fn parse(template: &str, field: &str) -> Result<Self, String> {
        let (name, format) = field.split_once(':').unwrap_or((field, ""));
        let with_format = |part: fn(Width) -> Self| {
            let width = Width::parse(format).ok_or_else(|| {
                format!(
                    "the format `{format}` of `{name}` is not known; expected one such as `03d`"
                )
            })?;
            Ok(part(width))
        };
        match name {
            "chunk_index" => with_format(Self::ChunkIndex),
            "file_index" => with_format(Self::FileIndex),
            "video_key" if template == "video_path" => match format {
                "" | "s" => Ok(Self::VideoKey),
                _ => Err(format!(
                    "the format `{format}` of `video_key` is not known; expected none"
                )),
            },
            _ => Err(format!(
                "the field `{{{name}}}` is not known; {VERSION_3_FIELDS}{}",
                if template == "video_path" {
                    " and `{video_key}`"
                } else {
                    ""
                }
            )),
        }
    }
}

const VERSION_3_FIELDS: &str = "format v3.0 fills in `{chunk_index}`, `{file_index}`";

impl Width {
    fn parse(format: &str) -> Option<Self> {
        let digits = format.strip_suffix('d').unwrap_or(format);
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let min = if digits.is_empty() {
            0
        } else {
            digits.parse().ok()?
        };
        (min <= MAX_WIDTH).then_some(Self {
            min,
            zeros: digits.starts_with('0'),
        })
    }

    fn format(self, number: usize) -> String {
        let min = self.min;
        if self.zeros {
            format!("{number:0min$}")
        } else {
            format!("{number:min$}")
        }
    }
}

/// Why a path is not one inside a dataset.
fn fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        Some("is empty")
    } else if path.starts_with('/') {
        Some("is absolute; expected one inside the dataset")
    } else if path.contains(['\\', '\0']) {
        Some("holds a character that no path here may have")
    } else if path.split('/').any(|part| part == "..") {
        Some("leads out of the dataset")
    } else if path.split('/').any(|part| part.is_empty() || part == ".") {
        Some("has an empty part")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in_as_python_does_it() {
        for (template, expected) in [
            (
                "data/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
                "data/chunk-002/file-1234.mp4",
            ),
            ("{chunk_index}/{file_index:d}.mp4", "2/1234.mp4"),
            ("{chunk_index:02d}{chunk_index:4d}", "02   2"),
            (
                "videos/{video_key}/{file_index:06}",
                "videos/cam.top/001234",
            ),
            ("{{{video_key:s}}}", "{cam.top}"),
            ("plain", "plain"),
        ] {
            let path = PathTemplate::parse("video_path", template)
                .unwrap()
                .render(2, 1234, "cam.top");
            assert_eq!(path.unwrap(), expected, "{template}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_filled_in_is_refused_with_the_reason() {
        for (template, reason) in [
            (
                "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
                "`{episode_chunk}` is not known",
            ),
            ("{chunk_index:03x}", "`03x` of `chunk_index` is not known"),
            ("{chunk_index!r}", "`{chunk_index!r}` is not known"),
            ("{chunk_index:99999999999999999999d}", "is not known"),
            ("{}", "`{}` is not known"),
            ("{chunk_index", "`{` is not matched"),
            ("chunk_index}", "`}` is not matched"),
        ] {
            let error = PathTemplate::parse("data_path", template)
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{template}: {error}");
            assert!(error.contains("data_path"), "{template}: {error}");
        }
        assert!(
            PathTemplate::parse("data_path", "{video_key}").is_err(),
            "a data file has no camera"
        );
    }

    #[test]
    fn no_path_leads_out_of_the_dataset() {
        for (template, key) in [
            ("/etc/{file_index}", "cam"),
            ("../{file_index}", "cam"),
            ("{video_key}/{file_index}", "../../secret"),
            ("{video_key}/{file_index}", ""),
            ("a/./{file_index}", "cam"),
            ("a\\{file_index}", "cam"),
            ("", "cam"),
        ] {
            let path = PathTemplate::parse("video_path", template)
                .unwrap()
                .render(0, 0, key);
            assert!(path.is_err(), "{template} {key}: {path:?}");
        }
    }
}
