//! `meta/info.json`: what the dataset says of itself.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::limits::{MAX_FEATURES, MAX_JSON_BYTES, MAX_ROW_ELEMENTS};
use crate::names::Names;
use crate::template::PathTemplate;
use crate::{Damage, Error, Storage, Warning, damage, storage};

/// Where info.json lies.
pub(crate) const INFO_PATH: &str = "meta/info.json";

/// The one version of the format that is read.
const VERSION: &str = "v3.0";

/// Where lerobot puts data files unless info.json says otherwise.
const DEFAULT_DATA_PATH: &str = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";

/// What `meta/info.json` says: frames per second, features, totals, and how files are named.
#[derive(Debug, Clone)]
pub struct Info {
    fps: f64,
    features: Vec<Feature>,
    robot_type: Option<String>,
    total_episodes: Option<usize>,
    total_frames: Option<usize>,
    pub(crate) data_path: PathTemplate,
    pub(crate) video_path: Option<PathTemplate>,
    json: String,
}

impl Info {
    /// The file's own text, for members that nothing here reads.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The version of the format: `v3.0`, the only one that is read.
    #[must_use]
    pub fn codebase_version(&self) -> &str {
        VERSION
    }

    /// Frames per second: positive and finite.
    #[must_use]
    pub fn fps(&self) -> f64 {
        self.fps
    }

    /// The features, in the order of the file, without those whose dtype is not read.
    #[must_use]
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The feature named `key`.
    #[must_use]
    pub fn feature(&self, key: &str) -> Option<&Feature> {
        self.features.iter().find(|feature| feature.key == key)
    }

    /// The features that hold pictures, videos and images alike, in the order of the file.
    pub fn camera_keys(&self) -> impl Iterator<Item = &str> {
        self.features
            .iter()
            .filter(|feature| feature.is_camera())
            .map(Feature::key)
    }

    /// The kind of robot, where the file tells.
    #[must_use]
    pub fn robot_type(&self) -> Option<&str> {
        self.robot_type.as_deref()
    }

    /// The number of episodes that the file claims; the episode table has the last word.
    #[must_use]
    pub fn total_episodes(&self) -> Option<usize> {
        self.total_episodes
    }

    /// The number of frames that the file claims; the episode table has the last word.
    #[must_use]
    pub fn total_frames(&self) -> Option<usize> {
        self.total_frames
    }

    pub(crate) fn read(storage: &dyn Storage) -> Result<(Self, Vec<Warning>), Error> {
        let bytes = storage::read_whole(storage, INFO_PATH, MAX_JSON_BYTES)?;
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Result<(Self, Vec<Warning>), Error> {
        // The version first: the fields of another one may have other types.
        let RawVersion { codebase_version } = json(bytes)?;
        if codebase_version.as_deref() != Some(VERSION) {
            return Err(Error::Version {
                found: codebase_version,
            });
        }
        let raw: RawInfo = json(bytes)?;
        if !(raw.fps.is_finite() && raw.fps > 0.0) {
            return Err(Error::Info {
                field: "fps".to_owned(),
                found: raw.fps.to_string(),
                expected: "a number of frames per second, positive and finite",
            });
        }
        if raw.features.0.len() > MAX_FEATURES {
            return Err(Error::Info {
                field: "features".to_owned(),
                found: format!("{} features", raw.features.0.len()),
                expected: "at most 4096 features",
            });
        }
        let mut features: Vec<Feature> = Vec::new();
        let mut warnings = Vec::new();
        for (key, raw) in raw.features.0 {
            let Some(dtype) = DType::parse(&raw.dtype) else {
                warnings.push(Warning::UnreadFeature {
                    key,
                    dtype: raw.dtype,
                });
                continue;
            };
            if features.iter().any(|feature| feature.key == key) {
                return Err(Error::Info {
                    field: format!("features.{key}"),
                    found: "declared twice".to_owned(),
                    expected: "each feature once",
                });
            }
            features.push(Feature::new(key, dtype, raw)?);
        }
        let template = |field, template: String| PathTemplate::parse(field, &template);
        let data_path = raw
            .data_path
            .unwrap_or_else(|| DEFAULT_DATA_PATH.to_owned());
        let info = Self {
            fps: raw.fps,
            features,
            robot_type: raw.robot_type,
            total_episodes: raw.total_episodes,
            total_frames: raw.total_frames,
            data_path: template("data_path", data_path)?,
            video_path: raw
                .video_path
                .map(|path| template("video_path", path))
                .transpose()?,
            json: String::from_utf8_lossy(bytes).into_owned(),
        };
        let mut features = info.features.iter();
        let camera = features.find(|feature| feature.dtype == DType::Video);
        if let (None, Some(camera)) = (&info.video_path, camera) {
            return Err(Error::Info {
                field: "video_path".to_owned(),
                found: format!("null, although `{}` is a video", camera.key),
                expected: "the template of the videos' paths",
            });
        }
        Ok((info, warnings))
    }
}

/// A feature: one named value of every frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    key: String,
    dtype: DType,
    shape: Vec<usize>,
    names: Vec<String>,
    /// The `info` or `video_info` of a camera.
    info: Map<String, Value>,
}

