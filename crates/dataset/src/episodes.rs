//! The episode table: `meta/episodes/**.parquet`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::info::Feature;
use crate::limits::MAX_TABLE_ROWS;
use crate::parquet::{File, RawColumn};
use crate::table::{TableColumn, Wanted};
use crate::{DType, Error, Info, Reader, Storage, Values, Warning, storage};

/// The most files of the table that are looked for where they cannot be listed.
const MAX_FILES: usize = 100_000;

/// Where the table's files lie.
const FOLDER: &str = "meta/episodes";

/// One episode: how long it is, and where its rows and pictures lie.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    episode_index: usize,
    length: usize,
    from_index: usize,
    data_file: usize,
    videos: Vec<VideoSpan>,
    tasks: Vec<Arc<str>>,
}

impl Episode {
    /// Its number in the dataset: what its rows have as `episode_index`.
    #[must_use]
    pub fn episode_index(&self) -> usize {
        self.episode_index
    }

    /// The number of its frames, at least 1.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The global number of its first frame: what that frame's row has as `index`.
    #[must_use]
    pub fn from_index(&self) -> usize {
        self.from_index
    }

    /// The file that holds its rows, as a position in [`Metadata::data_files`](crate::Metadata::data_files).
    #[must_use]
    pub fn data_file(&self) -> usize {
        self.data_file
    }

    /// Where a camera's frames lie, or `None` when the episode table names no video of this camera for it.
    #[must_use]
    pub fn video(&self, camera: &str) -> Option<&VideoSpan> {
        self.videos.iter().find(|span| &*span.camera == camera)
    }

    /// Where the frames of all its cameras lie: the camera's key and the place.
    pub fn videos(&self) -> impl Iterator<Item = (&str, &VideoSpan)> {
        self.videos.iter().map(|span| (&*span.camera, span))
    }

    /// The sentences of its tasks, as the episode table has them; none where it has no such column.
    pub fn tasks(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().map(|task| &**task)
    }
}

/// The part of a video file that holds one episode of one camera.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoSpan {
    camera: Arc<str>,
    path: Arc<str>,
    from_timestamp_s: f64,
    to_timestamp_s: Option<f64>,
}

impl VideoSpan {
    /// The path of the video file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// When the episode's first frame shows, in seconds on the file's clock.
    ///
    /// Often a running sum of durations, so off by rounding errors: by 1e-13 s, or by microseconds where it was added up in
    /// single precision.
    #[must_use]
    pub fn from_timestamp_s(&self) -> f64 {
        self.from_timestamp_s
    }

    /// When the episode ends, in seconds on the file's clock: in some datasets the end of its last frame, in others the
    /// time of it. How long an episode is follows from [`Episode::length`] alone.
    #[must_use]
    pub fn to_timestamp_s(&self) -> Option<f64> {
        self.to_timestamp_s
    }
}

/// What the episode table holds.
#[derive(Debug)]
pub(crate) struct Table {
    /// In the order of their frames, which follow one another without gaps.
    pub(crate) episodes: Vec<Episode>,
    pub(crate) data_files: Vec<String>,
}

/// Reads and checks all files of the table.
pub(crate) fn read(
    storage: &dyn Storage,
    reader: Reader,
    info: &Info,
    warnings: &mut Vec<Warning>,
) -> Result<Table, Error> {
    let paths = match storage::list(storage, FOLDER)? {
        Some(paths) => paths,
        None => probe(storage)?,
    };
    // Names with a leading dot are not data: `._file-000.parquet` is what macOS leaves beside a copied file.
    let paths: Vec<&String> = paths
        .iter()
        .filter(|path| {
            path.ends_with(".parquet") && !path.split('/').any(|part| part.starts_with('.'))
        })
        .collect();
    if paths.is_empty() {
        return Err(Error::Missing {
            path: format!("{FOLDER}/chunk-000/file-000.parquet"),
            needed_for: Some("format v3.0 has the episode table there".to_owned()),
            source: None,
        });
    }
    let mut rows = Rows::new(info);
    for path in paths {
        rows.read_file(storage, reader, path)?;
    }
    rows.finish(warnings)
}

