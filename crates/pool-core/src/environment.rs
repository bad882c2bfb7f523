//! The topology that a launcher describes in environment variables.

use crate::error::Error;
use crate::topology::Topology;

impl Topology {
    /// The rank and the number of ranks as the process's launcher tells them, without workers.
    ///
    /// `lookup` answers for an environment variable; pass `|name| std::env::var(name).ok()` for the process's own. The first
    /// of these that is set decides:
    ///
    /// 1. `RANK` and `WORLD_SIZE` (torchrun).
    /// 2. `SLURM_PROCID` and `SLURM_NTASKS` (srun); in a step `SLURM_STEP_NUM_TASKS`, the step's own count, comes before the
    ///    job's `SLURM_NTASKS`. A batch script or an allocation's shell (`SLURM_JOB_ID` without `SLURM_STEP_ID`) is one
    ///    process, whatever these say: there they speak of the job. No other Slurm variable is read.
    /// 3. `OMPI_COMM_WORLD_RANK` and `OMPI_COMM_WORLD_SIZE` (mpirun).
    /// 4. None: a single process.
    ///
    /// # Errors
    ///
    /// Always naming the variables and their values: if one of a pair is set without the other, if a value is not a whole
    /// number, if a rank is not below its world's size, if Slurm and MPI both describe this process and disagree, or if a
    /// process of a Slurm job has a rank other than 0 and yet belongs to no step.
    ///
    /// # Examples
    ///
    /// ```
    /// use pool_core::Topology;
    ///
    /// let topology = Topology::from_vars(|name| match name {
    ///     "RANK" => Some("3".to_owned()),
    ///     "WORLD_SIZE" => Some("8".to_owned()),
    ///     _ => None,
    /// })?;
    /// assert_eq!((topology.rank(), topology.world_size()), (3, 8));
    ///
    /// assert_eq!(Topology::from_vars(|_| None)?, Topology::single());
    /// # Ok::<(), pool_core::Error>(())
    /// ```
    pub fn from_vars(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        if let Some(torch) = Launch::read(&lookup, "RANK", "WORLD_SIZE")? {
            return torch.topology();
        }
        let slurm = slurm(&lookup)?;
        let mpi = Launch::read(&lookup, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")?;
        match (slurm, mpi) {
            (Some(slurm), Some(mpi)) if !slurm.agrees_with(&mpi) => {
                Err(Error::ContradictoryEnvironment {
                    one: slurm.to_string(),
                    other: mpi.to_string(),
                })
            }
            (Some(launch), _) | (None, Some(launch)) => launch.topology(),
            (None, None) => Ok(Self::single()),
        }
    }
}

/// What Slurm says about this process, if it says anything about it.
fn slurm(lookup: &impl Fn(&str) -> Option<String>) -> Result<Option<Launch>, Error> {
    const RANK: &str = "SLURM_PROCID";
    let is_set = |names: [&str; 2]| names.into_iter().any(|name| lookup(name).is_some());
    let in_job = is_set(["SLURM_JOB_ID", "SLURM_JOBID"]);
    let in_step = is_set(["SLURM_STEP_ID", "SLURM_STEPID"]);
    if in_job && !in_step {
        // sbatch gives its script the rank 0, and salloc gives its shell none.
        return match number(lookup, RANK)? {
            None | Some(0) => Ok(None),
            Some(rank) => Err(Error::ContradictoryEnvironment {
                one: format!("{RANK}={rank} says that this is not the first process of a job step"),
                other: "SLURM_JOB_ID without SLURM_STEP_ID says that it is in no step".to_owned(),
            }),
        };
    }
    let world_size = if in_step && lookup("SLURM_STEP_NUM_TASKS").is_some() {
        "SLURM_STEP_NUM_TASKS"
    } else {
        "SLURM_NTASKS"
    };
    Launch::read(lookup, RANK, world_size)
}

/// The two numbers of one launcher, and the variables that they came from.
struct Launch {
    rank_variable: &'static str,
    rank: usize,
    world_size_variable: &'static str,
    world_size: usize,
}

impl Launch {
    fn read(
        lookup: &impl Fn(&str) -> Option<String>,
        rank_variable: &'static str,
        world_size_variable: &'static str,
    ) -> Result<Option<Self>, Error> {
        let half = |set, value: usize, missing| Error::HalfSetEnvironment {
            set,
            value: value.to_string(),
            missing,
        };
        match (
            number(lookup, rank_variable)?,
            number(lookup, world_size_variable)?,
        ) {
            (None, None) => Ok(None),
            (Some(rank), Some(world_size)) => Ok(Some(Self {
                rank_variable,
                rank,
                world_size_variable,
                world_size,
            })),
            (Some(rank), None) => Err(half(rank_variable, rank, world_size_variable)),
            (None, Some(world_size)) => Err(half(world_size_variable, world_size, rank_variable)),
        }
    }

    fn agrees_with(&self, other: &Self) -> bool {
        (self.rank, self.world_size) == (other.rank, other.world_size)
    }

    fn topology(&self) -> Result<Topology, Error> {
        let Self {
            rank_variable,
            rank,
            world_size_variable,
            world_size,
        } = *self;
        if rank >= world_size {
            return Err(Error::EnvironmentOutOfRange {
                rank_variable,
                rank,
                world_size_variable,
                world_size,
            });
        }
        Topology::new(rank, world_size, 0, 0)
    }
}

impl std::fmt::Display for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rank_variable,
            rank,
            world_size_variable,
            world_size,
        } = self;
        write!(
            f,
            "{rank_variable}={rank} and {world_size_variable}={world_size}"
        )
    }
}

fn number(
    lookup: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
) -> Result<Option<usize>, Error> {
    lookup(variable)
        .map(|value| {
            // Which digit is at fault says no more than the value itself.
            let number = value.parse().ok();
            number.ok_or(Error::NotANumber { variable, value })
        })
        .transpose()
}
