//! A dataset that lies elsewhere.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use episode_pool::prefetch::SourceOptions;
use episode_pool::{
    ArrayData, Builder, EpisodePool, Error, Fetch, Loader, LoaderOptions, OnFetchError, Sample,
    StateDict, Warning,
};
use tempfile::TempDir;
use testkit::server::{Fault, Request, Server};

/// A pool over a source, with a cache of its own.
fn pool(source: &str, cache: &TempDir, options: impl Fn(Builder) -> Builder) -> EpisodePool {
    let mut quick = SourceOptions::default();
    quick.backoff = Duration::from_millis(1);
    let builder = EpisodePool::builder(source)
        .seed(7)
        .episode_pool_size(2)
        .source_options(quick)
        .cache_dir(cache.path());
    options(builder).build().unwrap()
}

/// Everything of a sample, pictures as a digest of theirs.
fn written(sample: &Sample) -> String {
    let mut text = format!("{} {}:", sample.episode_index, sample.frame_index);
    for (key, array) in sample.fields.iter() {
        let mut hasher = DefaultHasher::new();
        match array.data() {
            ArrayData::U8(pixels) => pixels.hash(&mut hasher),
            other => format!("{other:?}").hash(&mut hasher),
        }
        text.push_str(&format!(" {key} {:?} {:x}", array.shape(), hasher.finish()));
    }
    text
}

/// Everything that an epoch emits.
fn epoch(pool: &EpisodePool) -> Vec<String> {
    let samples = pool.epoch(0).unwrap();
    samples.map(|sample| written(&sample.unwrap())).collect()
}

