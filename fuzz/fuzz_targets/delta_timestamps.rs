//! Any numbers as delta_timestamps.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzz::deltas::delta_timestamps(bytes);
});
