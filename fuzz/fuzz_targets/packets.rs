//! Any bytes as a video file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzz::packets::packets(bytes);
});
