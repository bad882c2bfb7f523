//! Topologies, explicit and from a launcher's environment.

use pool_core::{Error, Topology};

/// The topology that an environment describes, as `(rank, world_size)`, or the message that it is refused with.
fn from_vars(variables: &[(&str, &str)]) -> Result<(usize, usize), String> {
    let lookup = |name: &str| {
        variables
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let topology = Topology::from_vars(lookup).map_err(|error| error.to_string())?;
    assert_eq!((topology.worker(), topology.num_workers()), (0, 0));
    Ok((topology.rank(), topology.world_size()))
}

const BATCH_SCRIPT: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "123"),
    ("SLURM_PROCID", "0"),
    ("SLURM_NTASKS", "8"),
    ("SLURM_TASKS_PER_NODE", "2(x3),1"),
];

const STEP: [(&str, &str); 7] = [
    ("SLURM_JOB_ID", "123"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_PROCID", "5"),
    ("SLURM_NTASKS", "8"),
    ("SLURM_STEP_NUM_TASKS", "8"),
    ("SLURM_TASKS_PER_NODE", "4(x2)"),
    ("SLURM_NTASKS_PER_NODE", "4"),
];

#[test]
fn each_launcher_is_understood() {
    assert_eq!(from_vars(&[]), Ok((0, 1)));
    let torch = [("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1")];
    assert_eq!(from_vars(&torch), Ok((3, 8)));
    assert_eq!(
        from_vars(&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")]),
        Ok((3, 8))
    );
    assert_eq!(from_vars(&STEP), Ok((5, 8)));
    let mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
    assert_eq!(from_vars(&mpi), Ok((1, 2)));
}

#[test]
fn torchrun_comes_before_slurm_and_mpi() {
    let torch = [
        ("RANK", "1"),
        ("WORLD_SIZE", "2"),
        ("OMPI_COMM_WORLD_RANK", "6"),
        ("OMPI_COMM_WORLD_SIZE", "7"),
    ];
    assert_eq!(from_vars(&[&torch[..], &BATCH_SCRIPT].concat()), Ok((1, 2)));
    assert_eq!(from_vars(&[&torch[..], &STEP].concat()), Ok((1, 2)));
}

#[test]
fn a_batch_script_is_one_process_whatever_its_job_is() {
    assert_eq!(from_vars(&BATCH_SCRIPT), Ok((0, 1)));
    // sbatch without a number of tasks; salloc's shell, which has no rank.
    assert_eq!(from_vars(&BATCH_SCRIPT[..2]), Ok((0, 1)));
    assert_eq!(
        from_vars(&[("SLURM_JOBID", "123"), ("SLURM_NTASKS", "8")]),
        Ok((0, 1))
    );
    // mpirun in a batch script.
    let mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
    assert_eq!(from_vars(&[&mpi[..], &BATCH_SCRIPT].concat()), Ok((3, 4)));
}

#[test]
fn a_step_counts_its_own_tasks_not_the_jobs() {
    // `srun --ntasks 2` within a job of 8 tasks.
    let step = [
        ("SLURM_STEP_ID", "1"),
        ("SLURM_PROCID", "1"),
        ("SLURM_NTASKS", "8"),
        ("SLURM_STEP_NUM_TASKS", "2"),
    ];
    assert_eq!(from_vars(&step), Ok((1, 2)));
    assert_eq!(from_vars(&step[..3]), Ok((1, 8)));
}

#[test]
fn half_an_environment_is_an_error() {
    let pairs = [
        ("RANK", "WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ];
    for (rank, world_size) in pairs {
        for (set, missing) in [(rank, world_size), (world_size, rank)] {
            assert_eq!(
                from_vars(&[(set, "1")]),
                Err(format!(
                    "the environment sets {set}=1 but not {missing}: set both, or neither, or give rank and world_size explicitly"
                )),
            );
        }
    }
    let step = [
        ("SLURM_JOB_ID", "1"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", "0"),
    ];
    assert!(
        from_vars(&step)
            .unwrap_err()
            .contains("SLURM_PROCID=0 but not SLURM_NTASKS")
    );
}

#[test]
fn a_value_that_is_no_number_is_named() {
    for value in ["2(x3),1", "", "-1", "1.0", " 1", "99999999999999999999999"] {
        assert_eq!(
            from_vars(&[("RANK", "0"), ("WORLD_SIZE", value)]),
            Err(format!(
                "the environment variable WORLD_SIZE should be a whole number, found `{value}`"
            )),
        );
    }
}

#[test]
fn a_rank_outside_its_world_is_an_error() {
    for (rank, world_size) in [("4", "4"), ("0", "0")] {
        assert_eq!(
            from_vars(&[("SLURM_PROCID", rank), ("SLURM_NTASKS", world_size)]),
            Err(format!(
                "the environment sets SLURM_PROCID={rank} and SLURM_NTASKS={world_size}: the rank must be below the world size"
            )),
        );
    }
}

#[test]
fn contradictions_are_errors_that_name_both_sides() {
    let remedy = "set RANK and WORLD_SIZE, or give rank and world_size explicitly";
    let mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "8")];
    assert_eq!(
        from_vars(&[&mpi[..], &STEP].concat()),
        Err(format!(
            "the environment contradicts itself: SLURM_PROCID=5 and SLURM_STEP_NUM_TASKS=8, but OMPI_COMM_WORLD_RANK=3 and \
             OMPI_COMM_WORLD_SIZE=8; {remedy}"
        )),
    );
    let agreeing = [("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_SIZE", "8")];
    assert_eq!(from_vars(&[&agreeing[..], &STEP].concat()), Ok((5, 8)));
    assert_eq!(
        from_vars(&[
            ("SLURM_JOB_ID", "1"),
            ("SLURM_PROCID", "2"),
            ("SLURM_NTASKS", "8")
        ]),
        Err(format!(
            "the environment contradicts itself: SLURM_PROCID=2 says that this is not the first process of a job step, but \
             SLURM_JOB_ID without SLURM_STEP_ID says that it is in no step; {remedy}"
        )),
    );
}

#[test]
fn the_main_process_is_worker_0_of_none() {
    let topology = Topology::new(2, 3, 0, 0).unwrap();
    assert_eq!(
        (
            topology.consumers_per_rank(),
            topology.num_consumers(),
            topology.consumer()
        ),
        (1, 3, 2)
    );
    let topology = topology.with_worker(1, 4).unwrap();
    assert_eq!((topology.rank(), topology.world_size()), (2, 3));
    assert_eq!((topology.worker(), topology.num_workers()), (1, 4));
    assert_eq!(
        (
            topology.consumers_per_rank(),
            topology.num_consumers(),
            topology.consumer()
        ),
        (4, 12, 9)
    );
}

#[test]
fn impossible_topologies_are_errors() {
    let error = |rank, world_size, worker, num_workers| {
        Topology::new(rank, world_size, worker, num_workers).unwrap_err()
    };
    assert_eq!(error(0, 0, 0, 0), Error::NoRanks);
    assert_eq!(
        error(2, 2, 0, 0).to_string(),
        "rank 2 is not below world_size 2: ranks count from 0"
    );
    assert_eq!(
        error(0, 2, 1, 0).to_string(),
        "worker 1 is not one of num_workers 0: workers count from 0, and without workers the main process is worker 0",
    );
    assert!(matches!(
        error(0, 1, 4, 4),
        Error::WorkerOutOfRange {
            worker: 4,
            num_workers: 4
        }
    ));
    assert!(matches!(
        error(0, usize::MAX, 0, 2),
        Error::TooManyConsumers { .. }
    ));
}