/// What lies in the cache: files, and the folders of those who use it.
fn left_in(cache: &TempDir) -> Vec<String> {
    let root = cache.path().join("episode-pool-cache-v1");
    ["pieces", "parts", "users"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect()
}

fn is_of_video(request: &Request) -> bool {
    request.range.is_some() && request.path.contains("/videos/")
}

/// The contract: the same order and the same bytes as from a directory, whatever is fetched ahead, and whatever the network does meanwhile.
#[test]
fn a_remote_source_changes_nothing_about_the_samples() {
    for (name, fetch, prefetch, cache_bytes) in [
        ("pusht_like", Fetch::Ranges, 8, 1 << 30),
        ("aloha_like", Fetch::Ranges, 1, 2_000_000),
        ("h264_gop30", Fetch::Files, 0, 1 << 30),
        ("no_camera", Fetch::Ranges, 3, 1 << 30),
    ] {
        let root = testkit::fixtures::dataset(name);
        let server = Server::start(&root);
        let cache = tempfile::tempdir().unwrap();
        let local = epoch(&pool(root.to_str().unwrap(), &cache, |builder| builder));
        assert!(!local.is_empty());
        let mut asked = 0;
        server.set_faults(move |_| {
            asked += 1;
            match asked % 7 {
                3 => Fault::Status(503, vec![("Retry-After", "0".to_owned())]),
                _ => Fault::None,
            }
        });
        let remote = pool(&server.files_url(), &cache, |builder| {
            let builder = builder.fetch(fetch).prefetch_episodes(prefetch);
            builder.cache_bytes(cache_bytes)
        });
        assert!(epoch(&remote) == local, "{name}: other samples");
        assert_eq!(left_in(&cache), [""; 0]);
    }
}

/// Another source for rows and videos than for the metadata.
#[test]
fn the_data_may_lie_elsewhere_than_the_metadata() {
    let root = testkit::fixtures::dataset("pusht_like");
    let cache = tempfile::tempdir().unwrap();
    let meta = testkit::fixtures::copy_dataset("pusht_like");
    for folder in ["data", "videos"] {
        std::fs::remove_dir_all(meta.path().join(folder)).unwrap();
    }
    let server = Server::start(&root);
    let whole = epoch(&pool(root.to_str().unwrap(), &cache, |builder| builder));
    let apart = pool(meta.path().to_str().unwrap(), &cache, |builder| {
        builder.data_root(server.files_url())
    });
    assert!(epoch(&apart) == whole, "other samples");
    assert!(apart.fetch_stats().bytes_fetched > 0);
    let asked = server.requests();
    // But for an index, which is of the files.
    let is_index = |path: &str| path.ends_with("/meta/episode-pool.index");
    let of_meta = |request: &Request| request.path.contains("/meta/") && !is_index(&request.path);
    assert!(!asked.iter().any(of_meta));
}

/// The contract: whatever way an epoch ends, nothing is left of what it fetched.
#[test]
fn cache_returns_to_zero() {
    let root = testkit::fixtures::dataset("aloha_like");
    let server = Server::start(&root);
    let cache = tempfile::tempdir().unwrap();
    let pool = pool(&server.files_url(), &cache, |builder| builder);
    let loader = || Loader::new(&pool, LoaderOptions::default()).unwrap();

    // Its end.
    let whole = loader();
    let mut batches = whole.epoch(0).unwrap();
    assert!(batches.by_ref().all(|batch| batch.is_ok()));
    let held: Vec<String> = left_in(&cache);
    assert!(held.iter().all(|path| path.contains("/users/")), "{held:?}");
    drop((whole, batches));
    assert_eq!(left_in(&cache), [""; 0]);

    // An early drop.
    let early = loader();
    let mut batches = early.epoch(0).unwrap();
    batches.next().unwrap().unwrap();
    drop((early, batches));
    assert_eq!(left_in(&cache), [""; 0]);

    // An error, and the same while others still fetch.
    server.set_faults(|request| match request {
        request if is_of_video(request) => Fault::Status(403, Vec::new()),
        _ => Fault::None,
    });
    let failing = loader();
    let mut batches = failing.epoch(0).unwrap();
    assert!(batches.by_ref().any(|batch| batch.is_err()));
    drop((failing, batches));
    assert_eq!(left_in(&cache), [""; 0]);
}

/// The network goes in the middle of an epoch: an error that says what could not be had. When it is back, the epoch goes on where it was.
#[test]
fn a_cut_network_ends_an_epoch_that_can_be_gone_on_with() {
    let root = testkit::fixtures::dataset("pusht_like");
    let server = Server::start(&root);
    let cache = tempfile::tempdir().unwrap();
    let pool = pool(&server.files_url(), &cache, |builder| {
        builder.episode_pool_size(1).prefetch_episodes(1)
    });
    let options = LoaderOptions {
        batch_size: 5,
        ..LoaderOptions::default()
    };
    let loader = Loader::new(&pool, options).unwrap();
    let expected: Vec<_> = loader
        .epoch(0)
        .unwrap()
        .map(|batch| batch.unwrap().frame_indices.clone())
        .collect();

    let mut batches = loader.epoch(0).unwrap();
    let mut found = vec![batches.next().unwrap().unwrap().frame_indices.clone()];
    server.set_faults(|_| Fault::BreakAfter(0));
    let error = loop {
        match batches.next().unwrap() {
            Ok(batch) => found.push(batch.frame_indices.clone()),
            Err(error) => break error,
        }
    };
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    for part in ["episode ", &server.files_url(), "tried 6 times"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let state: StateDict = batches.state_dict();
    server.set_faults(|_| Fault::None);
    let rest = loader.load_state_dict(&state, true).unwrap();
    found.extend(rest.map(|batch| batch.unwrap().frame_indices.clone()));
    assert_eq!(found, expected);
}

/// What cannot be fetched is left out where that is asked for, and told; all else is as it would have been, and so is the number of turns.
#[test]
fn an_episode_that_cannot_be_fetched_is_left_out_and_reported() {
    let root = testkit::fixtures::dataset("aloha_like");
    let server = Server::start(&root);
    let cache = tempfile::tempdir().unwrap();
    let build = |action| {
        pool(&server.files_url(), &cache, move |builder| {
            builder.on_fetch_error(action)
        })
    };
    let (strict, lenient) = (build(OnFetchError::Fail), build(OnFetchError::SkipEpisode));
    let expected = epoch(&strict);
    let metadata = strict.metadata();
    let camera = metadata.info().camera_keys().next().unwrap().to_owned();
    let video = |episode: usize| {
        let episode = metadata.episode(episode).unwrap();
        episode.video(&camera).unwrap().path().to_owned()
    };
    let lost = video(0);
    let (gone, others): (Vec<_>, Vec<_>) =
        (0..metadata.episodes().len()).partition(|&e| video(e) == lost);
    assert!(!others.is_empty(), "a fixture with two video files");
    server.set_faults(move |request| {
        if is_of_video(request) && request.path.contains(&lost) {
            Fault::Status(404, Vec::new())
        } else {
            Fault::None
        }
    });
    let mut samples = lenient.epoch(0).unwrap();
    let found: Vec<_> = samples.by_ref().map(|sample| sample.unwrap()).collect();
    assert!(
        found
            .iter()
            .all(|sample| others.contains(&sample.episode_index))
    );
    let found: Vec<String> = found.iter().map(written).collect();
    let mut left = expected.iter();
    assert!(
        found.iter().all(|sample| left.any(|other| other == sample)),
        "in another order"
    );
    let report = samples.report();
    let mut left_out = report.fetch.left_out.clone();
    left_out.sort_by_key(|left_out| left_out.episode_index);
    let numbers: Vec<_> = left_out
        .iter()
        .map(|left_out| left_out.episode_index)
        .collect();
    assert_eq!(numbers, gone);
    let frames: u64 = left_out.iter().map(|left_out| left_out.frames).sum();
    assert_eq!(frames as usize, expected.len() - found.len());
    assert!(left_out[0].reason.contains("404"), "{}", left_out[0].reason);
    assert!(!report.coverage.exactly_once);

    // In batches: as many turns, so that ranks and saved states stay together.
    let options = LoaderOptions {
        batch_size: 3,
        ..LoaderOptions::default()
    };
    let loader = Loader::new(&lenient, options).unwrap();
    let mut batches = loader.epoch(0).unwrap();
    let turns = batches.remaining_batches();
    let rows: usize = batches.by_ref().map(|batch| batch.unwrap().len()).sum();
    assert_eq!((rows, batches.remaining_batches()), (found.len(), 0));
    assert_eq!(batches.state_dict().batches_consumed(), turns);

    // And by default, it is an error.
    assert!(strict.epoch(0).unwrap().any(|sample| sample.is_err()));
}

/// C22: an episode that the cache can never hold is an error, and never a wait for room.
#[test]
fn a_cache_too_small_for_an_episode_is_an_error() {
    let root = testkit::fixtures::dataset("h264_gop30");
    let server = Server::start(&root);
    let cache = tempfile::tempdir().unwrap();
    let files = largest_episode(&root);
    let build = |bytes| {
        pool(&server.files_url(), &cache, move |builder| {
            builder.fetch(Fetch::Files).cache_bytes(bytes)
        })
    };
    let error = build(files - 1).epoch(0).unwrap().find_map(Result::err);
    let error = error.unwrap();
    assert!(
        matches!(error, Error::CacheTooSmall { needed_bytes, .. } if needed_bytes == files),
        "{error}"
    );
    // Room for one, of a pool of two: slow, but all comes.
    let whole = epoch(&pool(root.to_str().unwrap(), &cache, |builder| builder));
    assert!(epoch(&build(files)) == whole, "other samples");
}

/// The bytes of all video files of the episode that has the most.
fn largest_episode(root: &Path) -> u64 {
    let pool = EpisodePool::builder(root.to_str().unwrap())
        .build()
        .unwrap();
    let metadata = pool.metadata();
    let bytes = metadata.episodes().iter().map(|episode| {
        let cameras = metadata.info().camera_keys();
        let paths = cameras.filter_map(|camera| Some(episode.video(camera)?.path()));
        paths
            .map(|path| std::fs::metadata(root.join(path)).unwrap().len())
            .sum()
    });
    bytes.max().unwrap()
}

/// With ranges, little more is fetched than the rows and packets of the frames that are emitted.
#[test]
fn ranges_fetch_little_more_than_what_is_needed() {
    let root = testkit::fixtures::dataset("aloha_like");
    let server = Server::start(&root);
    let cache = tempfile::tempdir().unwrap();
    let pool = pool(&server.files_url(), &cache, |builder| builder);
    let metadata = pool.metadata();
    let before = pool.fetch_stats().bytes_fetched;
    assert_eq!(epoch(&pool).len(), metadata.total_frames());
    let fetched = pool.fetch_stats().bytes_fetched - before;
    let videos = metadata.episodes().iter().flat_map(|episode| {
        let cameras = metadata.info().camera_keys();
        cameras.filter_map(|camera| Some(episode.video(camera)?.path()))
    });
    let files: BTreeSet<&str> = metadata
        .data_files()
        .iter()
        .map(String::as_str)
        .chain(videos)
        .collect();
    let size = |file| std::fs::metadata(root.join(file)).unwrap().len();
    let needed: u64 = files.into_iter().map(size).sum();
    assert!(fetched * 100 <= needed * 125, "{fetched} of {needed}");
}

/// C3: of one episode among several of a file, exactly its rows, and no more of the files than it takes.
#[test]
fn one_episode_comes_alone() {
    let root = testkit::fixtures::dataset("pusht_like");
    let server = Server::start(&root);
    let build = |source: &str| EpisodePool::builder(source).episodes([1]).build().unwrap();
    let (local, remote) = (build(root.to_str().unwrap()), build(&server.files_url()));
    let length = local.metadata().episode(1).unwrap().length();
    let found = epoch(&remote);
    assert_eq!(found.len(), length);
    assert!(found == epoch(&local), "other samples");
    let data = server.requests();
    let mut data = data
        .iter()
        .filter(|request| request.path.contains("/data/"));
    assert!(data.all(|request| request.method == "HEAD" || request.range.is_some()));
}

/// With an index, no file is asked for its header; a damaged one, or one of files that have changed, is not used.
#[test]
fn an_index_spares_the_headers_and_changes_nothing() {
    let root = testkit::fixtures::copy_dataset("aloha_like");
    let server = Server::start(root.path());
    let cache = tempfile::tempdir().unwrap();
    let build = || pool(&server.files_url(), &cache, |builder| builder);
    let without = build();
    let expected = epoch(&without);
    let fetched = |pool: &EpisodePool, epoch: &dyn Fn(&EpisodePool) -> Vec<String>| {
        let before = pool.fetch_stats();
        assert!(epoch(pool) == expected, "other samples");
        let after = pool.fetch_stats();
        (
            after.requests - before.requests,
            after.bytes_fetched - before.bytes_fetched,
        )
    };
    let report = build().write_index(None, &|_, _| {}).unwrap();
    let (requests, bytes) = fetched(&without, &epoch);

    let with = build();
    assert_eq!(with.warnings(), without.warnings());
    let (fewer_requests, fewer_bytes) = fetched(&with, &epoch);
    assert!(
        fewer_requests < requests && fewer_bytes < bytes,
        "{fewer_requests} of {requests} requests, {fewer_bytes} of {bytes} bytes"
    );

    // Published with the dataset, it is found there.
    let published = root.path().join("meta/episode-pool.index");
    std::fs::rename(&report.path, &published).unwrap();
    assert_eq!(fetched(&build(), &epoch).1, fewer_bytes);
    assert!(report.path.exists());
    std::fs::remove_file(published).unwrap();

    // A damaged part is not believed, nor is a damaged whole.
    let mut bytes = std::fs::read(&report.path).unwrap();
    let middle = bytes.len() / 2;
    bytes[8..middle].fill(0);
    std::fs::write(&report.path, &bytes).unwrap();
    assert!(fetched(&build(), &epoch).1 > fewer_bytes);
    std::fs::write(&report.path, &bytes[..bytes.len() - 9]).unwrap();
    let cut = build();
    assert!(
        matches!(cut.warnings().last(), Some(Warning::IndexNotUsed { .. })),
        "{:?}",
        cut.warnings()
    );
    assert!(epoch(&cut) == expected, "other samples");

    // Nor what it says of a file that is another by now, whose etag is another.
    build().write_index(None, &|_, _| {}).unwrap();
    let metadata = without.metadata();
    let camera = metadata.info().camera_keys().next().unwrap();
    let video = metadata.episode(0).unwrap().video(camera).unwrap().path();
    let path = root.path().join(video);
    let mut longer = std::fs::read(&path).unwrap();
    // A box of 16 bytes that says nothing.
    longer.extend([0, 0, 0, 16]);
    longer.extend(b"free12345678");
    std::fs::write(&path, longer).unwrap();
    assert!(epoch(&build()) == expected, "other samples");
}
