//! Going on: after any batch, on any topology, with every frame accounted for.

use std::collections::BTreeMap;

use episode_pool::pool_core::{ShardUnit, Topology};
use episode_pool::resume::{self, EpochEnd, State};
use episode_pool::{
    Batch, EpisodePool, Error, Loader, LoaderEpoch, LoaderOptions, StateDict, Warning,
};
use proptest::prelude::*;
use testkit::{Dataset, Spec};

use crate::support::builder;

type Frame = (usize, usize);
/// The frames of each batch, in order.
type Frames = Vec<Vec<Frame>>;

fn pool(dataset: &Dataset, seed: u64) -> EpisodePool {
    let pool = builder(dataset.root()).episode_pool_size(3).seed(seed);
    pool.build().unwrap()
}

fn try_loader(
    pool: &EpisodePool,
    (rank, world_size, num_workers): (usize, usize, usize),
    options: LoaderOptions,
) -> Result<Loader, Error> {
    let topology = Topology::new(rank, world_size, 0, num_workers).unwrap();
    Loader::new(&pool.with_topology(topology).unwrap(), options)
}

fn loader(pool: &EpisodePool, place: (usize, usize, usize), options: LoaderOptions) -> Loader {
    try_loader(pool, place, options).unwrap()
}

fn frames(batch: &Batch) -> Vec<Frame> {
    let episodes = batch.episode_indices.iter().copied();
    episodes.zip(batch.frame_indices.iter().copied()).collect()
}

/// The frames of some more batches, or of all.
fn take(epoch: &mut LoaderEpoch, batches: usize) -> Frames {
    let batches = epoch.by_ref().take(batches);
    batches.map(|batch| frames(&batch.unwrap())).collect()
}

/// The same state as another process would read it.
fn reread(state: &StateDict) -> StateDict {
    let text = state.to_json();
    let read = StateDict::from_json(&text).unwrap();
    assert_eq!(&read, state);
    assert_eq!(serde_json::from_str::<StateDict>(&text).unwrap(), read);
    assert_eq!(serde_json::to_string(state).unwrap(), text);
    read
}

fn every_frame(lengths: &[usize]) -> Vec<Frame> {
    let episodes = lengths.iter().enumerate();
    episodes
        .flat_map(|(episode, &length)| (0..length).map(move |frame| (episode, frame)))
        .collect()
}

fn counts(frames: impl IntoIterator<Item = Frame>) -> BTreeMap<Frame, usize> {
    let mut counts = BTreeMap::new();
    for frame in frames {
        *counts.entry(frame).or_insert(0) += 1;
    }
    counts
}

fn lengths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..24, 3..14)
}

fn epoch_ends() -> impl Strategy<Value = EpochEnd> {
    prop_oneof![
        Just(EpochEnd::Exact),
        Just(EpochEnd::DropTail),
        Just(EpochEnd::Wrap)
    ]
}

fn options() -> impl Strategy<Value = LoaderOptions> {
    (1_usize..6, any::<bool>(), epoch_ends()).prop_map(|(batch_size, drop_last, epoch_end)| {
        LoaderOptions {
            batch_size,
            drop_last,
            epoch_end,
            ..LoaderOptions::default()
        }
    })
}

