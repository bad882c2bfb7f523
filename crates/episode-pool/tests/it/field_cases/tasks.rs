//! The sentence of a task, found by number and not by position.

use testkit::{Spec, Tasks, TextType};

use super::{assert_says, failure, field};
use crate::support::{builder, samples};

fn spec(column: &str, text: TextType) -> Spec {
    let tasks = Tasks {
        rows: [(7, "c"), (0, "a"), (3, "b")]
            .map(|(number, text)| (number, text.to_owned()))
            .to_vec(),
        column: column.to_owned(),
        text,
        of: |episode_index, frame_index| [0, 3, 7][(episode_index + frame_index) % 3],
    };
    Spec {
        tasks,
        ..Spec::new(10, &[4, 5])
    }
}

/// The row's position in the table was taken for the task's number, and only one name and one type of the column was known.
#[test]
fn a_task_is_looked_up_by_its_number() {
    for column in ["task", "__index_level_0__"] {
        for text in [TextType::Utf8, TextType::LargeUtf8, TextType::Dictionary] {
            let dataset = spec(column, text).write();
            let pool = builder(dataset.root()).build().unwrap();
            let emitted = samples(&pool, 0);
            assert_eq!(emitted.len(), 9);
            for sample in &emitted {
                let expected = ["a", "b", "c"][(sample.episode_index + sample.frame_index) % 3];
                assert_eq!(
                    field(sample, "task").as_str().unwrap(),
                    [expected],
                    "{column}, {text:?}"
                );
            }
        }
    }
}

#[test]
fn a_row_of_an_unknown_task_is_named_with_the_known_ones() {
    let mut spec = spec("task", TextType::LargeUtf8);
    spec.tasks.of = |episode_index, frame_index| {
        if (episode_index, frame_index) == (1, 2) {
            5
        } else {
            0
        }
    };
    let dataset = spec.write();
    let message = failure(dataset.root());
    assert_says(
        &message,
        &[
            "episode 1",
            "data/chunk-000/file-000.parquet",
            "row 6",
            "`task_index` is 5",
            "0, 3, 7",
        ],
    );
}
