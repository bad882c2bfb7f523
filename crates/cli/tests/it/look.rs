//! `look` draws a contact sheet.

use testkit::{RgbImage, read_png};

use crate::workplace::{Workplace, fixture};

/// The colour that marks padding.
const PADDING: [u8; 3] = [235, 87, 87];

fn look(workplace: &Workplace, options: &[&str]) -> RgbImage {
    let text = workplace.stdout(&[&["look"], options, &["--out", "look.png"]].concat());
    let picture = read_png(&workplace.path("look.png"));
    let size = format!("{} x {} pixels\n", picture.width, picture.height);
    assert!(
        text.starts_with("wrote look.png: ") && text.ends_with(&size),
        "{text}"
    );
    picture
}

fn count(picture: &RgbImage, color: [u8; 3]) -> usize {
    picture
        .pixels
        .chunks_exact(3)
        .filter(|pixel| *pixel == color)
        .count()
}

#[test]
fn windows_are_shown_and_padding_is_marked() {
    let workplace = Workplace::new();
    workplace.write("deltas.json", r#"{"observation.image": [-0.2, -0.1, 0.0]}"#);
    let path = fixture("pusht_like");
    // The first frames of an episode look back before its start.
    let first = ["--no-shuffle", "--episodes", "11", "--batch-size", "2"];
    let windowed = ["--delta-timestamps", "deltas.json"];
    let padded = look(
        &workplace,
        &[&[path.as_str()], &first[..], &windowed].concat(),
    );
    assert!(count(&padded, PADDING) > 1000);

    let plain = look(&workplace, &[&[path.as_str()], &first[..]].concat());
    assert_eq!(count(&plain, PADDING), 0);
    assert!(plain.height == padded.height && plain.width < padded.width + 200);

    // Later frames have nothing to mark.
    let later = ["--drop-n-first-frames", "2"];
    let whole = look(
        &workplace,
        &[&[path.as_str()], &first[..], &windowed, &later].concat(),
    );
    assert_eq!(count(&whole, PADDING), 0);
}

#[test]
fn a_sheet_is_the_same_each_time_and_another_each_epoch() {
    let workplace = Workplace::new();
    let path = fixture("image_only");
    let sheet = |epoch| look(&workplace, &[&path, "--batch-size", "3", "--epoch", epoch]);
    assert_eq!(sheet("0"), sheet("0"));
    assert_ne!(sheet("0"), sheet("1"));
}

#[test]
fn a_dataset_without_cameras_has_nothing_to_look_at() {
    let workplace = Workplace::new();
    let path = fixture("no_camera");
    let run = workplace.run(&["look", &path, "--out", "look.png"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("has no camera"), "{}", run.stderr);
    assert!(!workplace.path("look.png").exists());
}

#[test]
fn a_sheet_that_cannot_be_written_is_an_error() {
    let path = fixture("image_only");
    let run = Workplace::new().run(&["look", &path, "--out", "missing/look.png"]);
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr
            .starts_with("error: cannot write the picture `missing/look.png`\n  because: "),
        "{}",
        run.stderr
    );
}