proptest! {
    // Each case writes a dataset to disk, and starts many threads.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn resume_is_exact(
        (lengths, seed, options) in (lengths(), any::<u64>(), options()),
        (world_size, num_workers, canonical) in (1_usize..4, 0_usize..4, prop::option::of(1_usize..4)),
        stop in any::<prop::sample::Index>(),
    ) {
        let dataset = Spec::new(10, &lengths).write();
        let pool = pool(&dataset, seed);
        let canonical_consumers = canonical.map(|times| times * world_size * num_workers.max(1));
        let options = LoaderOptions { canonical_consumers, ..options };
        for rank in 0..world_size {
            let place = (rank, world_size, num_workers);
            let Ok(loader) = try_loader(&pool, place, options) else { continue };
            let whole: Frames = (0..2).flat_map(|epoch| take(&mut loader.epoch(epoch).unwrap(), usize::MAX)).collect();
            if whole.is_empty() {
                continue;
            }
            prop_assert_eq!(whole.len() as u64, loader.num_batches() * 2);

            // A rank that takes fewer batches than others counts the steps that it waits for them.
            let is_even = options.epoch_end != EpochEnd::Exact || world_size == 1;
            let stop = stop.index(whole.len());
            let epoch = (stop as u64) / loader.num_batches();
            let mut under_way = loader.epoch(epoch).unwrap();
            let in_epoch = stop % loader.num_batches() as usize;
            prop_assert_eq!(&take(&mut under_way, in_epoch)[..], &whole[stop - in_epoch..stop]);
            let states = [
                reread(&under_way.state_dict()),
                StateDict::from(State { batches_consumed: stop as u64, batch_size: options.batch_size as u64 }),
            ];
            if is_even {
                prop_assert_eq!(states[0].batches_consumed(), stop as u64);
            }
            for state in states {
                let mut rest = loader.load_state_dict(&state, true).unwrap();
                prop_assert!(rest.warnings().is_empty());
                prop_assert_eq!(rest.epoch(), epoch);
                let end = (epoch as usize + 1) * loader.num_batches() as usize;
                prop_assert_eq!(rest.remaining_batches() as usize, end - stop);
                // Saved again right away, and after another batch.
                let again = rest.state_dict();
                if is_even {
                    prop_assert_eq!(again.batches_consumed(), stop as u64);
                }
                let mut expected = &whole[stop..end];
                prop_assert_eq!(&take(&mut loader.load_state_dict(&reread(&again), true).unwrap(), usize::MAX)[..], expected);
                prop_assert_eq!(&take(&mut rest, 1)[..], &expected[..1]);
                expected = &expected[1..];
                let later = reread(&rest.state_dict());
                prop_assert_eq!(&take(&mut loader.load_state_dict(&later, true).unwrap(), usize::MAX)[..], expected);
                // At the end it is the start of the next epoch.
                prop_assert_eq!(&take(&mut rest, usize::MAX)[..], expected);
                let end_state = rest.state_dict();
                reread(&end_state);
                prop_assert_eq!(end_state.epoch(), Some(epoch + 1));
                if is_even {
                    prop_assert_eq!(end_state.batches_consumed() as usize, end);
                }
            }
            // Workers alone, in turn, are the loader.
            let state = StateDict::from(State { batches_consumed: stop as u64, batch_size: options.batch_size as u64 });
            let alone = (0..num_workers.max(1)).filter_map(|worker| loader.worker_load_state_dict(&state, true, worker).ok());
            let mut alone: Vec<_> = alone.flatten().map(|batch| frames(&batch.unwrap())).collect();
            let end = (epoch as usize + 1) * loader.num_batches() as usize;
            let mut together = whole[stop..end].to_vec();
            alone.sort();
            together.sort();
            prop_assert_eq!(alone, together);
        }
    }

    #[test]
    fn elastic_covers_once(
        (lengths, seed, batch_size, by_file) in (lengths(), any::<u64>(), 1_usize..5, any::<bool>()),
        legs in prop::collection::vec(((1_usize..4, 0_usize..4), 0_usize..5, 1_usize..5), 1..5),
        canonical in any::<bool>(),
    ) {
        let dataset = Spec { data_files: testkit::Split::Every(2), ..Spec::new(10, &lengths) }.write();
        let unit = if by_file { ShardUnit::File } else { ShardUnit::Episode };
        let pool = builder(dataset.root()).episode_pool_size(3).seed(seed).shard_unit(unit).build().unwrap();
        let run = || {
            let mut emitted = Vec::new();
            let mut state: Option<StateDict> = None;
            let last = ((2, 2), usize::MAX, batch_size);
            for (leg, &((world_size, num_workers), batches, batch_size)) in legs.iter().chain([&last]).enumerate() {
                // Now and then a run with an order for all topologies is among them.
                let canonical_consumers = (canonical && leg % 2 == 1).then_some(world_size * num_workers.max(1));
                let options = LoaderOptions { batch_size, canonical_consumers, ..LoaderOptions::default() };
                let mut saved = Vec::new();
                for rank in 0..world_size {
                    let Ok(loader) = try_loader(&pool, (rank, world_size, num_workers), options) else { continue };
                    let mut epoch = match &state {
                        Some(state) => loader.load_state_dict(state, false).unwrap(),
                        None => loader.epoch(3).unwrap(),
                    };
                    if epoch.epoch() > 3 {
                        continue;
                    }
                    let taken = take(&mut epoch, batches);
                    if taken.len() == batches {
                        saved.push(reread(&epoch.state_dict()));
                    }
                    emitted.extend(taken.into_iter().flatten());
                }
                // Whoever has taken as many batches has the same state.
                for pair in saved.windows(2) {
                    assert_eq!(pair[0].to_json(), pair[1].to_json());
                }
                match saved.pop() {
                    Some(saved) => state = Some(saved),
                    // All ranks came to the end.
                    None => break,
                }
            }
            emitted
        };
        let emitted = run();
        prop_assert_eq!(counts(emitted.iter().copied()), counts(every_frame(&lengths)));
        prop_assert_eq!(emitted, run());
    }

    #[test]
    fn canonical_order_is_topology_free((lengths, seed, options) in (prop::collection::vec(1_usize..12, 8..20), any::<u64>(), options())) {
        let dataset = Spec::new(10, &lengths).write();
        let pool = pool(&dataset, seed);
        let options = LoaderOptions { canonical_consumers: Some(8), ..options };
        let global = |world_size, num_workers| -> Option<Frames> {
            let ranks = (0..world_size).map(|rank| {
                let loader = try_loader(&pool, (rank, world_size, num_workers), options).ok()?;
                let mut epoch = loader.epoch(1).unwrap();
                let batches = take(&mut epoch, usize::MAX);
                assert!(epoch.coverage().exactly_once, "{}", epoch.coverage());
                Some(batches)
            });
            let ranks: Vec<Frames> = ranks.collect::<Option<_>>()?;
            let steps = ranks.iter().map(Vec::len).max()?;
            let in_turn = (0..steps).flat_map(|step| ranks.iter().filter_map(move |rank| rank.get(step).cloned()));
            Some(in_turn.collect())
        };
        let alone = global(1, 0);
        for (world_size, num_workers) in [(1, 2), (2, 0), (2, 2), (4, 1), (4, 2), (8, 0), (8, 2), (4, 4)] {
            let served = global(world_size, num_workers);
            // A rank with nothing to do is an error where there are fewer batches than ranks.
            if let (Some(served), Some(alone)) = (served, &alone) {
                prop_assert_eq!(&served, alone, "{} ranks of {} workers", world_size, num_workers);
            }
        }
        if options.epoch_end == EpochEnd::Exact && !options.drop_last {
            prop_assert_eq!(counts(alone.unwrap().into_iter().flatten()), counts(every_frame(&lengths)));
        }
    }

    #[test]
    fn even_ranks_are_even(
        (lengths, seed, options) in (lengths(), any::<u64>(), options()),
        (world_size, num_workers) in (1_usize..5, 0_usize..4),
    ) {
        let dataset = Spec::new(10, &lengths).write();
        let pool = pool(&dataset, seed);
        let ranks: Result<Vec<Loader>, Error> = (0..world_size).map(|rank| try_loader(&pool, (rank, world_size, num_workers), options)).collect();
        let loaders = match ranks {
            Ok(loaders) => loaders,
            // Too little data for so many ranks.
            Err(Error::Resume(resume::Error::NoEvenEpoch { .. })) if options.epoch_end != EpochEnd::Exact => return Ok(()),
            Err(Error::NothingToEmit { .. }) if options.epoch_end == EpochEnd::Exact => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let mut epochs: Vec<LoaderEpoch> = loaders.iter().map(|loader| loader.epoch(0).unwrap()).collect();
        let ranks: Vec<Frames> = epochs.iter_mut().map(|epoch| take(epoch, usize::MAX)).collect();
        for epoch in &epochs {
            prop_assert_eq!(epoch.state_dict(), epochs[0].state_dict());
            prop_assert_eq!(epoch.state_dict(), loaders[0].state_dict(1));
        }
        for (rank, loader) in ranks.iter().zip(&loaders) {
            prop_assert_eq!(rank.len() as u64, loader.num_batches());
            if options.epoch_end != EpochEnd::Exact {
                prop_assert_eq!(rank.len(), ranks[0].len());
                prop_assert!(!rank.is_empty());
            }
        }
        let counts = counts(ranks.into_iter().flatten().flatten());
        let all: usize = lengths.iter().sum();
        let repeated: usize = counts.values().map(|n| n - 1).sum();
        prop_assert_eq!(loaders[0].num_dropped() as usize, all - counts.len());
        prop_assert_eq!(loaders[0].num_repeated() as usize, repeated);
        match options.epoch_end {
            EpochEnd::Exact | EpochEnd::DropTail => prop_assert_eq!(repeated, 0),
            EpochEnd::Wrap if !options.drop_last => prop_assert_eq!(counts.len(), all),
            EpochEnd::Wrap => {}
        }
        let told = loaders[0].warnings();
        let is_even = (0..world_size).all(|rank| loaders[rank].num_batches() == loaders[0].num_batches());
        let expected = match options.epoch_end {
            EpochEnd::Exact => !is_even,
            EpochEnd::DropTail => counts.len() < all,
            EpochEnd::Wrap => repeated > 0,
        };
        prop_assert_eq!(told.len(), usize::from(expected), "{:?}", told);
    }
}

