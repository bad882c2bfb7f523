//! A web server on loopback, and every fault that a network has.

use std::io::{Read, Seek, SeekFrom};

use prefetch::{Error, Source};
use testkit::server::{Fault, Server};

use crate::support::{assert_read, assert_same_files, big, folder, quick, read};

const BIG: &str = "data/chunk-000/file-000.bin";

#[test]
fn a_web_server_gives_the_same_bytes_as_the_folder() {
    let folder = folder();
    let server = Server::start(folder.path());
    let source = Source::with_options(&server.files_url(), &quick()).unwrap();
    assert_same_files(&source, folder.path());
    assert!(source.is_remote() && source.revision().is_none());
    assert!(matches!(source.list("data"), Err(Error::CannotList { .. })));
    assert!(source.open("none").unwrap_err().is_not_found());
}

#[test]
fn only_what_is_read_is_fetched() {
    let folder = folder();
    let server = Server::start(folder.path());
    let source = Source::with_options(&server.files_url(), &quick()).unwrap();
    let mut reader = source.open(BIG).unwrap();
    // A part that is asked for at once comes alone, in one request.
    reader.seek(SeekFrom::Start(500_000)).unwrap();
    let mut part = vec![0; 10_000];
    reader.read_exact(&mut part).unwrap();
    assert_eq!(part, big()[500_000..510_000]);
    assert_eq!(source.fetch_stats().bytes_fetched, 10_000);
    // A footer comes with its length.
    reader.seek(SeekFrom::End(-8)).unwrap();
    reader.read_exact(&mut [0; 8]).unwrap();
    reader.seek(SeekFrom::End(-5_000)).unwrap();
    let mut footer = vec![0; 4_992];
    reader.read_exact(&mut footer).unwrap();
    assert_eq!(footer, big()[995_000..999_992]);
    let requests = server.requests();
    let ranges: Vec<_> = requests
        .iter()
        .filter_map(|request| request.range)
        .collect();
    assert_eq!(ranges, [(500_000, 509_999), (967_232, 999_999)]);
    // Beyond the end there is nothing, and before the beginning no place.
    reader.seek(SeekFrom::End(10)).unwrap();
    assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    assert!(reader.seek(SeekFrom::End(-1_000_001)).is_err());
}

/// Does `fault` to the first requests for a part of a file, and nothing to those after.
fn fail_first(server: &Server, times: usize, fault: Fault) {
    let mut left = times;
    server.set_faults(move |request| {
        if request.range.is_none() || left == 0 {
            return Fault::None;
        }
        left -= 1;
        fault.clone()
    });
}

#[test]
fn what_passes_is_tried_again() {
    let folder = folder();
    let server = Server::start(folder.path());
    for fault in [
        Fault::Status(429, vec![("Retry-After", "0".to_owned())]),
        Fault::Status(500, Vec::new()),
        Fault::Status(503, Vec::new()),
        Fault::BreakAfter(0),
        Fault::BreakAfter(20_000),
        Fault::ShortBody(20_000),
    ] {
        let source = Source::with_options(&server.files_url(), &quick()).unwrap();
        fail_first(&server, 3, fault.clone());
        assert_read(&source, BIG, &big());
        assert_eq!(source.fetch_stats().retries, 3, "{fault:?}");
    }
}

#[test]
fn a_server_that_wants_to_be_left_alone_is_left_alone() {
    let folder = folder();
    let server = Server::start(folder.path());
    let source = Source::with_options(&server.files_url(), &quick()).unwrap();
    let started = std::time::Instant::now();
    fail_first(
        &server,
        2,
        Fault::Status(429, vec![("Retry-After", "1".to_owned())]),
    );
    assert_read(&source, BIG, &big());
    assert!(
        started.elapsed().as_secs_f64() >= 2.0,
        "its Retry-After was not kept"
    );
    // One that wants to be left alone for an hour is not waited for.
    fail_first(
        &server,
        99,
        Fault::Status(429, vec![("Retry-After", "3600".to_owned())]),
    );
    let error = read(&source, BIG).unwrap_err();
    assert!(
        error.contains("429 Too Many Requests, and to be asked again in 3600 s"),
        "{error}"
    );
}

#[test]
fn what_does_not_pass_is_told_with_url_status_and_tries() {
    let folder = folder();
    let server = Server::start(folder.path());
    let url = server.files_url();
    let login = url.replace("http://", "http://me:secret@");
    let source = Source::with_options(&login, &quick()).unwrap();
    let shown = format!("{url}/{BIG}");
    for (fault, status, tries) in [
        (Fault::Status(429, Vec::new()), "429 Too Many Requests", 6),
        (Fault::Status(502, Vec::new()), "502 Bad Gateway", 6),
        (Fault::Status(403, Vec::new()), "403 Forbidden", 1),
        (Fault::IgnoreRange, "whole files", 1),
        (Fault::BreakAfter(10), "", 6),
        (Fault::ShortBody(10), "too little data", 6),
    ] {
        fail_first(&server, usize::MAX, fault.clone());
        let before = source.fetch_stats().requests;
        let error = read(&source, BIG).unwrap_err();
        assert!(
            error.contains(&shown) && error.contains(status),
            "{fault:?}: {error}"
        );
        assert_eq!(
            error.contains(&format!("tried {tries} times")),
            tries > 1,
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
        // The size is known from the first time.
        let asked = source.fetch_stats().requests - before;
        assert!(asked == tries || asked == tries + 1, "{fault:?}: {asked}");
    }
    assert!(server.requests().iter().all(|request| {
        request
            .authorization
            .as_deref()
            .is_some_and(|login| login.starts_with("Basic "))
    }));
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let folder = folder();
    let server = Server::start(folder.path());
    let mut options = quick();
    options.timeout = std::time::Duration::from_millis(200);
    options.max_attempts = 2;
    let source = Source::with_options(&server.files_url(), &options).unwrap();
    fail_first(&server, usize::MAX, Fault::Silence);
    let error = read(&source, BIG).unwrap_err();
    assert!(error.contains("tried 2 times"), "{error}");
}

/// An answer without an end is broken off where more comes than was asked for.
#[test]
fn a_body_without_an_end_does_not_fill_the_memory() {
    let folder = folder();
    let server = Server::start(folder.path());
    let mut options = quick();
    options.max_attempts = 2;
    let source = Source::with_options(&server.files_url(), &options).unwrap();
    fail_first(&server, usize::MAX, Fault::Endless);
    let error = read(&source, BIG).unwrap_err();
    assert!(error.contains("were to be all"), "{error}");
    assert!(source.fetch_stats().bytes_fetched < 10_000_000);
}

/// Something always comes, so that nothing looks stuck; but it would take hours.
#[test]
fn a_server_that_drips_is_given_up() {
    let folder = folder();
    let server = Server::start(folder.path());
    let mut options = quick();
    options.timeout = std::time::Duration::from_millis(200);
    options.max_attempts = 2;
    let source = Source::with_options(&server.files_url(), &options).unwrap();
    let pause = std::time::Duration::from_millis(20);
    fail_first(&server, usize::MAX, Fault::Drip(pause));
    let error = read(&source, BIG).unwrap_err();
    assert!(error.contains("tried 2 times"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let folder = folder();
    let url = {
        let server = Server::start(folder.path());
        server.files_url()
    };
    let source = Source::with_options(&url, &quick()).unwrap();
    let error = source.open("meta/info.json").unwrap_err();
    assert!(error.to_string().contains("tried 6 times"), "{error}");
    assert!(!error.is_not_found());
}
