//! Hostile files for `dataset`.

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::sync::LazyLock;

use dataset::{DataFile, Metadata, ReadSeek, Reader, Storage};

/// The files of a bundled dataset that the tables are about; its videos are only named.
struct Fixture {
    info: &'static [u8],
    episodes: &'static [u8],
    tasks: &'static [u8],
    rows: &'static [u8],
    videos: &'static [&'static str],
}

macro_rules! fixture {
    ($name:literal, $videos:expr) => {
        Fixture {
            info: include_bytes!(concat!("../../fixtures/", $name, "/dataset/meta/info.json")),
            episodes: include_bytes!(concat!(
                "../../fixtures/",
                $name,
                "/dataset/meta/episodes/chunk-000/file-000.parquet"
            )),
            tasks: include_bytes!(concat!(
                "../../fixtures/",
                $name,
                "/dataset/meta/tasks.parquet"
            )),
            rows: include_bytes!(concat!(
                "../../fixtures/",
                $name,
                "/dataset/data/chunk-000/file-000.parquet"
            )),
            videos: $videos,
        }
    };
}

/// Every type of column stands in one of them. `cargo xtask fuzz` writes seeds by their position here.
static FIXTURES: [Fixture; 3] = [
    fixture!("no_camera", &[]),
    fixture!("image_only", &[]),
    fixture!(
        "pusht_like",
        &["videos/observation.image/chunk-000/file-000.mp4"]
    ),
];

const READERS: &[Reader] = &[
    Reader::Parquet,
    #[cfg(feature = "arrow2")]
    Reader::Arrow2,
];

const INFO: &str = "meta/info.json";
const EPISODES: &str = "meta/episodes/chunk-000/file-000.parquet";
const TASKS: &str = "meta/tasks.parquet";
const ROWS: &str = "data/chunk-000/file-000.parquet";

/// `bytes` as `meta/info.json`. Returns the number of episodes read.
pub fn info(bytes: &[u8]) -> usize {
    let mut files = Memory::of(&FIXTURES[0]);
    files.put(INFO, bytes);
    read_metadata(&files, Reader::Parquet)
}

/// `bytes` as the episode table and the task table: the first's length in four bytes, little-endian, then both.
///
/// Returns the number of episodes read, by all readers together.
pub fn tables(bytes: &[u8]) -> usize {
    let Some((length, tables)) = bytes.split_first_chunk() else {
        return 0;
    };
    let length = u32::from_le_bytes(*length) as usize;
    let (episodes, tasks) = tables.split_at(length.min(tables.len()));
    let mut files = Memory::of(&FIXTURES[0]);
    files.put(EPISODES, episodes);
    files.put(TASKS, tasks);
    READERS
        .iter()
        .map(|&reader| read_metadata(&files, reader))
        .sum()
}

/// `bytes` as a data file: one byte that picks the fixture whose metadata describe it, then the file.
///
/// The two readers need not agree on a damaged file: pages without checksums may come out wrong from either.
///
/// Returns the number of episodes read, by all readers together.
pub fn rows(bytes: &[u8]) -> usize {
    let Some((pick, file)) = bytes.split_first() else {
        return 0;
    };
    let pick = usize::from(*pick) % FIXTURES.len();
    let mut num_read = 0;
    for metadata in &METADATA[pick] {
        let media = Box::new(Cursor::new(file.to_vec()));
        let Ok(mut data_file) = DataFile::open(media, ROWS, metadata) else {
            continue;
        };
        // Every reader meets the file's first and last row groups; the ones between go the same way.
        let episodes = metadata.episodes();
        for episode in [episodes.first(), episodes.last()].into_iter().flatten() {
            let Ok(rows) = data_file.read_episode(episode) else {
                continue;
            };
            assert_eq!(rows.len(), episode.length());
            for column in rows.columns() {
                let per_row: usize = column.shape().iter().product();
                let expected = rows.len() * per_row;
                assert_eq!(column.values().len(), expected, "{}", column.name());
            }
            num_read += 1;
        }
    }
    num_read
}

/// The metadata of each fixture, read by each reader.
static METADATA: LazyLock<[Vec<Metadata>; 3]> = LazyLock::new(|| {
    FIXTURES.each_ref().map(|fixture| {
        let files = Memory::of(fixture);
        let read = |&reader| {
            Metadata::read_with(&files, reader).expect("the fixture's metadata are whole")
        };
        READERS.iter().map(read).collect()
    })
});

/// Metadata that are read at all keep their promises. Returns the number of episodes.
fn read_metadata(files: &Memory, reader: Reader) -> usize {
    let Ok(metadata) = Metadata::read_with(files, reader) else {
        return 0;
    };
    let mut next_index = 0;
    for episode in metadata.episodes() {
        let (number, length) = (episode.episode_index(), episode.length());
        assert!(length > 0);
        assert!(episode.data_file() < metadata.data_files().len());
        assert_eq!(episode.from_index(), next_index);
        next_index += length;
        assert_eq!(
            metadata.episode(number).map(|found| found.episode_index()),
            Some(number)
        );
        assert_eq!(metadata.locate(next_index - 1), Some((number, length - 1)));
    }
    assert_eq!(metadata.total_frames(), next_index);
    assert_eq!(metadata.locate(next_index), None);
    metadata.episodes().len()
}

/// A dataset in memory.
struct Memory(BTreeMap<String, Vec<u8>>);

impl Memory {
    fn of(fixture: &Fixture) -> Memory {
        let mut files = Memory(BTreeMap::new());
        files.put(INFO, fixture.info);
        files.put(EPISODES, fixture.episodes);
        files.put(TASKS, fixture.tasks);
        files.put(ROWS, fixture.rows);
        for video in fixture.videos {
            files.put(video, b"");
        }
        files
    }

    fn put(&mut self, path: &str, bytes: &[u8]) {
        self.0.insert(path.to_owned(), bytes.to_vec());
    }
}

impl Storage for Memory {
    fn open(&self, path: &str) -> io::Result<Box<dyn ReadSeek>> {
        let bytes = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(bytes.clone())))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let within = |path: &&String| {
            path.strip_prefix(dir)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        Ok(self.0.keys().filter(within).cloned().collect())
    }
}