fn batches_of(batch_size: usize) -> LoaderOptions {
    LoaderOptions {
        batch_size,
        ..LoaderOptions::default()
    }
}

/// After 4 batches of 3, one rank with two workers.
fn saved(dataset: &Dataset) -> StateDict {
    let loader = loader(&pool(dataset, 1), (0, 1, 2), batches_of(3));
    let mut epoch = loader.epoch(0).unwrap();
    take(&mut epoch, 4);
    epoch.state_dict()
}

const LENGTHS: [usize; 6] = [9, 4, 11, 7, 5, 8];

#[test]
fn a_state_is_small_and_says_what_it_is_of() {
    let dataset = Spec::new(10, &LENGTHS).write();
    let text = saved(&dataset).to_json();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (key, expected) in [
        ("version", 1.into()),
        ("batches_consumed", 4.into()),
        ("batch_size", 3.into()),
        ("epoch", 0.into()),
        ("batches_in_epoch", 4.into()),
        ("seed", 1.into()),
        ("episode_pool_size", 3.into()),
        ("shuffle", true.into()),
        ("shard_unit", "episode".into()),
        ("drop_last", false.into()),
        ("epoch_end", "exact".into()),
        ("canonical_consumers", serde_json::Value::Null),
        ("world_size", 1.into()),
        ("num_workers", 2.into()),
    ] {
        assert_eq!(value[key], expected, "{key}");
    }
    assert_eq!(value["dataset"]["total_frames"], 44);
    assert_eq!(value["dataset"]["total_episodes"], 6);
    // sha256 of (0, 9), (1, 4), ... as little-endian u64, by another implementation.
    assert_eq!(value["dataset"]["episode_lengths"], EPISODE_LENGTHS);
    assert!(text.len() < 1000, "{}", text.len());
}

