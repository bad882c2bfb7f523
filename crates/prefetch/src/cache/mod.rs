//! What is fetched before it is wanted: kept in a folder for as long as somebody needs it.

mod fetcher;
mod options;
mod piece;
mod reader;
mod store;

pub use fetcher::{CacheStats, FetchThreads, Fetcher, Lease};
pub use options::CacheOptions;
pub(crate) use reader::CachedReader;