impl Feature {
    fn new(key: String, dtype: DType, raw: RawFeature) -> Result<Self, Error> {
        let shape = raw.shape.ok_or_else(|| Error::Info {
            field: format!("features.{key}.shape"),
            found: "nothing".to_owned(),
            expected: "a list of numbers, such as [7] or [2, 3]",
        })?;
        let elements = shape
            .iter()
            .try_fold(1_usize, |product, axis| product.checked_mul(*axis));
        if elements.is_none_or(|elements| elements > MAX_ROW_ELEMENTS) {
            return Err(Error::Info {
                field: format!("features.{key}.shape"),
                found: format!("{shape:?}"),
                expected: "at most 16777216 elements in a row",
            });
        }
        let info = match (raw.info, raw.video_info) {
            (Value::Object(info), _) | (_, Value::Object(info)) => info,
            _ => Map::new(),
        };
        Ok(Self {
            key,
            dtype,
            shape,
            names: raw.names.0,
            info,
        })
    }

    /// The feature's name.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The type of its elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape as info.json declares it.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The shape of one row of its column: the declared one, but `[]` for `[1]`, as lerobot has it, whatever the storage.
    ///
    /// A picture of an image feature is one element: `[]`.
    #[must_use]
    pub fn row_shape(&self) -> &[usize] {
        match (self.dtype, self.shape.as_slice()) {
            (DType::Image | DType::Video, _) | (_, [1]) => &[],
            (_, shape) => shape,
        }
    }

    /// The names of the elements or axes, as far as there are any; nested ones in the order in which they are written.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it holds pictures, as a video or as images.
    #[must_use]
    pub fn is_camera(&self) -> bool {
        matches!(self.dtype, DType::Video | DType::Image)
    }

    /// Whether its pictures are depth maps: `is_depth_map` or `video.is_depth_map` in its `info` or `video_info`.
    #[must_use]
    pub fn is_depth(&self) -> bool {
        self.is_camera() && self.info_value("is_depth_map").and_then(Value::as_bool) == Some(true)
    }

    /// A number from the camera's `info` (in older datasets `video_info`), with or without the prefix `video.`: `fps`,
    /// `depth_min`.
    #[must_use]
    pub fn info_number(&self, name: &str) -> Option<f64> {
        self.info_value(name)?.as_f64()
    }

    /// A text from the camera's `info` (in older datasets `video_info`), with or without the prefix `video.`: `codec`,
    /// `pix_fmt`.
    #[must_use]
    pub fn info_text(&self, name: &str) -> Option<&str> {
        self.info_value(name)?.as_str()
    }

    fn info_value(&self, name: &str) -> Option<&Value> {
        self.info
            .get(name)
            .or_else(|| self.info.get(&format!("video.{name}")))
    }

    /// The size of a camera's pictures: by the axes' names where there are any, else by where the channels (1, 3 or 4)
    /// stand in the shape; last, if both ends would do. `None` when the shape is no picture's.
    #[must_use]
    pub fn picture_size(&self) -> Option<PictureSize> {
        if !self.is_camera() {
            return None;
        }
        let axis = |name| {
            self.names
                .iter()
                .position(|found| found.eq_ignore_ascii_case(name))
        };
        let (height, width) = match (axis("height"), axis("width"), self.shape.as_slice()) {
            (Some(height), Some(width), shape) if shape.len() == self.names.len() => {
                (*shape.get(height)?, *shape.get(width)?)
            }
            (_, _, &[height, width, 1 | 3 | 4] | &[1 | 3 | 4, height, width]) => (height, width),
            _ => return None,
        };
        Some(PictureSize { height, width })
    }
}

/// The size of a picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSize {
    /// The number of rows.
    pub height: usize,
    /// The number of pixels in a row.
    pub width: usize,
}

/// The type of a feature's elements, as info.json names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum DType {
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Bool,
    String,
    /// Pictures in the data files.
    Image,
    /// Pictures in video files.
    Video,
}

impl DType {
    const ALL: [Self; 14] = [
        Self::Float32,
        Self::Float64,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Bool,
        Self::String,
        Self::Image,
        Self::Video,
    ];