const EPISODE_LENGTHS: &str =
    "sha256:069b94e7eadb520439019b9a9982a8b4f39dcc02b853dc4ff39ad079a62aaac2";

#[test]
fn a_state_of_another_run_is_refused_by_the_name_of_each_difference() {
    let dataset = Spec::new(10, &LENGTHS).write();
    let state = saved(&dataset);
    let other = builder(dataset.root())
        .episode_pool_size(2)
        .seed(5)
        .shuffle(false)
        .build()
        .unwrap();
    let options = LoaderOptions {
        batch_size: 4,
        drop_last: true,
        epoch_end: EpochEnd::Wrap,
        canonical_consumers: Some(2),
        ..LoaderOptions::default()
    };
    let other = loader(&other, (0, 1, 2), options);
    let error = other.load_state_dict(&state, true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the saved state does not fit: batch_size was 3 and is 4; seed was 1 and is 5; episode_pool_size was 3 and is 2; shuffle was \
         true and is false; drop_last was false and is true; epoch_end was exact and is wrap; canonical_consumers was none and is 2; \
         give the run the saved values, or load the state with strict = false to go on with the new ones"
    );

    // Unless strict, it goes on with the new options, and with no frame twice.
    let mut rest = other.load_state_dict(&state, false).unwrap();
    assert!(
        matches!(rest.warnings(), [Warning::StateDiffers { differences }] if differences.len() == 7),
        "{:?}",
        rest.warnings()
    );
    let before = take(
        &mut loader(&pool(&dataset, 1), (0, 1, 2), batches_of(3))
            .epoch(0)
            .unwrap(),
        4,
    );
    let after = take(&mut rest, usize::MAX);
    let before: Vec<Frame> = before.into_iter().flatten().collect();
    assert!(after.iter().flatten().all(|frame| !before.contains(frame)));
}

