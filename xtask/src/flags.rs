//! Every command's flags, and their help.

#![expect(unreachable_pub, reason = "xflags generates `pub` items")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

xflags::xflags! {
    /// The project's own commands. New here? `cargo xtask demo`.
    cmd xtask {
        /// Find what the build and the tests need, and install what is missing with apt-get.
        cmd setup {}

        /// Build the program, and stream a bundled dataset with it.
        cmd demo {}

        /// Everything a change has to pass: formatting, lints, docs, tests, tidy.
        cmd test {
            /// Leave out what most changes don't touch: the docs, the other feature sets, the Python package.
            optional --fast
            /// Also run every fuzz target for a few seconds. Implied when CI=true.
            optional --fuzz
        }

        /// Build the Python package as a wheel, install it in an environment of its own, and run its tests there. A part of `test`.
        cmd python {}

        /// Check the contracts of the order (every frame once, ...), on random episode lengths or on your own. Those about
        /// chance have nothing to judge in a few dozen frames.
        cmd contracts {
            /// Lengths of the episodes in frames, in dataset order, such as 3,1,4.
            optional --lengths lengths: Lengths
            /// The same from a file that holds a JSON array.
            optional --lengths-file file: PathBuf
            /// Number of ranks; with lengths only. Several topologies are checked if neither this nor --num-workers is given.
            optional --world-size world_size: usize
            /// Number of workers of each rank; with lengths only.
            optional --num-workers num_workers: usize
            /// Episodes in a consumer's pool; with lengths only. 64 by default.
            optional --episode-pool-size episode_pool_size: usize
            /// Seed of the order; with lengths only. 0 by default.
            optional --seed seed: u64
            /// Number of random cases of each property; without lengths only. 256 by default.
            optional --cases cases: u32
        }

        /// Check the rules of the house: who may depend on whom, READMEs, first lines, unsafe code.
        cmd tidy {}

        /// Feed hostile input to every reader. Finds land in fuzz/artifacts.
        cmd fuzz {
            /// Which targets; all of them by default.
            repeated target: String
            /// Seconds for each target; 10 by default.
            optional --seconds seconds: u32
            /// Feed the second Parquet reader, too; it is known to fail.
            optional --arrow2
        }

        /// Run the criterion benches.
        cmd bench {
            /// Passed on to criterion, such as a part of a bench's name.
            repeated filter: OsString
        }

        /// Submit the throughput benchmark to SLURM: each source, mode and decode device is a job on one node. They run one after
        /// the other, each whether or not the one before succeeded. Every flag has an environment variable, --num-batches has
        /// NUM_BATCHES; the flag wins.
        cmd bench-matrix {
            /// Show every sbatch call, ready to be pasted, and submit nothing.
            optional --dry-run
            /// Which of hub, bucket, warmed_bucket, by commas; all by default.
            optional --sources sources: String
            /// Which of single, sarm, by commas; both by default.
            optional --modes modes: String
            /// Which of cpu, cuda, by commas; both by default.
            optional --decodes decodes: String
            /// The dataset of the source hub: OWNER/NAME on the Hugging Face Hub, a URL, or a path.
            optional --repo-id repo_id: String
            /// The dataset of the source bucket: a URL or a path.
            optional --bucket bucket: String
            /// The dataset of the source warmed_bucket, which you have warmed: a URL or a path.
            optional --warm-bucket warm_bucket: String
            /// Where results, logs and the list of jobs go; on a file system that the nodes share. bench_matrix by default.
            optional --out-dir out_dir: String
            /// Batches that are measured; 200 by default.
            optional --num-batches num_batches: String
            /// Batches before them; 20 by default.
            optional --warmup-batches warmup_batches: String
            /// Samples in a batch; 32 by default.
            optional --batch-size batch_size: String
            /// Workers of a job that decodes on the CPU, which is given as many cores; 8 by default.
            optional --cpu-workers cpu_workers: String
            /// The same for CUDA; 4 by default.
            optional --gpu-workers gpu_workers: String
            /// Episodes in a worker's pool where the CPU decodes; 64 by default.
            optional --cpu-pool-size cpu_pool_size: String
            /// The same for CUDA; 16 by default.
            optional --gpu-pool-size gpu_pool_size: String
            /// GPUs of a job that decodes with CUDA, as `sbatch --gpus` takes them; 1 by default, 0 asks for none.
            optional --gpus gpus: String
            /// Time limit of each job, as `sbatch --time` takes it; 01:00:00 by default.
            optional --time time: String
            /// Memory of each job, as `sbatch --mem` takes it; 32G by default.
            optional --mem mem: String
            /// SLURM account.
            optional --account account: String
            /// SLURM partition.
            optional --partition partition: String
            /// SLURM quality of service.
            optional --qos qos: String
            /// How the program is called on the node, in words of a shell; episode-pool by default.
            optional --run run: String
            /// Conda environment that the program runs in.
            optional --conda-env conda_env: String
            /// 0 lets the jobs run side by side; 1 by default.
            optional --serial serial: String
        }

        /// Compare the results of a matrix: a table, and summary.csv beside them. Jobs that failed, wait or are missing have rows, too.
        cmd summarize {
            /// The folder of the results.
            required dir: PathBuf
            /// A second folder: compare the two, the first being before.
            optional after: PathBuf
            /// Also draw the frames a second, as an SVG.
            optional --plot plot: PathBuf
        }
    }
}

/// Episode lengths as given on a command line: `3,1,4`.
#[derive(Debug)]
pub struct Lengths(pub Vec<usize>);

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Lengths, String> {
        let length = |part: &str| {
            part.trim().parse().map_err(|error| {
                format!("`{part}` is no length in frames ({error}); write them as 3,1,4")
            })
        };
        text.split(',')
            .map(length)
            .collect::<Result<_, _>>()
            .map(Lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_numbers_between_commas() {
        assert_eq!(
            "3, 1,4".parse::<Lengths>().map(|lengths| lengths.0),
            Ok(vec![3, 1, 4])
        );
        let error = "3,,4".parse::<Lengths>().unwrap_err();
        assert!(error.contains("`` is no length"), "{error}");
    }
}