/// The files of the table where they cannot be listed: those of a chunk follow one another, and so do chunks, as writers number them.
fn probe(storage: &dyn Storage) -> Result<Vec<String>, Error> {
    let mut paths = Vec::new();
    for chunk in 0_usize.. {
        for file in 0_usize.. {
            let path = format!("{FOLDER}/chunk-{chunk:03}/file-{file:03}.parquet");
            match storage::open(storage, &path) {
                Ok(_) => paths.push(path),
                Err(error) if error.is_missing_file() && file == 0 => return Ok(paths),
                Err(error) if error.is_missing_file() => break,
                Err(error) => return Err(error),
            }
            // A server may have an answer to everything.
            if paths.len() > MAX_FILES {
                return Err(Error::TooLarge {
                    path: FOLDER.to_owned(),
                    what: "number of files of the episode table",
                    found: paths.len() as u64,
                    limit: MAX_FILES as u64,
                });
            }
        }
    }
    Ok(paths)
}

/// A row of the table, before it is known how it fits with the others.
#[derive(Debug)]
struct Row {
    /// The file of the table that it is from, as a position in `Rows::files`.
    file: usize,
    to_index: usize,
    data_path: Arc<str>,
    episode: Episode,
}

/// The rows read so far.
struct Rows<'a> {
    info: &'a Info,
    cameras: Vec<(&'a Feature, Arc<str>)>,
    files: Vec<String>,
    rows: Vec<Row>,
    texts: Texts,
}

/// Texts that many episodes share.
#[derive(Debug, Default)]
struct Texts(BTreeSet<Arc<str>>);

impl Texts {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&new));
        new
    }
}

impl<'a> Rows<'a> {
    fn new(info: &'a Info) -> Self {
        let cameras = info
            .features()
            .iter()
            .filter(|feature| feature.dtype() == DType::Video)
            .map(|feature| (feature, Arc::from(feature.key())))
            .collect();
        Self {
            info,
            cameras,
            files: Vec::new(),
            rows: Vec::new(),
            texts: Texts::default(),
        }
    }

    fn read_file(
        &mut self,
        storage: &dyn Storage,
        reader: Reader,
        path: &str,
    ) -> Result<(), Error> {
        let mut file = File::open(storage::open(storage, path)?, path, reader)?;
        let held = self.rows.len() + file.num_rows();
        if held > MAX_TABLE_ROWS {
            return Err(Error::TooLarge {
                path: path.to_owned(),
                what: "number of episodes, with the files before it,",
                found: held as u64,
                limit: MAX_TABLE_ROWS as u64,
            });
        }
        let columns = Columns::read(&mut file, path, &self.cameras)?;
        for row in 0..columns.num_rows {
            let parsed = self.parse(path, &columns, row)?;
            self.rows.push(parsed);
        }
        self.files.push(path.to_owned());
        Ok(())
    }

    fn parse(&mut self, path: &str, columns: &Columns, row: usize) -> Result<Row, Error> {
        let episode_index = columns.episode_index.index(row)?;
        let length = columns.length.index(row)?;
        let from_index = columns.from_index.index(row)?;
        let to_index = columns.to_index.index(row)?;
        let fault = |field: &str, found: usize, expected: String| Error::Episode {
            path: path.to_owned(),
            episode_index,
            field: field.to_owned(),
            found: found.to_string(),
            expected,
        };
        if length == 0 {
            return Err(fault(
                "length",
                length,
                "an episode has at least one frame".to_owned(),
            ));
        }
        if from_index.checked_add(length) != Some(to_index) {
            let expected = format!(
                "`dataset_from_index` {from_index} plus `length` {length} is {}",
                from_index as u128 + length as u128
            );
            return Err(fault("dataset_to_index", to_index, expected));
        }
        let chunk = columns.data_chunk.index(row)?;
        let data_path = self
            .info
            .data_path
            .render(chunk, columns.data_file.index(row)?, "")?;
        let mut videos = Vec::with_capacity(self.cameras.len());
        for ((_, camera), video) in self.cameras.iter().zip(&columns.videos) {
            // A camera that was off for an episode has nulls.
            let Some(chunk) = video.chunk.index_or_null(row)? else {
                continue;
            };
            let Some(template) = &self.info.video_path else {
                continue;
            };
            let path = template.render(chunk, video.file.index(row)?, camera)?;
            videos.push(VideoSpan {
                camera: Arc::clone(camera),
                path: self.texts.share(&path),
                from_timestamp_s: video.from_s.finite(row)?,
                to_timestamp_s: video.to_s.as_ref().and_then(|to_s| to_s.float(row)),
            });
        }
        let tasks = columns
            .tasks
            .as_ref()
            .map(|tasks| tasks.texts(row, &mut self.texts));
        let episode = Episode {
            episode_index,
            length,
            from_index,
            data_file: 0,
            videos,
            tasks: tasks.unwrap_or_default(),
        };
        Ok(Row {
            file: self.files.len(),
            to_index,
            data_path: self.texts.share(&data_path),
            episode,
        })
    }

