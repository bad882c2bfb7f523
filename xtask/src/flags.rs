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
            /// Leave out what most changes don't touch: the docs, the other feature sets.
            optional --fast
            /// Also run every fuzz target for a few seconds. Implied when CI=true.
            optional --fuzz
        }

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
