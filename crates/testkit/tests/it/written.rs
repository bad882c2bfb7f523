//! A written dataset is what its spec says.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::PageType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use testkit::video::{self, Encoder};
use testkit::{
    Camera, Compression, Dataset, Declared, Dtype, Feature, Fps, FromTimestamp, PageVersion,
    ParquetOptions, RowGroups, Spec, Split, Storage, TextType, ToTimestamp, code,
};

/// All rows of a parquet file, and the rows of each row group.
fn read(path: &Path) -> (RecordBatch, Vec<i64>) {
    let file = File::open(path).unwrap_or_else(|error| panic!("open {}: {error}", path.display()));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let groups = reader
        .metadata()
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .collect();
    let mut batches = reader.with_batch_size(1 << 20).build().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    (batch, groups)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch
        .column_by_name(name)
        .unwrap_or_else(|| panic!("no column {name} in {:?}", batch.schema()))
}

fn integers(batch: &RecordBatch, name: &str) -> Vec<i64> {
    column(batch, name)
        .as_primitive::<Int64Type>()
        .values()
        .to_vec()
}

fn floats(batch: &RecordBatch, name: &str) -> Vec<f64> {
    column(batch, name)
        .as_primitive::<Float64Type>()
        .values()
        .to_vec()
}

fn episodes(dataset: &Dataset) -> RecordBatch {
    read(
        &dataset
            .root()
            .join("meta/episodes/chunk-000/file-000.parquet"),
    )
    .0
}

