//! Every bound on what a file may ask for, with its reason.
//!
//! They are far above what any dataset needs, and low enough that a hostile file cannot take the machine with it. Beside them
//! stands one rule: a count from a file is compared with the bytes that remain before anything is reserved for it.

/// The size of `meta/info.json` and `meta/stats.json`, in bytes: they are read whole. The largest seen are below 1 MB.
pub(crate) const MAX_JSON_BYTES: u64 = 64 << 20;

/// The features of a dataset: each is looked up by name. The largest humanoids seen have below 100.
pub(crate) const MAX_FEATURES: usize = 4096;

/// The number of elements of one row of a feature: 16 million are a 4096x4096 matrix.
pub(crate) const MAX_ROW_ELEMENTS: usize = 1 << 24;

/// The rows of the episode table and of the task table: they are held in memory for as long as the dataset is.
pub(crate) const MAX_TABLE_ROWS: usize = 1 << 22;

/// The frames of one episode: 16 million are six days at 30 frames per second.
pub(crate) const MAX_EPISODE_FRAMES: usize = 1 << 24;

/// The memory that the rows of one episode may take, in bytes: a pool holds many such.
pub(crate) const MAX_EPISODE_BYTES: usize = 4 << 30;

/// The size of a Parquet footer, in bytes: it is read whole. 10,000 row groups of 20 columns take about 20 MB.
pub(crate) const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// How deep a Parquet schema may nest. A `[2, 3]` feature has 5 levels; readers recurse once a level.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 32;

/// How deep the structures of a Parquet footer may nest. The format's own are 8 deep.
pub(crate) const MAX_THRIFT_DEPTH: usize = 32;

/// The values in one column of one row group: a million rows of 256 values.
pub(crate) const MAX_CHUNK_VALUES: u64 = 1 << 28;

/// The size of one page when decompressed, in bytes. Writers aim at 1 MB; a page of pictures may be some hundreds.
pub(crate) const MAX_PAGE_BYTES: u64 = 1 << 30;
