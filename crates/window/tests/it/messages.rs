//! Faults in delta_timestamps are all reported, in words that say what to change.

use std::collections::BTreeMap;

use window::{DEFAULT_TOLERANCE_S, DeltaFault, DeltaTimestamps, Error, Offsets};

/// The message for the window `deltas_s` of `action` at 10 fps.
fn message(deltas_s: &[f64]) -> String {
    Offsets::from_seconds("action", deltas_s, 10.0, DEFAULT_TOLERANCE_S)
        .unwrap_err()
        .to_string()
}

#[test]
fn every_delta_between_frames_is_listed_with_the_nearest() {
    assert_eq!(
        message(&[0.0, 0.04, 0.1, -0.17]),
        "delta_timestamps of `action` must be whole frames at 10 fps, within 0.0001 s: \
         0.04 s (position 1) lies between frames, the nearest is 0 s; \
         -0.17 s (position 3) lies between frames, the nearest is -0.2 s"
    );
}

#[test]
fn numbers_that_are_none_are_refused() {
    for delta_s in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Offsets::from_seconds("action", &[0.0, delta_s], 10.0, DEFAULT_TOLERANCE_S)
            .unwrap_err();
        let Error::InvalidDeltas { deltas, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(
            (deltas[0].position, deltas[0].fault),
            (1, DeltaFault::NotFinite)
        );
    }
    assert!(message(&[1e300]).ends_with("is more frames away than can be counted exactly"));
    assert_eq!(
        message(&[]),
        "delta_timestamps of `action` are an empty list: give at least one delta, or leave the key out"
    );
}

#[test]
fn a_frame_rate_or_tolerance_without_sense_is_refused() {
    let parse = |fps, tolerance_s| Offsets::from_seconds("action", &[0.0], fps, tolerance_s);
    for fps in [0.0, -30.0, f64::NAN, f64::INFINITY] {
        assert!(
            matches!(parse(fps, 0.0), Err(Error::InvalidFps { .. })),
            "{fps}"
        );
    }
    for tolerance_s in [-1e-9, f64::NAN, f64::INFINITY] {
        assert!(
            matches!(
                parse(10.0, tolerance_s),
                Err(Error::InvalidTolerance { .. })
            ),
            "{tolerance_s}"
        );
    }
    // Even without keys.
    assert!(DeltaTimestamps::new(&BTreeMap::new(), 0.0, 0.0, &[]).is_err());
}

#[test]
fn an_unknown_key_is_answered_with_the_known_ones() {
    let deltas = BTreeMap::from([("observation.stat".to_owned(), vec![0.0])]);
    let error = DeltaTimestamps::new(
        &deltas,
        10.0,
        DEFAULT_TOLERANCE_S,
        &["observation.state", "action"],
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "delta_timestamps name `observation.stat`, which is no feature of the dataset; \
         its features are `observation.state`, `action`"
    );
}

#[test]
fn all_keys_at_fault_are_reported_at_once() {
    let deltas = BTreeMap::from([
        ("action".to_owned(), vec![0.05]),
        ("nothing".to_owned(), vec![0.0]),
        ("observation.state".to_owned(), vec![]),
        ("reward".to_owned(), vec![0.1]),
    ]);
    let known = ["action", "observation.state", "reward"];
    let error = DeltaTimestamps::new(&deltas, 10.0, DEFAULT_TOLERANCE_S, &known).unwrap_err();
    let Error::Several { errors } = &error else {
        panic!("{error}")
    };
    assert!(matches!(
        &errors[..],
        [
            Error::InvalidDeltas { .. },
            Error::UnknownKey { .. },
            Error::NoDeltas { .. }
        ]
    ));
    assert_eq!(error.to_string().lines().count(), 4, "{error}");
}

#[test]
fn windows_are_found_by_key() {
    let deltas = BTreeMap::from([
        ("b".to_owned(), vec![0.0]),
        ("a".to_owned(), vec![-0.1, 0.2]),
    ]);
    let windows =
        DeltaTimestamps::new(&deltas, 10.0, DEFAULT_TOLERANCE_S, &["a", "b", "c"]).unwrap();
    assert_eq!(windows.get("a").unwrap().as_slice(), [-1, 2]);
    assert_eq!(windows.get("c"), None);
    assert_eq!(
        windows.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        ["a", "b"]
    );
}
