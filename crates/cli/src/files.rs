//! Files that are whole at any time.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Puts a file with these contents in the place of `path`: who reads it, or finds it after a crash, finds the old contents or the new.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| std::fs::rename(&part, path));
    if replaced.is_err() {
        // What is left of it is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&part);
    }
    replaced
}