    fn finish(mut self, warnings: &mut Vec<Warning>) -> Result<Table, Error> {
        self.drop_duplicates(warnings)?;
        self.rows.sort_by_key(|row| row.episode.from_index);
        self.check_contiguity()?;
        let data_files = self.number_data_files()?;
        if self.rows.is_empty() {
            return Err(Error::NoEpisodes);
        }
        let episodes = self.rows.into_iter().map(|row| row.episode).collect();
        Ok(Table {
            episodes,
            data_files,
        })
    }

    /// Keeps the first of rows that are there twice.
    fn drop_duplicates(&mut self, warnings: &mut Vec<Warning>) -> Result<(), Error> {
        let mut kept: Vec<Row> = Vec::with_capacity(self.rows.len());
        let mut positions: BTreeMap<usize, usize> = BTreeMap::new();
        // By file: the first episode that it repeats, and how many.
        let mut repeated: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for row in std::mem::take(&mut self.rows) {
            let episode_index = row.episode.episode_index;
            let Some(first) = positions
                .get(&episode_index)
                .map(|position| &kept[*position])
            else {
                positions.insert(episode_index, kept.len());
                kept.push(row);
                continue;
            };
            if let Some((field, found, expected)) = difference(&row, first) {
                return Err(Error::Episode {
                    path: self.files[row.file].clone(),
                    episode_index,
                    field: field.to_owned(),
                    found,
                    expected: format!(
                        "the row for the same episode in `{}` has {expected}; keep the right one of them",
                        self.files[first.file]
                    ),
                });
            }
            repeated.entry(row.file).or_insert((episode_index, 0)).1 += 1;
        }
        warnings.extend(repeated.into_iter().map(|(file, (episode_index, count))| {
            Warning::DuplicateEpisodes {
                path: self.files[file].clone(),
                episode_index,
                count,
            }
        }));
        self.rows = kept;
        Ok(())
    }

    fn check_contiguity(&self) -> Result<(), Error> {
        let mut end = 0;
        let mut before = None;
        for row in &self.rows {
            let Episode {
                episode_index,
                from_index,
                ..
            } = row.episode;
            if from_index != end {
                let expected = match before {
                    None => "the dataset starts at 0".to_owned(),
                    Some(before) => format!("episode {before} before it ends at {end}"),
                };
                return Err(Error::Episode {
                    path: self.files[row.file].clone(),
                    episode_index,
                    field: "dataset_from_index".to_owned(),
                    found: from_index.to_string(),
                    expected,
                });
            }
            end = row.to_index;
            before = Some(episode_index);
        }
        Ok(())
    }

    /// Numbers the data files in the order of the frames that they hold, which has to be an order: the frames of a file
    /// follow one another.
    fn number_data_files(&mut self) -> Result<Vec<String>, Error> {
        let mut data_files: Vec<Arc<str>> = Vec::new();
        let mut known: BTreeSet<Arc<str>> = BTreeSet::new();
        for row in &mut self.rows {
            if data_files.last() != Some(&row.data_path) {
                if !known.insert(Arc::clone(&row.data_path)) {
                    return Err(Error::Episode {
                        path: self.files[row.file].clone(),
                        episode_index: row.episode.episode_index,
                        field: "data/file_index".to_owned(),
                        found: format!("that of `{}`", row.data_path),
                        expected: "the episode just before it is in another file, and that file also holds earlier ones"
                            .to_owned(),
                    });
                }
                data_files.push(Arc::clone(&row.data_path));
            }
            row.episode.data_file = data_files.len() - 1;
        }
        Ok(data_files.iter().map(|path| path.to_string()).collect())
    }
}

