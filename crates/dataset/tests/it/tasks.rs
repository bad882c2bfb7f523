//! The task table: looked up by value, wherever the text lies.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, LargeStringArray};
use dataset::Error;

use crate::small::{DATA, Small, TASKS, doubles, drop_column, ints, rename, set, strings, table};

fn texts() -> [ArrayRef; 3] {
    let texts = ["c", "a", "b"];
    [
        strings(&texts),
        Arc::new(LargeStringArray::from_iter_values(texts)),
        Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>()),
    ]
}

#[test]
fn a_task_is_found_by_its_number_not_by_its_row() {
    for column in ["task", "__index_level_0__"] {
        for texts in texts() {
            for numbers in [ints([7, 0, 3]), doubles([7.0, 0.0, 3.0])] {
                let mut small =
                    Small::default().with_data("task_index", ints([7, 7, 7, 0, 0, 0, 0, 0, 3, 3]));
                small.tasks = table([("task_index", numbers), (column, Arc::clone(&texts))]);
                let metadata = small.metadata().unwrap();
                let tasks = metadata.tasks();
                assert_eq!(
                    tasks.iter().collect::<Vec<_>>(),
                    [(0, "a"), (3, "b"), (7, "c")]
                );
                assert_eq!(tasks.get(7), Some("c"));
                assert_eq!(tasks.get(1), None);
                assert_eq!(tasks.known(), "0, 3, 7");
                small.rows(2).unwrap();
            }
        }
    }
}

#[test]
fn a_row_of_an_unknown_task_is_named_with_the_tasks_that_are_known() {
    let mut small = Small::default().with_data("task_index", ints([0, 0, 0, 3, 3, 2, 3, 3, 7, 7]));
    small.tasks = table([
        ("task_index", ints([7, 0, 3])),
        ("task", strings(&["c", "a", "b"])),
    ]);
    small.rows(0).unwrap();
    let error = small.rows(1).unwrap_err();
    let Error::UnknownTask {
        path,
        row: 5,
        found: 2,
        known,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((path.as_str(), known.as_str()), (DATA, "0, 3, 7"));
}

#[test]
fn a_table_without_what_it_needs_is_refused() {
    for column in ["task_index", "task"] {
        let mut small = Small::default();
        drop_column(&mut small.tasks, column);
        let error = small.metadata().unwrap_err();
        assert!(
            matches!(&error, Error::MissingColumn { column: found, .. } if found == column),
            "{error}"
        );
    }
    let tasks = table([("task_index", ints([0, 0])), ("task", strings(&["a", "b"]))]);
    let small = Small {
        tasks,
        ..Small::default()
    };
    let error = small.metadata().unwrap_err();
    assert!(
        matches!(&error, Error::Value { path, row: 1, .. } if path == TASKS),
        "{error}"
    );
    let mut small = Small::default();
    set(&mut small.tasks, "task", ints([4]));
    assert!(small.metadata().is_err());
    let mut small = Small::default();
    rename(&mut small.tasks, "task", "__index_level_0__");
    small.metadata().unwrap();
}

#[test]
fn only_rows_with_a_task_index_need_a_task_table() {
    let mut small = Small::default();
    let mut storage = small.storage();
    storage.remove(TASKS);
    let error = dataset::Metadata::read(&storage).unwrap_err();
    assert!(error.is_missing_file(), "{error}");
    assert!(error.to_string().contains("task_index"), "{error}");

    small.info["features"]
        .as_object_mut()
        .unwrap()
        .remove("task_index")
        .unwrap();
    let mut storage = small.storage();
    storage.remove(TASKS);
    let metadata = dataset::Metadata::read(&storage).unwrap();
    assert!(metadata.tasks().is_empty());
    assert_eq!(metadata.tasks().known(), "none");
    crate::small::read_rows(&storage, 0).unwrap();
}

#[test]
fn statistics_are_optional_and_their_faults_are_warnings() {
    for (stats, warned) in [
        (r#"{"state": {"mean": [1.5, 2.5]}}"#, false),
        ("{}", false),
        (r#"{"state": {"mean": [NaN]}}"#, true),
        ("version https://git-lfs.github.com/spec/v1", true),
    ] {
        let mut storage = Small::default().storage();
        storage.insert(crate::small::STATS, stats);
        let metadata = dataset::Metadata::read(&storage).unwrap();
        assert_eq!(metadata.warnings().len(), usize::from(warned), "{stats}");
        assert_eq!(metadata.stats().is_some(), !warned, "{stats}");
    }
    assert!(Small::default().metadata().unwrap().stats().is_none());
}
