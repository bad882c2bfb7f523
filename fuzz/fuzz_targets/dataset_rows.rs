//! Any bytes as a data file, through both Parquet readers.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzz::tables::rows(bytes);
});
