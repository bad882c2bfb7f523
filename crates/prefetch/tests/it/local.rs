//! Local directories as sources.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use prefetch::{Error, Source};

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in [
        "meta/info.json",
        "meta/episodes/chunk-000/file-001.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
    ] {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    dir
}

fn source(dir: &Path) -> Source {
    Source::parse(dir.to_str().unwrap()).unwrap()
}

#[test]
fn listing_is_recursive_sorted_and_empty_for_a_missing_directory() {
    let dir = tree();
    let source = source(dir.path());
    let episodes = [
        "meta/episodes/chunk-000/file-000.parquet",
        "meta/episodes/chunk-000/file-001.parquet",
    ];
    assert_eq!(source.list("meta/episodes").unwrap(), episodes);
    assert_eq!(source.list("videos").unwrap(), [""; 0]);
}

#[test]
fn a_reader_reads_and_seeks() {
    let dir = tree();
    let mut reader = source(dir.path()).open("meta/info.json").unwrap();
    reader.seek(SeekFrom::Start(5)).unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "info.json");
}

#[test]
fn a_file_url_is_a_local_path() {
    let dir = tree();
    let by_url = Source::parse(&format!("file://{}", dir.path().display())).unwrap();
    assert_eq!(by_url.name(), source(dir.path()).name());
}

#[test]
fn a_loop_of_links_is_an_error_not_a_hang() {
    let dir = tree();
    std::os::unix::fs::symlink(dir.path().join("meta"), dir.path().join("meta/again")).unwrap();
    let error = source(dir.path()).list("meta").unwrap_err();
    assert!(matches!(error, Error::TooDeep { limit: 16, .. }), "{error}");
}

#[test]
fn linked_files_are_listed_and_opened_as_the_hub_cache_lays_them_out() {
    let dir = tree();
    std::os::unix::fs::symlink("info.json", dir.path().join("meta/linked.json")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("meta/dangling.json")).unwrap();
    let source = source(dir.path());
    assert!(
        source
            .list("meta")
            .unwrap()
            .contains(&"meta/dangling.json".to_owned())
    );
    let mut text = String::new();
    source
        .open("meta/linked.json")
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "meta/info.json");
    assert!(
        source
            .open("meta/dangling.json")
            .unwrap_err()
            .is_not_found()
    );
}

#[test]
fn errors_name_the_path_and_the_remedy() {
    let dir = tree();
    let missing = Source::parse("/no/such/dataset").unwrap_err();
    assert!(missing.is_not_found());
    assert!(
        missing.to_string().contains("/no/such/dataset"),
        "{missing}"
    );

    let file = Source::local(&dir.path().join("meta/info.json")).unwrap_err();
    assert!(matches!(file, Error::Root { .. }), "{file}");

    let directory = source(dir.path()).open("meta").unwrap_err();
    assert!(
        matches!(directory, Error::Io { action: "open", .. }),
        "{directory}"
    );
}

#[test]
fn a_device_or_a_pipe_is_an_error_not_a_hang() {
    let dir = tree();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("meta/zero.json")).unwrap();
    let pipe = dir.path().join("meta/pipe.json");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success(), "mkfifo is one of coreutils");
    for key in ["meta/zero.json", "meta/pipe.json"] {
        let error = source(dir.path()).open(key).unwrap_err();
        assert_eq!(error.io_kind(), std::io::ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn a_url_with_a_query_is_refused_without_showing_it() {
    let error = Source::parse("https://example.com/data?signature=SECRET").unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("query") && message.contains("`https://example.com/data`"),
        "{message}"
    );
    assert!(!message.contains("SECRET"), "{message}");
    assert!(!format!("{error:?}").contains("SECRET"));
}

#[test]
fn a_source_is_shared_between_threads() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Source>();
    assert_send_sync::<prefetch::Reader>();
}
