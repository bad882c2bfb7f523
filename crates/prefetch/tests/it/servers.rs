//! Servers that others have written.

use std::io::Read;

use prefetch::{CacheOptions, Error, FetchThreads, Source};
use testkit::nginx::Nginx;
use testkit::s3::{self, S3};

use crate::support::{assert_same_files, big, fill, folder, in_child, quick, with_env};

const BIG: &str = "data/chunk-000/file-000.bin";

#[test]
fn nginx_gives_the_same_bytes_as_the_folder() {
    let folder = folder();
    let nginx = Nginx::start(folder.path());
    let source = Source::with_options(&nginx.url(), &quick()).unwrap();
    assert_same_files(&source, folder.path());
    assert!(source.open("none").unwrap_err().is_not_found());
    fetch_a_part(&source);
}

/// A range comes through the cache; where the file is replaced meanwhile, the next one is refused, for it would be of another file.
#[test]
fn nginx_tells_of_a_file_that_has_changed() {
    let folder = folder();
    let nginx = Nginx::start(folder.path());
    let source = Source::with_options(&nginx.url(), &quick()).unwrap();
    let mut reader = source.open(BIG).unwrap();
    reader.read_exact(&mut [0; 5000]).unwrap();
    std::fs::write(folder.path().join(BIG), vec![7; big().len()]).unwrap();
    let other_time = std::time::SystemTime::UNIX_EPOCH;
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path().join(BIG));
    file.unwrap().set_modified(other_time).unwrap();
    let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("changed while it was being read"), "{error}");
}

fn fetch_a_part(source: &Source) {
    let cache = tempfile::tempdir().unwrap();
    let threads = FetchThreads::start(source, &CacheOptions::new(cache.path())).unwrap();
    let before = source.fetch_stats().bytes_fetched;
    let part = 300_000..700_000;
    let lease = threads.fetcher().lease(&[(BIG, vec![part])]).unwrap();
    let never = std::sync::atomic::AtomicBool::new(false);
    lease.wait(BIG, &(0..u64::MAX), &never).unwrap();
    assert!(lease.is_whole());
    assert_eq!(source.fetch_stats().bytes_fetched - before, 400_000);
}

/// The service's settings come from the environment, which is the process's.
#[test]
fn s3_gives_the_same_bytes_as_the_folder() {
    if in_child() {
        let folder = std::env::var("FOLDER").unwrap();
        let source = Source::with_options("s3://datasets/pusht", &quick());
        if std::env::var("EXPECTED").unwrap() == "nothing" {
            let listed = source.and_then(|source| source.list("data"));
            let error = listed.unwrap_err();
            assert!(matches!(error, Error::Remote { .. }), "{error}");
            let message = error.to_string();
            assert!(message.contains("AWS_"), "{message}");
            assert!(!message.contains("not-much-of-a-secret"), "{message}");
            return;
        }
        let source = source.unwrap();
        assert_same_files(&source, folder.as_ref());
        let keys = source.list("data").unwrap();
        assert_eq!(keys, ["data/chunk-000/file 1+%.bin", BIG]);
        assert_eq!(source.listed_size(BIG), Some(1_000_000));
        assert!(source.open("none").unwrap_err().is_not_found());
        assert_eq!(source.list("videos").unwrap(), [""; 0]);
        fetch_a_part(&source);
        return;
    }
    let folder = folder();
    let buckets = tempfile::tempdir().unwrap();
    fill(&buckets.path().join(s3::BUCKET).join("pusht"));
    let server = S3::start(buckets.path());
    for (secret, expected) in [(s3::SECRET_KEY, "all"), ("a wrong one", "nothing")] {
        let vars = [
            ("AWS_ENDPOINT_URL", server.endpoint()),
            ("AWS_ACCESS_KEY_ID", s3::ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", secret.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("FOLDER", folder.path().display().to_string()),
            ("EXPECTED", expected.to_owned()),
        ];
        let vars: Vec<(&str, &str)> = vars.iter().map(|(k, v)| (*k, v.as_str())).collect();
        with_env("servers::s3_gives_the_same_bytes_as_the_folder", &vars);
    }
}
