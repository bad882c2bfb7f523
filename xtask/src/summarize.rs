//! `cargo xtask summarize`: what a matrix of benchmarks came to, with a row for every job whatever became of it.
//!
//! [`row`] joins the list of jobs, the results and the records of how jobs ended; [`slurm`] is asked about jobs that left
//! none. [`table`] and [`plot`] show rows, [`compare`] those of two folders.

mod compare;
mod plot;
mod row;
mod slurm;
mod table;

use std::fs;
use std::path::Path;

use crate::flags::Summarize;
use crate::{Result, sh};

use plot::Bar;

/// Camera frames a second and node that training wants, by mode.
const TARGETS: [(&str, f64); 2] = [("single", 120.0), ("sarm", 320.0)];

pub(crate) fn run(flags: &Summarize, invoked_in: &Path) -> Result {
    let folder = invoked_in.join(&flags.dir);
    let rows = row::read(&folder, slurm::ask)?;
    let (shown, csv, bars) = match &flags.after {
        None => {
            let bars = rows.iter().map(Bar::of_row).collect();
            let csv = (folder.join("summary.csv"), table::csv(&rows));
            (table::text(&rows), csv, bars)
        }
        Some(after) => {
            let after = invoked_in.join(after);
            let pairs = compare::pairs(rows, row::read(&after, slurm::ask)?);
            let bars: Vec<Bar> = pairs.iter().flat_map(Bar::of_pair).collect();
            let csv = (after.join("comparison.csv"), compare::csv(&pairs));
            (compare::text(&pairs), csv, bars)
        }
    };
    sh::print(&shown)?;
    let (path, csv) = csv;
    write(&path, &csv)?;
    if let Some(file) = &flags.plot {
        write(&invoked_in.join(file), &plot::svg(&bars))?;
    }
    Ok(())
}

/// The target of a mode, where it has one.
fn target(mode: &str) -> Option<f64> {
    let target = TARGETS.iter().find(|(name, _)| *name == mode);
    target.map(|(_, target)| *target)
}

fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
