//! The list of a matrix's jobs, in the folder of its results.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Result;

use super::job::Job;
use super::submit::JobId;

/// The form of the file. A reader refuses any other.
const SCHEMA_VERSION: u64 = 1;

/// The jobs of one folder, each once, in the order of their submission.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) jobs: Vec<Entry>,
}

/// One job, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) stem: String,
    pub(crate) name: String,
    pub(crate) id: Option<JobId>,
    /// Why sbatch did not take it.
    pub(crate) error: Option<String>,
    pub(crate) source: String,
    pub(crate) url: String,
    pub(crate) mode: String,
    pub(crate) device: String,
    pub(crate) batch_size: u64,
    pub(crate) num_workers: u64,
    pub(crate) episode_pool_size: u64,
}

impl Entry {
    pub(super) fn new(job: &Job, id: Option<JobId>, error: Option<String>) -> Self {
        Self {
            stem: job.stem.clone(),
            name: job.name.clone(),
            id,
            error,
            source: job.source.label.clone(),
            url: job.source.url.clone(),
            mode: job.mode.clone(),
            device: job.decode.device.clone(),
            batch_size: job.batch_size,
            num_workers: job.decode.num_workers,
            episode_pool_size: job.decode.episode_pool_size,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "stem": self.stem,
            "name": self.name,
            "id": self.id.as_ref().map(|id| &id.job),
            "cluster": self.id.as_ref().and_then(|id| id.cluster.as_ref()),
            "error": self.error,
            "source": self.source,
            "url": self.url,
            "mode": self.mode,
            "decode_device": self.device,
            "batch_size": self.batch_size,
            "num_workers": self.num_workers,
            "episode_pool_size": self.episode_pool_size,
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let number = |name: &str| value[name].as_u64();
        let id = text("id").map(|job| JobId {
            job,
            cluster: text("cluster"),
        });
        Some(Self {
            stem: text("stem")?,
            name: text("name")?,
            id,
            error: text("error"),
            source: text("source")?,
            url: text("url")?,
            mode: text("mode")?,
            device: text("decode_device")?,
            batch_size: number("batch_size")?,
            num_workers: number("num_workers")?,
            episode_pool_size: number("episode_pool_size")?,
        })
    }
}

impl Manifest {
    /// Where it lies in a folder of results.
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join("manifest.json")
    }

    /// The one in a folder, or an empty one where there is none.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = Self::path(folder);
        let fault = |what: &str| format!("{}: {what}", path.display());
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(fault(&error.to_string())),
        };
        let value: Value =
            serde_json::from_str(&text).map_err(|error| fault(&format!("not JSON: {error}")))?;
        if value["schema_version"] != SCHEMA_VERSION {
            return Err(fault(&format!(
                "schema_version is {}, and {SCHEMA_VERSION} is what this program reads",
                value["schema_version"]
            )));
        }
        let jobs = value["jobs"].as_array().map(Vec::as_slice);
        let jobs = jobs.unwrap_or_default().iter().map(Entry::from_json);
        let jobs: Option<Vec<Entry>> = jobs.collect();
        let jobs = jobs.ok_or_else(|| fault("a job in it lacks a member"))?;
        Ok(Self { jobs })
    }

    /// Adds a job; an earlier one of the same files is no more.
    pub(super) fn put(&mut self, entry: Entry) {
        self.jobs.retain(|job| job.stem != entry.stem);
        self.jobs.push(entry);
    }

    /// Writes it whole, or leaves the one before.
    pub(super) fn write(&self, folder: &Path) -> Result {
        let jobs: Vec<Value> = self.jobs.iter().map(Entry::to_json).collect();
        let value = json!({ "schema_version": SCHEMA_VERSION, "jobs": jobs });
        let path = Self::path(folder);
        let part = folder.join("manifest.json.part");
        fs::write(&part, format!("{value:#}\n"))
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    impl Entry {
        /// A job of the list, for tests.
        pub(crate) fn example(stem: &str, id: &str) -> Self {
            Self {
                stem: stem.to_owned(),
                name: "bench-hub-single-cpu".to_owned(),
                id: Some(JobId {
                    job: id.to_owned(),
                    cluster: None,
                }),
                error: None,
                source: "hub".to_owned(),
                url: "hf://datasets/a/b".to_owned(),
                mode: "single".to_owned(),
                device: "cpu".to_owned(),
                batch_size: 2,
                num_workers: 1,
                episode_pool_size: 4,
            }
        }
    }

    #[test]
    fn a_list_is_read_back_and_a_job_is_in_it_once() {
        let folder = TempDir::new().unwrap();
        let mut manifest = Manifest::open(folder.path()).unwrap();
        assert!(manifest.jobs.is_empty());
        let mut federated = Entry::example("b", "2");
        federated.id.as_mut().unwrap().cluster = Some("alps".to_owned());
        let refused = Entry {
            id: None,
            error: Some("sbatch: error: no".to_owned()),
            ..Entry::example("a", "")
        };
        for entry in [Entry::example("a", "1"), federated.clone(), refused.clone()] {
            manifest.put(entry);
        }
        manifest.write(folder.path()).unwrap();
        assert_eq!(
            Manifest::open(folder.path()).unwrap().jobs,
            [federated, refused]
        );
    }

    #[test]
    fn a_list_that_is_none_is_refused_by_its_name() {
        let folder = TempDir::new().unwrap();
        for (text, part) in [
            ("", "not JSON"),
            (
                r#"{"schema_version": 2, "jobs": []}"#,
                "schema_version is 2",
            ),
            (
                r#"{"schema_version": 1, "jobs": [{"stem": "a"}]}"#,
                "lacks a member",
            ),
        ] {
            fs::write(Manifest::path(folder.path()), text).unwrap();
            let error = Manifest::open(folder.path()).unwrap_err();
            assert!(
                error.contains("manifest.json: ") && error.contains(part),
                "{error}"
            );
        }
    }
}
