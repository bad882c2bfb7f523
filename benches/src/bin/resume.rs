//! How long it takes to go on after so many samples: `resume [FRAMES_PER_EPISODE]`.
//!
//! One consumer has emitted all but the last of an epoch's frames; then eight have, and five others go on.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use pool_core::{
    EpisodeInfo, Filter, Plan, PlanOptions, Progress, Selection, Sharding, Share, Topology,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let per_episode: usize = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 1000,
    };
    let mut out = io::stdout();
    writeln!(
        out,
        "| samples consumed | episodes | share and plan | skip | other topology |\n|---|---|---|---|---|"
    )?;
    for exponent in 5..=10 {
        let frames = 10_usize.pow(exponent);
        let episodes: Vec<_> = (0..frames / per_episode)
            .map(|episode_index| EpisodeInfo {
                episode_index,
                length: per_episode,
                file: episode_index / 16,
            })
            .collect();
        let selection = Selection::new(&episodes, &Filter::default())?;
        drop(episodes);

        let (options, sharding) = (PlanOptions::default(), Sharding::default());
        let started = Instant::now();
        let share = Share::new(&selection, &Topology::single(), &sharding)?;
        let mut plan = Plan::new(&share, &options)?;
        let planned = started.elapsed();
        plan.skip_emissions(share.num_frames() - 1);
        let skipped = started.elapsed() - planned;
        black_box(plan.next());

        let started = Instant::now();
        let progress = Progress {
            world_size: 2,
            num_workers: 4,
            sharding,
            options,
            emitted: vec![selection.num_frames() / 8 - per_episode as u64; 8],
        };
        let rest = selection.rest(&progress)?.ok_or("something is left")?;
        let share = Share::new(&rest, &Topology::new(0, 5, 0, 0)?, &sharding)?;
        black_box(Plan::new(&share, &options)?.next());
        let elastic = started.elapsed();

        let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        writeln!(
            out,
            "| {frames} | {} | {} | {} | {} |",
            selection.episodes().len(),
            ms(planned),
            ms(skipped),
            ms(elastic)
        )?;
    }
    Ok(())
}
