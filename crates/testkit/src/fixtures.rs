//! The bundled datasets and what is true of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tempfile::TempDir;

/// The names of the bundled datasets; `fixtures/README.md` says what each exercises.
pub const FIXTURES: [&str; 6] = [
    "pusht_like",
    "aloha_like",
    "h264_gop30",
    "hevc_small",
    "image_only",
    "no_camera",
];

/// The folder of the bundled datasets, `fixtures/` of the repository.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The root of the bundled dataset `name`.
pub fn dataset(name: &str) -> PathBuf {
    fixtures().join(name).join("dataset")
}

/// Copies the bundled dataset `name` into a temporary folder, to be damaged there.
///
/// # Panics
///
/// If a file cannot be copied.
pub fn copy_dataset(name: &str) -> TempDir {
    let copy = TempDir::new().expect("a temporary folder can be made");
    copy_tree(&dataset(name), copy.path())
        .unwrap_or_else(|error| panic!("copy the fixture {name}: {error}"));
    copy
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else {
            // The contents alone: a fixture may be read-only, its copy must not be.
            std::fs::write(to, std::fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// The stored picture of a plain item, if there is one: only some items have theirs stored.
pub fn plain_frame(name: &str, dataset_index: usize, camera: &str) -> Option<PathBuf> {
    frame(name, &format!("plain_{dataset_index}_{camera}.png"))
}

/// The stored picture of a windowed item's `k`-th delta of `camera`, if there is one.
pub fn windowed_frame(name: &str, dataset_index: usize, camera: &str, k: usize) -> Option<PathBuf> {
    frame(name, &format!("windowed_{dataset_index}_{camera}_{k}.png"))
}

fn frame(name: &str, file: &str) -> Option<PathBuf> {
    let path = fixtures().join(name).join("frames").join(file);
    path.exists().then_some(path)
}

/// What lerobot's own reader returned for a bundled dataset: its `truth.json`.
#[derive(Debug, Clone)]
pub struct Truth {
    /// Frames per second.
    pub fps: f64,
    /// For each windowed key its deltas, in seconds.
    pub delta_timestamps: BTreeMap<String, Vec<f64>>,
    /// Items read without windows.
    pub plain: Vec<TruthItem>,
    /// Items read with `delta_timestamps`.
    pub windowed: Vec<TruthItem>,
}

/// One item of a dataset.
#[derive(Debug, Clone)]
pub struct TruthItem {
    /// The item's global index, its row number in the dataset.
    pub dataset_index: usize,
    /// Every key but the cameras, `<key>_is_pad` for each windowed key (cameras too), and `task`.
    pub item: Map<String, Value>,
}

impl Truth {
    /// Reads the truth of the bundled dataset `name`.
    ///
    /// # Panics
    ///
    /// If the file is missing or not as `fixtures/README.md` describes it.
    pub fn read(name: &str) -> Self {
        let path = fixtures().join(name).join("truth.json");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
        let truth: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("parse {}: {error}", path.display()));
        Self::parse(&truth)
            .unwrap_or_else(|| panic!("{} is not in the form of a truth.json", path.display()))
    }

    fn parse(truth: &Value) -> Option<Self> {
        let deltas = |deltas: &Value| {
            deltas
                .as_array()?
                .iter()
                .map(Value::as_f64)
                .collect::<Option<Vec<f64>>>()
        };
        let items = |items: &Value| {
            items
                .as_array()?
                .iter()
                .map(TruthItem::parse)
                .collect::<Option<Vec<_>>>()
        };
        Some(Self {
            fps: truth.get("fps")?.as_f64()?,
            delta_timestamps: truth
                .get("delta_timestamps")?
                .as_object()?
                .iter()
                .map(|(key, value)| Some((key.clone(), deltas(value)?)))
                .collect::<Option<_>>()?,
            plain: items(truth.get("plain")?)?,
            windowed: items(truth.get("windowed")?)?,
        })
    }
}

impl TruthItem {
    fn parse(item: &Value) -> Option<Self> {
        Some(Self {
            dataset_index: usize::try_from(item.get("dataset_index")?.as_u64()?).ok()?,
            item: item.get("item")?.as_object()?.clone(),
        })
    }
}
