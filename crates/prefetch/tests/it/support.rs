//! Files to serve, and how to compare them.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use prefetch::{Source, SourceOptions};
use tempfile::TempDir;

/// A folder with three files; the last is larger than one window.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    folder
}

pub(crate) fn fill(folder: &Path) {
    let write = |key: &str, bytes: &[u8]| {
        let path = folder.join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    write("meta/info.json", b"{}");
    write("data/chunk-000/file 1+%.bin", b"a name to be escaped");
    write("data/chunk-000/file-000.bin", &big());
}

pub(crate) fn big() -> Vec<u8> {
    (0..1_000_000_u32).map(|i| (i % 251) as u8).collect()
}

/// Options with which nothing takes long.
pub(crate) fn quick() -> SourceOptions {
    let mut options = SourceOptions::default();
    options.backoff = Duration::from_millis(1);
    options.timeout = Duration::from_secs(20);
    options
}

pub(crate) fn read(source: &Source, key: &str) -> Result<Vec<u8>, String> {
    let mut reader = source.open(key).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Every file reads as it does from the folder itself.
pub(crate) fn assert_same_files(source: &Source, folder: &Path) {
    let local = Source::local(folder).unwrap();
    for key in [
        "meta/info.json",
        "data/chunk-000/file 1+%.bin",
        "data/chunk-000/file-000.bin",
    ] {
        assert_read(source, key, &read(&local, key).unwrap());
    }
}

/// A file reads as it should. (What differs of a million bytes is not printed.)
pub(crate) fn assert_read(source: &Source, key: &str, expected: &[u8]) {
    match read(source, key) {
        Ok(bytes) => assert!(bytes == expected, "{key}: other bytes"),
        Err(error) => panic!("{error}"),
    }
}

/// Tests that need a variable run themselves in a process that has it.
pub(crate) fn with_env(test: &str, vars: &[(&str, &str)]) {
    let this = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(this);
    command
        .args([test, "--exact", "--nocapture"])
        .envs(vars.iter().copied());
    let output = command.env("IN_CHILD", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

pub(crate) fn in_child() -> bool {
    std::env::var_os("IN_CHILD").is_some()
}