#[test]
fn a_state_of_another_dataset_is_refused_in_the_middle_of_an_epoch() {
    let dataset = Spec::new(10, &LENGTHS).write();
    let other = Spec::new(10, &[9, 4, 11, 7, 5, 9]).write();
    let filtered = builder(dataset.root())
        .episode_pool_size(3)
        .seed(1)
        .exclude_episodes([2])
        .build()
        .unwrap();
    for (pool, expected) in [
        (
            pool(&other, 1),
            "total_frames was 44 and is 45; episode_lengths was sha256:",
        ),
        (
            filtered,
            "does not fit: the selection of frames was sha256:",
        ),
    ] {
        let loader = loader(&pool, (0, 1, 2), batches_of(3));
        for strict in [true, false] {
            let error = loader
                .load_state_dict(&saved(&dataset), strict)
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
        // Between epochs nothing was consumed that could be taken for something else.
        let whole = take(&mut loader.epoch(2).unwrap(), usize::MAX);
        let state = self::loader(&self::pool(&dataset, 1), (0, 1, 2), batches_of(3)).state_dict(2);
        assert!(loader.load_state_dict(&state, true).is_err());
        let mut epoch = loader.load_state_dict(&state, false).unwrap();
        assert_eq!(take(&mut epoch, usize::MAX), whole);
    }
}

#[test]
fn another_batch_size_goes_on_from_a_bare_state_too() {
    let dataset = Spec::new(10, &LENGTHS).write();
    let pool = pool(&dataset, 1);
    let before = take(
        &mut loader(&pool, (0, 1, 2), batches_of(3)).epoch(1).unwrap(),
        4,
    );
    let per_epoch = loader(&pool, (0, 1, 2), batches_of(3)).num_batches();
    let state = State {
        batches_consumed: per_epoch + 4,
        batch_size: 3,
    };
    let now = loader(&pool, (0, 1, 2), batches_of(5));
    assert!(now.load_state_dict(&state.into(), true).is_err());
    let mut rest = now.load_state_dict(&state.into(), false).unwrap();
    assert_eq!(rest.epoch(), 1);
    let after = take(&mut rest, usize::MAX);
    assert_eq!(after[0].len(), 5);
    let all = before.into_iter().chain(after).flatten();
    assert_eq!(counts(all), counts(every_frame(&LENGTHS)));

    // Ranks that are in different epochs cannot tell what was consumed.
    let state = State {
        batches_consumed: 6,
        batch_size: 4,
    };
    let ranks = loader(&pool, (0, 4, 0), batches_of(5));
    let error = ranks
        .load_state_dict(&state.into(), false)
        .unwrap_err()
        .to_string();
    assert!(error.contains("rank 0 is in epoch"), "{error}");
}

#[test]
fn texts_that_are_no_states_are_told_what_is_wrong() {
    for (text, expected) in [
        ("[]", "expected an object, found an array"),
        ("{", "EOF while parsing"),
        ("{}", "`batches_consumed` is missing"),
        (r#"{"batches_consumed": 3}"#, "`batch_size` is missing"),
        (
            r#"{"batches_consumed": -3, "batch_size": 1}"#,
            "`batches_consumed` should be a whole number, found -3",
        ),
        (
            r#"{"batches_consumed": 3, "batch_size": 0}"#,
            "`batch_size` is 0",
        ),
        (
            r#"{"batches_consumed": 3, "batch_size": 1, "version": 2}"#,
            "of version 2, and this release reads version 1",
        ),
        (
            r#"{"batches_consumed": 3, "batch_size": 1, "epoch": 2}"#,
            "`epoch` is there, but not `version`",
        ),
        (
            r#"{"batches_consumed": 3, "batch_size": 1, "version": 1}"#,
            "missing field `epoch`",
        ),
    ] {
        let error = StateDict::from_json(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    // A trainer may keep more beside it.
    let state =
        StateDict::from_json(r#"{"batches_consumed": 3, "batch_size": 1, "lr": 0.1}"#).unwrap();
    assert_eq!(
        (state.batches_consumed(), state.batch_size(), state.epoch()),
        (3, 1, None)
    );
}

#[test]
fn states_that_lead_nowhere_are_errors() {
    let dataset = Spec::new(10, &LENGTHS).write();
    let loader = loader(&pool(&dataset, 1), (0, 1, 3), batches_of(3));
    let mut state: serde_json::Value = serde_json::from_str(&saved(&dataset).to_json()).unwrap();
    for (key, value, expected) in [
        ("world_size", 0_u64, "world_size is 0"),
        ("num_workers", 1 << 40, "consumers"),
        ("num_workers", u64::MAX, "consumers"),
    ] {
        let before = std::mem::replace(&mut state[key], value.into());
        let loaded = StateDict::from_json(&state.to_string()).unwrap();
        let error = loader.load_state_dict(&loaded, true).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(expected), "{key}: {source}");
        state[key] = before;
    }
    // Far past the end of the epoch there is nothing left of it.
    state["batches_in_epoch"] = u64::MAX.into();
    let loaded = StateDict::from_json(&state.to_string()).unwrap();
    let mut epoch = loader.load_state_dict(&loaded, true).unwrap();
    assert_eq!((epoch.epoch(), epoch.remaining_batches()), (0, 0));
    assert!(epoch.next().is_none());
    assert_eq!(epoch.state_dict().epoch(), Some(1));
}

#[test]
fn nothing_is_read_to_go_on() {
    let dataset = Spec::new(10, &LENGTHS).write();
    let state = saved(&dataset);
    let pool = pool(&dataset, 1);
    let same = loader(&pool, (0, 1, 2), batches_of(3));
    let elastic = loader(&pool, (0, 1, 3), batches_of(3));
    std::fs::remove_dir_all(dataset.root().join("data")).unwrap();
    for loader in [same, elastic] {
        let mut batches = loader.worker_load_state_dict(&state, true, 0).unwrap();
        // Only now.
        assert!(batches.next().unwrap().is_err());
    }
}

#[test]
fn a_rest_too_small_for_an_even_end_is_left_out_with_a_warning() {
    let dataset = Spec::new(10, &LENGTHS).write();
    let pool = pool(&dataset, 1);
    let one = LoaderOptions {
        epoch_end: EpochEnd::Wrap,
        ..batches_of(3)
    };
    let mut epoch = loader(&pool, (0, 1, 0), one).epoch(0).unwrap();
    take(&mut epoch, 14);
    let state = epoch.state_dict();
    let mut rest = loader(&pool, (0, 4, 0), one)
        .load_state_dict(&state, true)
        .unwrap();
    assert!(
        matches!(
            rest.warnings(),
            [Warning::RestLeftOut {
                epoch: 0,
                frames: 2
            }]
        ),
        "{:?}",
        rest.warnings()
    );
    assert_eq!(take(&mut rest, usize::MAX), Frames::new());
}