/// The first field in which two rows of one episode differ: its name, and both values.
fn difference(row: &Row, first: &Row) -> Option<(&'static str, String, String)> {
    let (a, b) = (&row.episode, &first.episode);
    if a.length != b.length {
        return Some(("length", a.length.to_string(), b.length.to_string()));
    }
    if a.from_index != b.from_index {
        return Some((
            "dataset_from_index",
            a.from_index.to_string(),
            b.from_index.to_string(),
        ));
    }
    if row.data_path != first.data_path {
        return Some((
            "data/file_index",
            row.data_path.to_string(),
            first.data_path.to_string(),
        ));
    }
    if a.videos != b.videos {
        return Some((
            "videos",
            format!("{:?}", a.videos),
            format!("{:?}", b.videos),
        ));
    }
    if a.tasks != b.tasks {
        return Some(("tasks", format!("{:?}", a.tasks), format!("{:?}", b.tasks)));
    }
    None
}

/// The columns of one file of the table that are needed; its statistics, most of its bytes, are not.
struct Columns {
    num_rows: usize,
    episode_index: TableColumn,
    length: TableColumn,
    from_index: TableColumn,
    to_index: TableColumn,
    data_chunk: TableColumn,
    data_file: TableColumn,
    videos: Vec<VideoColumns>,
    tasks: Option<TaskColumn>,
}

struct VideoColumns {
    chunk: TableColumn,
    file: TableColumn,
    from_s: TableColumn,
    to_s: Option<TableColumn>,
}

impl Columns {
    fn read(file: &mut File, path: &str, cameras: &[(&Feature, Arc<str>)]) -> Result<Self, Error> {
        let mut wanted = Wanted::new(file, path);
        let reason = "every episode table has it";
        wanted.need(&["episode_index"], reason)?;
        wanted.need(&["length"], reason)?;
        wanted.need(&["dataset_from_index"], reason)?;
        wanted.need(&["dataset_to_index"], reason)?;
        wanted.need(&["data/chunk_index", "data_chunk_index"], reason)?;
        wanted.need(&["data/file_index", "data_file_index"], reason)?;
        let mut has_end = Vec::with_capacity(cameras.len());
        for (camera, _) in cameras {
            let key = camera.key();
            let reason = "info.json declares that camera as a video";
            wanted.need(&[&format!("videos/{key}/chunk_index")], reason)?;
            wanted.need(&[&format!("videos/{key}/file_index")], reason)?;
            wanted.need(&[&format!("videos/{key}/from_timestamp")], reason)?;
            has_end.push(wanted.want(&format!("videos/{key}/to_timestamp")));
        }
        let has_tasks = wanted.want("tasks");

        let names = wanted.into_names();
        let num_rows = file.num_rows();
        let columns = file.read(
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
            0..num_rows,
        )?;
        let mut columns = names.into_iter().zip(columns);
        let mut next = || {
            columns
                .next()
                .expect("the reader returns a column for each name")
        };
        let mut scalar = || {
            let (name, column) = next();
            TableColumn::new(path, name, column)
        };
        let episode_index = scalar()?;
        let length = scalar()?;
        let from_index = scalar()?;
        let to_index = scalar()?;
        let data_chunk = scalar()?;
        let data_file = scalar()?;
        let mut videos = Vec::with_capacity(cameras.len());
        for has_end in has_end {
            videos.push(VideoColumns {
                chunk: scalar()?,
                file: scalar()?,
                from_s: scalar()?,
                to_s: if has_end { Some(scalar()?) } else { None },
            });
        }
        let tasks = has_tasks.then(|| TaskColumn::new(next().1));
        Ok(Self {
            num_rows,
            episode_index,
            length,
            from_index,
            to_index,
            data_chunk,
            data_file,
            videos,
            tasks,
        })
    }
}

/// The column `tasks`: a list of texts for each row, or one text.
struct TaskColumn {
    /// The end of each row's texts in `texts`.
    ends: Vec<usize>,
    texts: Values,
}

impl TaskColumn {
    fn new(column: RawColumn) -> Self {
        let ends = match column.lists.as_slice() {
            [] => (1..=column.leaf.len()).collect(),
            [lens, ..] => lens
                .iter()
                .scan(0_usize, |end, len| {
                    *end = end.saturating_add(*len);
                    Some(*end)
                })
                .collect(),
        };
        Self {
            ends,
            texts: column.leaf,
        }
    }

    fn texts(&self, row: usize, shared: &mut Texts) -> Vec<Arc<str>> {
        let Values::Str(texts) = &self.texts else {
            return Vec::new();
        };
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        (start..self.ends[row])
            .filter_map(|position| texts.get(position))
            .filter(|text| !text.is_empty())
            .map(|text| shared.share(text))
            .collect()
    }
}
