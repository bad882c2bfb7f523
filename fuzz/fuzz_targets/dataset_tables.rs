//! Any bytes as the episode table and the task table.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzz::tables::tables(bytes);
});
