//! The numbers of the documentation, and the edges.

use resume::{Error, State, batches_per_epoch};

/// After `batches_consumed` batches of `batch_size`: (epoch, samples to skip, next worker).
fn position(
    batches_consumed: u64,
    batch_size: u64,
    shares: &[u64],
    drop_last: bool,
) -> (u64, Vec<u64>, usize) {
    let position = State {
        batches_consumed,
        batch_size,
    }
    .position(shares, drop_last)
    .unwrap();
    (
        position.epoch(),
        position.samples_to_skip().to_vec(),
        position.next_worker(),
    )
}

#[test]
fn the_worked_example_holds() {
    let shares = [7, 3, 5];
    assert_eq!(batches_per_epoch(&shares, 2, false), Ok(9));
    assert_eq!(position(16, 2, &shares, false), (1, vec![6, 3, 4], 2));
    assert_eq!(batches_per_epoch(&shares, 2, true), Ok(6));
    assert_eq!(position(16, 2, &shares, true), (2, vec![4, 2, 2], 2));
}

#[test]
fn the_end_of_an_epoch_is_the_start_of_the_next() {
    assert_eq!(position(8, 2, &[7, 3, 5], false), (0, vec![6, 3, 5], 0));
    assert_eq!(position(9, 2, &[7, 3, 5], false), (1, vec![0, 0, 0], 0));
}

#[test]
fn a_worker_without_samples_never_has_a_turn() {
    assert_eq!(position(0, 4, &[0, 8, 0, 4], false), (0, vec![0; 4], 1));
    assert_eq!(
        position(1, 4, &[0, 8, 0, 4], false),
        (0, vec![0, 4, 0, 0], 3)
    );
    assert_eq!(
        position(2, 4, &[0, 8, 0, 4], false),
        (0, vec![0, 4, 0, 4], 1)
    );
}

#[test]
fn the_main_process_alone_is_one_worker() {
    assert_eq!(position(5, 4, &[10], false), (1, vec![8], 0));
    assert_eq!(position(5, 4, &[10], true), (2, vec![4], 0));
}

#[test]
fn a_trillion_batches_take_no_longer_than_ten() {
    // 1000 + 1 batches an epoch; 10^12 = 999000999 * 1001 + 1.
    assert_eq!(
        position(1_000_000_000_000, 8, &[8000, 8], false),
        (999_000_999, vec![8, 0], 1)
    );
    // One epoch that is longer still: 2 * 10^12 batches from each of two workers.
    let share = 16_000_000_000_000;
    assert_eq!(
        position(1_000_000_000_001, 8, &[share; 2], true),
        (0, vec![4_000_000_000_008, 4_000_000_000_000], 1)
    );
}

#[test]
fn numbers_that_lead_nowhere_are_errors() {
    let position = |batch_size, shares: &[u64], drop_last| {
        State {
            batches_consumed: 3,
            batch_size,
        }
        .position(shares, drop_last)
        .unwrap_err()
    };
    assert_eq!(position(0, &[4], false), Error::ZeroBatchSize);
    assert_eq!(position(2, &[], false), Error::NoWorkers);
    assert_eq!(
        position(1, &[u64::MAX, 1], false),
        Error::TooManyBatches { num_workers: 2 }
    );
    assert_eq!(
        position(4, &[3, 2], true).to_string(),
        "an epoch yields no batch: the largest share of 2 worker(s) is 3 samples, the batch size 4, drop_last is true; \
         use a smaller batch size or fewer workers, or keep incomplete batches"
    );
    assert!(matches!(
        position(4, &[0, 0], false),
        Error::EmptyEpoch {
            largest_share: 0,
            ..
        }
    ));
    assert_eq!(batches_per_epoch(&[3, 2], 4, true), Ok(0));
}

#[test]
#[should_panic(expected = "worker 2 is not one of 2")]
fn asking_for_a_worker_that_is_none_is_a_broken_promise() {
    let _ = State {
        batches_consumed: 0,
        batch_size: 1,
    }
    .position(&[1, 1], false)
    .unwrap()
    .worker_for(2);
}
