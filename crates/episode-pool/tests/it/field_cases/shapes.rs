//! The shape `[1]`, which is a scalar, whatever the storage.

use episode_pool::{Batch, ElementType};
use testkit::{Dtype, Feature, Spec, Storage};

use crate::support::{builder, windows};

const ELEMENTS: [(&str, Dtype, ElementType); 6] = [
    ("observation.state", Dtype::Float32, ElementType::F32),
    ("next.reward", Dtype::Float64, ElementType::F32),
    ("next.done", Dtype::Bool, ElementType::Bool),
    ("count", Dtype::Int64, ElementType::I64),
    ("gripper", Dtype::UInt8, ElementType::U8),
    ("language", Dtype::String, ElementType::Str),
];

fn batches(storage: Storage, deltas: &[f64]) -> Vec<Batch> {
    let mut features: Vec<Feature> = ELEMENTS
        .into_iter()
        .map(|(key, dtype, _)| {
            let feature = Feature::new(key, dtype, &[1], |row, _| (row.index % 2) as f64);
            Feature { storage, ..feature }
        })
        .collect();
    features.extend(Feature::bookkeeping());
    let dataset = Spec {
        features,
        ..Spec::new(10, &[4, 3])
    }
    .write();
    let mut builder = builder(dataset.root());
    if !deltas.is_empty() {
        builder = builder.delta_timestamps(windows(&ELEMENTS.map(|(key, ..)| (key, deltas))));
    }
    let pool = builder.build().unwrap();
    for (key, _, element_type) in ELEMENTS {
        let field = pool
            .fields()
            .iter()
            .find(|field| field.key() == key)
            .unwrap();
        let expected: &[usize] = if deltas.is_empty() { &[] } else { &[3] };
        assert_eq!(
            (field.element_type(), field.shape()),
            (element_type, expected),
            "{key}"
        );
    }
    pool.epoch(0)
        .unwrap()
        .batches(4, false)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

#[test]
fn a_shape_of_one_is_a_scalar_however_it_is_stored() {
    for (deltas, inner) in [(&[] as &[f64], &[] as &[usize]), (&[-0.1, 0.0, 0.1], &[3])] {
        let plain = batches(Storage::Scalar, deltas);
        for batch in &plain {
            for (key, ..) in ELEMENTS {
                let shape = [&[batch.len()], inner].concat();
                assert_eq!(batch.fields.get(key).unwrap().shape(), shape, "{key}");
            }
        }
        for storage in [Storage::List, Storage::FixedSizeList] {
            assert_eq!(batches(storage, deltas), plain, "{storage:?}");
        }
    }
}

const SHAPES: [(&str, &[usize]); 4] = [
    ("row", &[1, 3]),
    ("column", &[3, 1]),
    ("cell", &[1, 1]),
    ("pair", &[2]),
];

#[test]
fn only_the_shape_of_one_loses_its_axis() {
    let mut spec = Spec::new(10, &[4]);
    for (key, shape) in SHAPES {
        spec.features
            .push(Feature::new(key, Dtype::Float32, shape, |row, k| {
                (row.index * 10 + k) as f64
            }));
    }
    let dataset = spec.write();
    let pool = builder(dataset.root()).shuffle(false).build().unwrap();
    let sample = pool.epoch(0).unwrap().nth(2).unwrap().unwrap();
    for (key, shape) in SHAPES {
        let array = sample.fields.get(key).unwrap();
        let len: usize = shape.iter().product();
        let expected: Vec<f32> = (0..len).map(|k| (20 + k) as f32).collect();
        assert_eq!(
            (array.shape(), array.as_f32().unwrap()),
            (shape, &expected[..]),
            "{key}"
        );
    }
}
