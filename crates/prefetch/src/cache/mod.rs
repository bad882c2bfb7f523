//! What is fetched before it is wanted: kept in a folder for as long as somebody needs it.

mod fetcher;
mod piece;
mod reader;
mod store;

pub use fetcher::{CacheStats, FetchThreads, Fetcher, Lease};
pub(crate) use reader::CachedReader;
