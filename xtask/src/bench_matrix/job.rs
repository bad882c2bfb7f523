//! One job of the matrix: its names, and the script that its node runs.

use crate::sh::quoted;

use super::settings::{Decode, Settings, Source};

/// One job, as submitted.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) name: String,
    /// What the names of its files start with; the program names its result so.
    pub(super) stem: String,
    pub(super) source: Source,
    pub(super) mode: String,
    pub(super) decode: Decode,
    pub(super) batch_size: u64,
    /// The script, for a POSIX shell.
    pub(super) body: String,
}

/// The product of sources, modes and devices, in the order in which they run.
pub(super) fn jobs(settings: &Settings) -> Vec<Job> {
    let mut jobs = Vec::new();
    for source in &settings.sources {
        for mode in &settings.modes {
            for decode in &settings.decodes {
                jobs.push(job(settings, source, mode, decode));
            }
        }
    }
    jobs
}

fn job(settings: &Settings, source: &Source, mode: &str, decode: &Decode) -> Job {
    let label = &source.label;
    let device = &decode.device;
    let stem = format!(
        "{label}_{mode}_b{}_w{}_{device}",
        settings.batch_size, decode.num_workers
    );
    Job {
        name: format!("bench-{label}-{mode}-{device}"),
        body: body(settings, source, mode, decode, &stem),
        stem,
        source: source.clone(),
        mode: mode.to_owned(),
        decode: decode.clone(),
        batch_size: settings.batch_size,
    }
}

/// What the node runs. `sh` may be dash there: nothing but POSIX, and each step guarded by the one before.
///
/// The program runs in a subshell, so that the shell outlives whatever ends it, and writes down how it ended. A signal for
/// the whole job (its time is up) reaches the shell, too; the trap lets it wait for the program and still write.
fn body(settings: &Settings, source: &Source, mode: &str, decode: &Decode, stem: &str) -> String {
    let conda = settings
        .conda_env
        .as_ref()
        .map(|env| format!("conda run --no-capture-output -n {} ", quoted(env)))
        .unwrap_or_default();
    let record = format!("{}/{stem}.exit", settings.out_dir);
    format!(
        r#"# {label}, {mode}, {device}
if [ -z "${{HF_HOME:-}}" ] && [ -n "${{SCRATCH:-}}" ]; then
  HF_HOME="$SCRATCH/hf_home" && export HF_HOME
fi
trap : TERM INT
mkdir -p {out_dir} && (
  {conda}{run} bench {url} --source {label} --mode {mode} --decode {device} \
    --batch-size {batch_size} --num-workers {num_workers} --episode-pool-size {pool} \
    --warmup-batches {warmup} --batches {batches} --out-dir {out_dir}
)
status=$?
printf '%s\n' "$status" > {part} && mv {part} {record}
exit "$status"
"#,
        label = source.label,
        device = decode.device,
        out_dir = quoted(&settings.out_dir),
        run = settings.run,
        url = quoted(&source.url),
        batch_size = settings.batch_size,
        num_workers = decode.num_workers,
        pool = decode.episode_pool_size,
        warmup = settings.warmup_batches,
        batches = settings.num_batches,
        part = quoted(format!("{record}.part")),
        record = quoted(&record),
    )
}

#[cfg(test)]
mod tests {
    use super::super::settings::tests::from_vars;
    use super::*;

    #[test]
    fn the_matrix_has_twelve_jobs_with_names_of_their_own() {
        let settings = from_vars(&[
            ("REPO_ID", "lerobot/pusht"),
            ("BUCKET", "s3://b/pusht"),
            ("WARM_BUCKET", "s3://w/pusht"),
        ])
        .unwrap();
        let jobs = jobs(&settings);
        let stems: Vec<&str> = jobs.iter().map(|job| job.stem.as_str()).collect();
        assert_eq!(stems.len(), 12);
        assert_eq!(stems[0], "hub_single_b32_w8_cpu");
        assert_eq!(stems[11], "warmed_bucket_sarm_b32_w4_cuda");
    }

    #[test]
    fn a_body_is_exactly_this() {
        let settings = from_vars(&[
            ("SOURCES", "bucket"),
            ("MODES", "sarm"),
            ("DECODES", "cpu"),
            ("BUCKET", "s3://it's/$here"),
            ("OUT_DIR", "/out/of $mine"),
            ("CONDA_ENV", "my env"),
            ("RUN", "env A=\"$B\" episode-pool"),
        ])
        .unwrap();
        assert_eq!(
            jobs(&settings)[0].body,
            r#"# bucket, sarm, cpu
if [ -z "${HF_HOME:-}" ] && [ -n "${SCRATCH:-}" ]; then
  HF_HOME="$SCRATCH/hf_home" && export HF_HOME
fi
trap : TERM INT
mkdir -p '/out/of $mine' && (
  conda run --no-capture-output -n 'my env' env A="$B" episode-pool bench 's3://it'\''s/$here' --source bucket --mode sarm --decode cpu \
    --batch-size 32 --num-workers 8 --episode-pool-size 64 \
    --warmup-batches 20 --batches 200 --out-dir '/out/of $mine'
)
status=$?
printf '%s\n' "$status" > '/out/of $mine/bucket_sarm_b32_w8_cpu.exit.part' && mv '/out/of $mine/bucket_sarm_b32_w8_cpu.exit.part' '/out/of $mine/bucket_sarm_b32_w8_cpu.exit'
exit "$status"
"#
        );
    }
}
