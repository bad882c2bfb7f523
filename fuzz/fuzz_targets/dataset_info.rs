//! Any bytes as meta/info.json.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzz::tables::info(bytes);
});
