//! The Hub's settings come from the environment, which is the process's: one test.

use prefetch::Source;
use testkit::server::{COMMIT, Fault, REPOSITORY, Server};

use crate::support::{assert_same_files, folder, in_child, quick, read, with_env};

#[test]
fn the_hub_gives_the_same_bytes_as_the_folder() {
    let url = std::env::var("HF_ENDPOINT");
    if !in_child() {
        let folder = folder();
        let server = Server::start(folder.path());
        let vars = [
            ("HF_ENDPOINT", server.endpoint()),
            ("HF_TOKEN", "hf_secret".to_owned()),
            ("FOLDER", folder.path().to_str().unwrap().to_owned()),
        ];
        let vars: Vec<_> = vars
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        // A link turns bad after three uses: it is looked up again.
        let mut uses = 0;
        server.set_faults(move |request| {
            uses += usize::from(request.path.starts_with("/cdn/"));
            if uses == 3 {
                uses = 0;
                return Fault::Status(403, Vec::new());
            }
            Fault::None
        });
        with_env("hub::the_hub_gives_the_same_bytes_as_the_folder", &vars);
        let requests = server.requests();
        let api = requests
            .iter()
            .filter(|request| request.path.starts_with("/api/"));
        assert!(api.clone().count() > 0);
        for request in api {
            assert_eq!(request.authorization.as_deref(), Some("Bearer hf_secret"));
        }
        return;
    }
    assert!(url.is_ok());
    let folder = std::path::PathBuf::from(std::env::var("FOLDER").unwrap());
    let dataset = Source::with_options(&format!("hf://datasets/{REPOSITORY}"), &quick()).unwrap();
    assert_eq!(dataset.revision(), Some(COMMIT));
    let bucket = Source::with_options(&format!("hf://buckets/{REPOSITORY}"), &quick()).unwrap();
    assert_eq!(bucket.revision(), None);
    let local = Source::local(&folder).unwrap();
    for source in [dataset, bucket] {
        assert_eq!(source.list("data").unwrap(), local.list("data").unwrap());
        assert_eq!(source.list("none").unwrap(), [] as [&str; 0]);
        for _ in 0..3 {
            assert_same_files(&source, &folder);
        }
        let error = read(&source, "meta/none.json").unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
    let error = Source::with_options("hf://datasets/robots/misspelt", &quick()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("404 Not Found; check the spelling"),
        "{error}"
    );
}