fn info(dataset: &Dataset) -> Value {
    let text = std::fs::read_to_string(dataset.root().join("meta/info.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_default_is_laid_out_as_todays_writer_does_it() {
    let dataset = Spec::default().write();
    let (data, groups) = read(&dataset.root().join("data/chunk-000/file-000.parquet"));
    assert_eq!(groups, [3, 5, 2]);
    assert_eq!(integers(&data, "index"), (0..10).collect::<Vec<_>>());
    assert_eq!(
        integers(&data, "episode_index"),
        [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
    );
    assert_eq!(
        integers(&data, "frame_index"),
        [0, 1, 2, 0, 1, 2, 3, 4, 0, 1]
    );
    assert_eq!(
        column(&data, "timestamp")
            .as_primitive::<Float32Type>()
            .value(7),
        0.4
    );
    let state = column(&data, "observation.state").as_fixed_size_list();
    assert_eq!(
        state.value(9).as_primitive::<Float32Type>().values()[..],
        [9.0, 9.0]
    );

    let episodes = episodes(&dataset);
    assert_eq!(integers(&episodes, "length"), [3, 5, 2]);
    assert_eq!(integers(&episodes, "dataset_from_index"), [0, 3, 8]);
    assert_eq!(integers(&episodes, "dataset_to_index"), [3, 8, 10]);
    assert_eq!(integers(&episodes, "data/file_index"), [0, 0, 0]);
    let tasks = column(&episodes, "tasks").as_list::<i32>();
    assert_eq!(tasks.value(2).as_string::<i32>().value(0), "push the block");

    let info = info(&dataset);
    assert_eq!(
        (&info["fps"], &info["total_frames"]),
        (&Value::from(10), &Value::from(10))
    );
    assert_eq!(info["video_path"], Value::Null);
    assert_eq!(
        info["features"]["observation.state"]["shape"],
        Value::from(vec![2])
    );
}

#[test]
fn features_stand_in_the_order_of_the_spec() {
    let cameras = vec![Camera::image("z"), Camera::image("a")];
    let dataset = Spec {
        cameras,
        ..Spec::default()
    }
    .write();
    let text = std::fs::read_to_string(dataset.root().join("meta/info.json")).unwrap();
    let at = |key: &str| {
        text.find(&format!("\"{key}\": {{"))
            .unwrap_or_else(|| panic!("no {key} in {text}"))
    };
    assert!(
        at("observation.state") < at("z") && at("z") < at("a") && at("a") < at("timestamp"),
        "{text}"
    );
}

#[test]
fn files_chunks_and_row_groups_are_as_asked() {
    let mut spec = Spec::new(10, &[3, 7, 2, 9, 4, 5]);
    spec.data_files = Split::Counts(vec![1, 3, 2]);
    spec.episode_files = Split::Every(4);
    spec.row_groups = RowGroups::Rows(5);
    spec.chunks_size = 2;
    spec.data_path = "rows/{chunk_index}/part_{file_index:03d}.parquet".to_owned();
    let dataset = spec.write();

    let groups = ["rows/0/part_000", "rows/0/part_001", "rows/1/part_000"]
        .map(|path| read(&dataset.root().join(format!("{path}.parquet"))).1);
    assert_eq!(groups, [vec![3], vec![5, 5, 5, 3], vec![5, 4]]);
    assert_eq!(
        dataset.data_file(2),
        dataset.root().join("rows/1/part_000.parquet")
    );

    let first = episodes(&dataset);
    let (second, _) = read(
        &dataset
            .root()
            .join("meta/episodes/chunk-000/file-001.parquet"),
    );
    assert_eq!(integers(&first, "data/file_index"), [0, 1, 1, 1]);
    assert_eq!(integers(&second, "data/chunk_index"), [1, 1]);
    assert_eq!(integers(&second, "data/file_index"), [0, 0]);
    assert_eq!(integers(&second, "episode_index"), [4, 5]);
}

#[test]
fn every_dtype_and_form_is_stored_as_asked() {
    let mut spec = Spec::new(10, &[4]);
    let dtypes = [
        (Dtype::Float32, DataType::Float32),
        (Dtype::Float64, DataType::Float64),
        (Dtype::Int8, DataType::Int8),
        (Dtype::Int16, DataType::Int16),
        (Dtype::Int32, DataType::Int32),
        (Dtype::Int64, DataType::Int64),
        (Dtype::UInt8, DataType::UInt8),
        (Dtype::UInt16, DataType::UInt16),
        (Dtype::UInt32, DataType::UInt32),
        (Dtype::UInt64, DataType::UInt64),
        (Dtype::Bool, DataType::Boolean),
        (Dtype::String, DataType::Utf8),
    ];
    for (dtype, _) in &dtypes {
        spec.features
            .push(Feature::new(dtype.name(), *dtype, &[1], |row, _| {
                row.index as f64
            }));
    }
    spec.features
        .push(Feature::new("matrix", Dtype::Float32, &[2, 3], |row, k| {
            (row.index * 10 + k) as f64
        }));
    let list_of_one = Feature::new("one", Dtype::Int64, &[1], |row, _| row.index as f64);
    spec.features.push(Feature {
        storage: Storage::List,
        ..list_of_one
    });
    let ragged = Feature::new("ragged", Dtype::Float64, &[2], |_, k| k as f64);
    spec.features.push(Feature {
        storage: Storage::Ragged(|row| row.index),
        declared: Declared::Not,
        ..ragged
    });
    spec.feature_mut("action").declared = Declared::As(Dtype::Float64, vec![17]);
    spec.feature_mut("index").dtype = Dtype::Float64;
    let dataset = spec.write();
    let (data, _) = read(&dataset.data_file(0));

    for (dtype, stored) in &dtypes {
        assert_eq!(column(&data, dtype.name()).data_type(), stored);
    }
    assert_eq!(column(&data, "string").as_string::<i32>().value(3), "3");
    let matrix = column(&data, "matrix").as_list::<i32>().value(1);
    assert_eq!(
        matrix
            .as_list::<i32>()
            .value(1)
            .as_primitive::<Float32Type>()
            .values()[..],
        [13.0, 14.0, 15.0]
    );
    assert_eq!(
        column(&data, "one")
            .as_list::<i32>()
            .value(2)
            .as_primitive::<Int64Type>()
            .values()[..],
        [2]
    );
    let ragged = column(&data, "ragged").as_list::<i32>();
    assert_eq!(
        (0..4)
            .map(|row| ragged.value(row).len())
            .collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(floats(&data, "index"), [0.0, 1.0, 2.0, 3.0]);

    let features = &info(&dataset)["features"];
    assert_eq!(features["action"]["shape"], Value::from(vec![17]));
    assert_eq!(features["action"]["dtype"], "float64");
    assert_eq!(features["matrix"]["shape"], Value::from(vec![2, 3]));
    assert_eq!(features.get("ragged"), None);
}

/// How the first row group of a file stores a column: the codec, and the types of its data pages.
fn pages(path: &Path, name: &str) -> (String, Vec<PageType>) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let columns = reader.metadata().row_group(0).columns();
    let at = columns
        .iter()
        .position(|column| column.column_path().string() == name)
        .unwrap();
    let codec = format!("{:?}", columns[at].compression()).to_lowercase();
    let pages = reader
        .get_row_group(0)
        .unwrap()
        .get_column_page_reader(at)
        .unwrap();
    let types = pages.map(|page| page.unwrap().page_type());
    (
        codec,
        types
            .filter(|&page| page != PageType::DICTIONARY_PAGE)
            .collect(),
    )
}

#[test]
fn parquet_is_written_as_asked() {
    let compressions = [
        (Compression::None, "uncompressed"),
        (Compression::Snappy, "snappy"),
        (Compression::Gzip, "gzip"),
        (Compression::Zstd, "zstd"),
    ];
    let versions = [
        (PageVersion::V1, PageType::DATA_PAGE),
        (PageVersion::V2, PageType::DATA_PAGE_V2),
    ];
    for (compression, name) in compressions {
        for (pages_version, page_type) in versions {
            for rows_per_page in [None, Some(10)] {
                let mut spec = Spec::new(10, &[40]);
                spec.parquet = ParquetOptions {
                    compression,
                    pages: pages_version,
                    rows_per_page,
                    ..ParquetOptions::default()
                };
                let dataset = spec.write();
                let path = dataset.data_file(0);
                assert_eq!(integers(&read(&path).0, "index").len(), 40);
                for column in ["index", "observation.state.list.element"] {
                    let (codec, types) = pages(&path, column);
                    assert!(codec.starts_with(name), "{codec} is not {name}");
                    assert_eq!(
                        types,
                        vec![page_type; if rows_per_page.is_some() { 4 } else { 1 }],
                        "{column}"
                    );
                }
            }
        }
    }
}

#[test]
fn tasks_are_written_in_any_order_and_type() {
    for text in [TextType::Utf8, TextType::LargeUtf8, TextType::Dictionary] {
        let mut spec = Spec::new(10, &[2, 3]);
        spec.tasks.rows = [(7, "c"), (0, "a"), (3, "b")]
            .map(|(index, text)| (index, text.to_owned()))
            .to_vec();
        spec.tasks.column = "__index_level_0__".to_owned();
        spec.tasks.text = text;
        spec.tasks.of = |episode, frame| if episode == 0 { 7 } else { [0, 3, 99][frame] };
        let dataset = spec.write();
        let (tasks, _) = read(&dataset.root().join("meta/tasks.parquet"));
        assert_eq!(integers(&tasks, "task_index"), [7, 0, 3]);
        let texts = column(&tasks, "__index_level_0__");
        let first = match text {
            TextType::Utf8 => texts.as_string::<i32>().value(0),
            TextType::LargeUtf8 => texts.as_string::<i64>().value(0),
            TextType::Dictionary => texts
                .as_any_dictionary()
                .values()
                .as_string::<i32>()
                .value(0),
        };
        assert_eq!(first, "c");
        assert_eq!(
            integers(&read(&dataset.data_file(0)).0, "task_index"),
            [7, 7, 0, 3, 99]
        );
        let lists = episodes(&dataset);
        let lists = column(&lists, "tasks").as_list::<i32>();
        assert_eq!(
            lists.value(1).as_string::<i32>().iter().collect::<Vec<_>>(),
            [Some("a"), Some("b")]
        );
    }
}

#[test]
fn info_and_column_names_can_be_changed() {
    let episode_column = |name: &str| name.replace("data/", "data_");
    let dataset = Spec {
        episode_column,
        ..Spec::default()
    }
    .write();
    assert_eq!(integers(&episodes(&dataset), "data_chunk_index"), [0, 0, 0]);
    dataset.edit_info(|info| info["total_frames"] = 11.into());
    assert_eq!(info(&dataset)["total_frames"], 11);
}

/// One data file; camera `a` in three videos, `b` in two, split elsewhere.
fn two_cameras() -> Spec {
    let mut spec = Spec::new(10, &[4, 6, 3, 5]);
    let a = Camera {
        files: Split::Counts(vec![1, 2, 1]),
        ..Camera::video("a")
    };
    let encoder = Encoder::new("libx264", 4, &["-crf", "12", "-bf", "0"]);
    let b = Camera {
        files: Split::Every(2),
        height: 48,
        width: 80,
        encoder,
        ..Camera::video("b")
    };
    spec.cameras = vec![a, b];
    spec
}

#[test]
fn every_camera_has_its_own_files_and_offsets() {
    let dataset = two_cameras().write();
    let episodes = episodes(&dataset);
    assert_eq!(integers(&episodes, "videos/a/file_index"), [0, 1, 1, 2]);
    assert_eq!(integers(&episodes, "videos/b/file_index"), [0, 0, 1, 1]);
    assert_eq!(
        floats(&episodes, "videos/a/from_timestamp"),
        [0.0, 0.0, 0.6, 0.0]
    );
    assert_eq!(
        floats(&episodes, "videos/b/from_timestamp"),
        [0.0, 0.4, 0.0, 0.3]
    );
    assert_eq!(floats(&episodes, "videos/b/to_timestamp")[0], 0.4);

    for (position, camera) in dataset.spec().cameras.iter().enumerate() {
        let segments = dataset.spec().segments(position);
        for (file, count) in [[4, 9, 5].as_slice(), &[10, 8]][position]
            .iter()
            .enumerate()
        {
            let pictures = video::decode(
                &dataset.video_file(&camera.key, file),
                camera.height,
                camera.width,
            );
            assert_eq!(pictures.len(), *count, "{} {file}", camera.key);
            for segment in segments.iter().filter(|segment| segment.file == file) {
                for frame in 0..segment.length {
                    let picture = &pictures[segment.first_frame + frame];
                    let code = code::read(&picture.pixels, picture.height, picture.width);
                    assert_eq!(
                        (code.episode, code.frame, code.camera),
                        (segment.episode_index, frame, position)
                    );
                }
            }
        }
    }
    assert_eq!(
        info(&dataset)["features"]["b"]["info"]["video.codec"],
        "h264"
    );
}

#[test]
fn timestamps_can_be_wrong_in_known_ways() {
    let mut spec = two_cameras();
    spec.fps = Fps::from((30_000, 1001));
    spec.cameras[0].from_timestamp = FromTimestamp::Float32Sum;
    spec.cameras[0].to_timestamp = ToTimestamp::Missing;
    spec.cameras[1].from_timestamp =
        FromTimestamp::Shifted(|segment| if segment.file == 1 { 5.0 } else { 0.0 });
    spec.cameras[1].to_timestamp = ToTimestamp::LastFrame;
    let dataset = spec.write();
    let episodes = episodes(&dataset);
    let sums = floats(&episodes, "videos/a/from_timestamp");
    assert_eq!(sums[2], f64::from((6.0 * 1001.0 / 30_000.0) as f32));
    assert_ne!(sums[2], 6.0 * 1001.0 / 30_000.0);
    assert_eq!(episodes.column_by_name("videos/a/to_timestamp"), None);
    let shifted = floats(&episodes, "videos/b/from_timestamp");
    assert_eq!((shifted[0], shifted[2]), (0.0, 5.0));
    assert_eq!(
        floats(&episodes, "videos/b/to_timestamp")[0],
        3.0 * 1001.0 / 30_000.0
    );
}

#[test]
fn pictures_can_lie_in_the_data_files() {
    let cameras = vec![Camera::image("observation.image")];
    let dataset = Spec {
        cameras,
        ..Spec::default()
    }
    .write();
    let (data, _) = read(&dataset.data_file(0));
    let image = column(&data, "observation.image").as_struct();
    let png = image
        .column_by_name("bytes")
        .unwrap()
        .as_binary::<i32>()
        .value(7);
    let path = dataset.root().join("seventh.png");
    std::fs::write(&path, png).unwrap();
    let picture = testkit::read_png(&path);
    let code = code::read(&picture.pixels, picture.height, picture.width);
    assert_eq!((code.episode, code.frame), (1, 4));
}

#[test]
fn the_same_spec_gives_the_same_bytes() {
    let [one, other] = [two_cameras().write(), two_cameras().write()];
    let bytes = |path: std::path::PathBuf| std::fs::read(path).unwrap();
    assert_eq!(bytes(one.data_file(0)), bytes(other.data_file(0)));
    assert_eq!(
        bytes(one.video_file("a", 1)),
        bytes(other.video_file("a", 1))
    );
}
