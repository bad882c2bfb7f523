//! `info` says what is in a dataset.

use testkit::Spec;

use crate::workplace::{Workplace, fixture, root};

#[test]
fn a_dataset_is_described_for_people() {
    let dataset = Spec::new(10, &[3, 5, 2]).write();
    let path = root(&dataset);
    let expected = format!(
        "\
{path}
  LeRobotDataset v3.0
  10 frames in 3 episodes and 1 data file, 10 fps, 1.0 s
  an episode has 2 to 5 frames, 3.3 on average

  feature            type     shape
  observation.state  float32  [2]
  action             float32  [2]
  timestamp          float32  [1]
  frame_index        int64    [1]
  episode_index      int64    [1]
  index              int64    [1]
  task_index         int64    [1]

  task
     0  push the block
"
    );
    assert_eq!(Workplace::new().stdout(&["info", &path]), expected);
}

#[test]
fn cameras_are_listed_with_their_files() {
    let text = Workplace::new().stdout(&["info", &fixture("aloha_like")]);
    let expected = "
  camera                          height x width  stored as   files
  observation.images.top               240 x 320  video, av1      8
  observation.images.left_wrist        240 x 320  video, av1      7
  observation.images.right_wrist       240 x 320  video, av1      7
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_dataset_is_described_for_programs() {
    let info = Workplace::new().json(&["info", &fixture("pusht_like"), "--json"]);
    for (pointer, expected) in [
        ("/codebase_version", "\"v3.0\""),
        ("/fps", "10.0"),
        ("/total_episodes", "12"),
        ("/total_frames", "296"),
        ("/duration_s", "29.6"),
        ("/episode_frames/min", "1"),
        ("/episode_frames/max", "60"),
        ("/data_files", "1"),
        (
            "/features/0",
            r#"{"dtype":"float32","key":"observation.state","names":["s0","s1"],"shape":[2]}"#,
        ),
        (
            "/cameras",
            r#"[{"codec":"av1","dtype":"video","height":96,"is_depth":false,"key":"observation.image","video_files":1,"width":96}]"#,
        ),
        (
            "/tasks",
            r#"[{"task":"Push the T-shaped block onto the target.","task_index":0}]"#,
        ),
        ("/warnings", "[]"),
    ] {
        assert_eq!(
            info.pointer(pointer).map(ToString::to_string).as_deref(),
            Some(expected),
            "{pointer}"
        );
    }
}
