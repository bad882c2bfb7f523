//! A dataset that lies elsewhere.

use episode_pool::EpisodePool;
use testkit::server::{Fault, Server};

/// Everything that an epoch emits, as it would be written down.
fn epoch(source: &str) -> Vec<String> {
    let pool = EpisodePool::builder(source).seed(7).episode_pool_size(2);
    let pool = pool.build().unwrap();
    let samples = pool.epoch(0).unwrap();
    samples
        .map(|sample| format!("{:?}", sample.unwrap()))
        .collect()
}

/// The contract: the same order and the same bytes as from a directory, whatever the network does meanwhile.
#[test]
fn a_remote_source_changes_nothing_about_the_samples() {
    let root = testkit::fixtures::dataset("pusht_like");
    let server = Server::start(&root);
    let local = epoch(root.to_str().unwrap());
    assert!(!local.is_empty());
    let mut asked = 0;
    server.set_faults(move |_| {
        asked += 1;
        match asked % 7 {
            3 => Fault::Status(503, vec![("Retry-After", "0".to_owned())]),
            _ => Fault::None,
        }
    });
    assert!(epoch(&server.files_url()) == local, "other samples");
}

/// C3: of one episode among several of a file, exactly its rows, and no more of the files than it takes.
#[test]
fn one_episode_comes_alone() {
    let root = testkit::fixtures::dataset("pusht_like");
    let server = Server::start(&root);
    let build = |source: &str| EpisodePool::builder(source).episodes([1]).build().unwrap();
    let (local, remote) = (build(root.to_str().unwrap()), build(&server.files_url()));
    let length = local.metadata().episode(1).unwrap().length();
    let samples = |pool: &EpisodePool| -> Vec<String> {
        let samples = pool.epoch(0).unwrap();
        samples
            .map(|sample| format!("{:?}", sample.unwrap()))
            .collect()
    };
    let found = samples(&remote);
    assert_eq!(found.len(), length);
    assert!(found == samples(&local), "other samples");
    let data = server.requests();
    let mut data = data
        .iter()
        .filter(|request| request.path.contains("/data/"));
    assert!(data.all(|request| request.method == "HEAD" || request.range.is_some()));
}