    /// The name in info.json.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Image => "image",
            Self::Video => "video",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|source| match damage::of(bytes) {
        Damage::Unknown => Error::Json {
            path: INFO_PATH.to_owned(),
            source: Box::new(source),
        },
        _ => damage::error(INFO_PATH, bytes.len() as u64, bytes, bytes),
    })
}

#[derive(Deserialize)]
struct RawVersion {
    #[serde(default)]
    codebase_version: Option<String>,
}

#[derive(Deserialize)]
struct RawInfo {
    fps: f64,
    features: RawFeatures,
    #[serde(default)]
    robot_type: Option<String>,
    #[serde(default)]
    total_episodes: Option<usize>,
    #[serde(default)]
    total_frames: Option<usize>,
    #[serde(default)]
    data_path: Option<String>,
    #[serde(default)]
    video_path: Option<String>,
}

#[derive(Deserialize)]
struct RawFeature {
    dtype: String,
    #[serde(default)]
    shape: Option<Vec<usize>>,
    #[serde(default)]
    names: Names,
    #[serde(default)]
    info: Value,
    #[serde(default)]
    video_info: Value,
}

/// The features in the order of the file, which a map of JSON values would not keep.
struct RawFeatures(Vec<(String, RawFeature)>);

impl<'de> Deserialize<'de> for RawFeatures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = RawFeatures;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of features")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFeatures, A::Error> {
                let mut features = Vec::new();
                while let Some(feature) = map.next_entry()? {
                    features.push(feature);
                }
                Ok(RawFeatures(features))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(text: &str) -> Feature {
        let raw: RawFeature = serde_json::from_str(text).unwrap();
        let dtype = DType::parse(&raw.dtype).unwrap();
        Feature::new("camera".to_owned(), dtype, raw).unwrap()
    }

    #[test]
    fn both_spellings_of_is_depth_map_are_known_in_both_places() {
        for (text, expected) in [
            (
                r#"{"dtype":"video","shape":[4,4,1],"info":{"is_depth_map":true}}"#,
                true,
            ),
            (
                r#"{"dtype":"video","shape":[4,4,1],"info":{"video.is_depth_map":true}}"#,
                true,
            ),
            (
                r#"{"dtype":"video","shape":[4,4,1],"video_info":{"is_depth_map":true}}"#,
                true,
            ),
            (
                r#"{"dtype":"image","shape":[4,4,1],"video_info":{"video.is_depth_map":true}}"#,
                true,
            ),
            (
                r#"{"dtype":"video","shape":[4,4,1],"info":{"video.is_depth_map":false}}"#,
                false,
            ),
            (r#"{"dtype":"video","shape":[4,4,3],"info":null}"#, false),
            (r#"{"dtype":"video","shape":[4,4,3]}"#, false),
            (
                r#"{"dtype":"float32","shape":[4],"info":{"is_depth_map":true}}"#,
                false,
            ),
        ] {
            assert_eq!(feature(text).is_depth(), expected, "{text}");
        }
    }

    #[test]
    fn the_info_block_is_read_with_and_without_its_prefix() {
        let camera = feature(
            r#"{"dtype":"video","shape":[4,4,1],"info":{"video.codec":"hevc","depth_unit":"mm","depth_max":10.0}}"#,
        );
        assert_eq!(camera.info_text("codec"), Some("hevc"));
        assert_eq!(camera.info_text("depth_unit"), Some("mm"));
        assert_eq!(camera.info_number("depth_max"), Some(10.0));
        assert_eq!(camera.info_number("fps"), None);
    }

    #[test]
    fn the_picture_size_follows_names_then_channels() {
        for (text, expected) in [
            (r#"{"dtype":"video","shape":[48,64,3]}"#, Some((48, 64))),
            (r#"{"dtype":"video","shape":[3,48,64]}"#, Some((48, 64))),
            (r#"{"dtype":"image","shape":[3,48,3]}"#, Some((3, 48))),
            (
                r#"{"dtype":"video","shape":[3,4,3],"names":["channels","height","width"]}"#,
                Some((4, 3)),
            ),
            (
                r#"{"dtype":"video","shape":[64,48,3],"names":["Width","Height","rgb"]}"#,
                Some((48, 64)),
            ),
            (r#"{"dtype":"video","shape":[48,64]}"#, None),
            (
                r#"{"dtype":"video","shape":[48,64],"names":["height","width"]}"#,
                Some((48, 64)),
            ),
            (r#"{"dtype":"video","shape":[48,64,2]}"#, None),
            (r#"{"dtype":"float32","shape":[48,64,3]}"#, None),
        ] {
            let size = feature(text)
                .picture_size()
                .map(|size| (size.height, size.width));
            assert_eq!(size, expected, "{text}");
        }
    }
}
