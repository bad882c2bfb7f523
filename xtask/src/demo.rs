//! `cargo xtask demo`: a bundled dataset streams by.

use std::process::Command;

use crate::setup::Purpose;
use crate::{Result, setup, sh};

const DATASET: &str = "fixtures/aloha_like/dataset";
const DELTA_TIMESTAMPS: &str = "examples/delta_timestamps.json";

pub(crate) fn run() -> Result {
    setup::ensure(Purpose::Build)?;
    sh::run(&mut sh::cargo("build --release -p cli"))?;

    let program = sh::target_dir().join("release/episode-pool");
    let sheet = sh::target_dir().join("demo.png");
    let episode_pool = || Command::new(&program);

    eprintln!("\nWhat is in it:");
    sh::run(episode_pool().args(["info", DATASET]))?;

    eprintln!("\nOne epoch, shuffled across a pool of four episodes, a window on every camera:");
    let sizes = ["--batch-size", "16", "--episode-pool-size", "4"];
    let windows = ["--delta-timestamps", DELTA_TIMESTAMPS];
    sh::run(
        episode_pool()
            .args(["stream", DATASET])
            .args(sizes)
            .args(windows),
    )?;

    eprintln!("\nA batch as a picture:");
    sh::run(
        episode_pool()
            .args(["look", DATASET])
            .args(windows)
            .arg("--out")
            .arg(&sheet),
    )?;
    eprintln!(
        "\nSee {}. Any command above can be pasted and changed; `--help` tells how.",
        sheet.display()
    );
    Ok(())
}
