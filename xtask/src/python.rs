//! The Python package: built as a wheel, installed as users do, and tested there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, sh};

/// What the tests import, and how the wheel is built.
const REQUIREMENTS: &str = "python/tests/requirements.txt";

/// Tells a Python that can make a virtual environment, and is one of those that the package is for.
pub(crate) const PROBE: [&str; 2] = [
    "-c",
    "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))",
];

/// Builds the wheel into a virtual environment of its own below the target folder, and runs the tests there.
pub(crate) fn run() -> Result {
    let target = std::path::absolute(sh::target_dir())
        .map_err(|error| format!("the target folder: {error}"))?;
    let venv = Venv::ready(&target.join("python/venv"))?;
    let wheels = target.join("python/wheels");
    // An older wheel would be installed in its place.
    let _ = fs::remove_dir_all(&wheels);
    // The profile of the other tests: what they have built is used again.
    let mut build = venv.command("maturin");
    build.args(["build", "--quiet", "--profile", "dev", "--locked"]);
    // For this machine: FFmpeg's libraries are not to be packed into it.
    build.args(["--compatibility", "linux", "--auditwheel", "skip", "--out"]);
    sh::run(build.arg(&wheels).env("CARGO_TARGET_DIR", &target))?;
    let wheel = only_file(&wheels)?;
    let mut install = venv.command("pip");
    install.args([
        "install",
        "--quiet",
        "--no-deps",
        "--force-reinstall",
        "--disable-pip-version-check",
    ]);
    sh::run(install.arg(wheel))?;

    sh::run(venv.command("python").args(["-m", "mypy"]))?;
    // The stubs of the module in Rust against the module.
    let mut stubs = venv.command("python");
    sh::run(stubs.args(["-m", "mypy.stubtest", "episode_pool._episode_pool"]))?;
    let mut tests = venv.command("python");
    tests.args(["-m", "pytest", "-q", "-ra", "--durations", "3"]);
    sh::run(&mut tests)
}

/// A virtual environment with all that the tests require.
struct Venv {
    programs: PathBuf,
}

impl Venv {
    fn ready(folder: &Path) -> Result<Venv> {
        let venv = Venv {
            programs: folder.join("bin"),
        };
        let requirements =
            fs::read_to_string(REQUIREMENTS).map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
        // Written once all is installed: an installation that was cut short is done again.
        let stamp = folder.join("requirements.txt");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirements) {
            return Ok(venv);
        }
        let mut make = Command::new("python3");
        sh::run(make.args(["-m", "venv", "--clear"]).arg(folder))?;
        let mut install = venv.command("pip");
        install.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
        sh::run(install.arg(REQUIREMENTS))?;
        fs::write(&stamp, requirements).map_err(|error| format!("{}: {error}", stamp.display()))?;
        Ok(venv)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        // Nothing but what the environment holds is to be found.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        command
    }
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let entries = folder
        .read_dir()
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        _ => Err(format!(
            "{}: one wheel was expected there",
            folder.display()
        )),
    }
}
