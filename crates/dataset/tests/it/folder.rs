//! Datasets on disk.

use dataset::{Folder, Metadata, Storage};
use testkit::FIXTURES;

#[test]
fn a_fixture_is_read_from_its_folder_and_all_its_files_are_there() {
    for name in FIXTURES {
        let storage = Folder::new(testkit::fixtures::dataset(name));
        let metadata = Metadata::read(&storage).unwrap();
        metadata.check_files(&storage, metadata.episodes()).unwrap();
    }
}

#[test]
fn files_are_listed_at_any_depth_in_order_and_a_missing_folder_has_none() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["a/z.txt", "a/b/c.txt", "a/b.txt", "other.txt"] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "text").unwrap();
    }
    let storage = Folder::new(folder.path());
    assert_eq!(
        storage.list("a").unwrap(),
        ["a/b.txt", "a/b/c.txt", "a/z.txt"]
    );
    assert_eq!(storage.list("none").unwrap(), [] as [&str; 0]);
    assert_eq!(storage.root(), folder.path());
    assert_eq!(
        storage.open("a/none.txt").err().unwrap().kind(),
        std::io::ErrorKind::NotFound
    );
}

#[cfg(unix)]
#[test]
fn a_loop_of_links_ends() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("a/a")).unwrap();
    let error = Folder::new(folder.path()).list("a").unwrap_err();
    assert!(error.to_string().contains("loop"), "{error}");
}
