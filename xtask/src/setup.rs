//! `cargo xtask setup`: what the build and the tests need from the system.
//!
//! It looks first and touches nothing when all is there. What is missing is installed through apt-get where that can be
//! done without asking; anywhere else the error names the command to run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, python, sh};

/// What a command is going to do, and so what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Compile the workspace.
    Build,
    /// Build, and run every check.
    Test,
    /// Build with libFuzzer, which is C++.
    Fuzz,
    /// All of these.
    Everything,
}

/// One of FFmpeg's libraries, as pkg-config and Debian call it.
struct Library {
    module: &'static str,
    package: &'static str,
    /// Its major version in FFmpeg 5, 6, 7 and 8.
    majors: [u32; 4],
}

/// The seven libraries that the bindings link, libavutil first: it tells FFmpeg's version.
const LIBRARIES: [Library; 7] = [
    Library {
        module: "libavutil",
        package: "libavutil-dev",
        majors: [57, 58, 59, 60],
    },
    Library {
        module: "libavcodec",
        package: "libavcodec-dev",
        majors: [59, 60, 61, 62],
    },
    Library {
        module: "libavformat",
        package: "libavformat-dev",
        majors: [59, 60, 61, 62],
    },
    Library {
        module: "libavdevice",
        package: "libavdevice-dev",
        majors: [59, 60, 61, 62],
    },
    Library {
        module: "libavfilter",
        package: "libavfilter-dev",
        majors: [8, 9, 10, 11],
    },
    Library {
        module: "libswscale",
        package: "libswscale-dev",
        majors: [6, 7, 8, 9],
    },
    Library {
        module: "libswresample",
        package: "libswresample-dev",
        majors: [4, 4, 5, 6],
    },
];

/// The first of `LIBRARIES[0].majors` belongs to FFmpeg 5.0 as well, which is too old: 5.1 starts at this minor version.
const FFMPEG_5_1_LIBAVUTIL_MINOR: u32 = 28;

/// The questions that [`survey`] asks of a machine; tests answer them from a table.
trait Machine {
    /// What a program prints, or `None` where it is missing or fails.
    fn read(&self, program: &str, args: &[&str]) -> Option<String>;

    /// Whether bindgen will find libclang and the headers that belong to it.
    fn has_libclang(&self) -> bool;

    /// Whether a program is installed. SLURM's own cannot be run for an answer: they first want a cluster.
    fn has_program(&self, name: &str) -> bool;
}

/// What the tests run beside FFmpeg, and Debian's packages with it: a SLURM of one node, a reader of shell scripts, and
/// a web server.
const TEST_PROGRAMS: [(&str, &str); 6] = [
    ("slurmctld", "slurm-wlm"),
    ("slurmd", "slurm-wlm"),
    ("sbatch", "slurm-client"),
    ("munged", "munge"),
    ("shellcheck", "shellcheck"),
    ("nginx", "nginx-light"),
];

/// What stands between this machine and a build.
#[derive(Debug, Default, PartialEq, Eq)]
struct Survey {
    /// Debian packages to install.
    packages: Vec<&'static str>,
    /// rustup components to add.
    components: Vec<&'static str>,
    /// What no package can mend, a sentence each.
    faults: Vec<String>,
}

impl Survey {
    fn is_clear(&self) -> bool {
        *self == Survey::default()
    }

    /// The survey, unless it holds something that no installation mends.
    fn without_faults(self) -> Result<Survey> {
        if self.faults.is_empty() {
            Ok(self)
        } else {
            Err(self.faults.join("\n"))
        }
    }
}

pub(crate) fn run() -> Result {
    ensure(Purpose::Everything)?;
    let version =
        sh::read("pkg-config", &["--modversion", LIBRARIES[0].module]).unwrap_or_default();
    eprintln!("setup: everything is here (libavutil {version}).");
    Ok(())
}

/// Returns when everything that `purpose` needs is there, after installing what was missing.
pub(crate) fn ensure(purpose: Purpose) -> Result {
    let found = survey(&ThisMachine, purpose).without_faults()?;
    if found.is_clear() {
        return Ok(());
    }
    if !found.packages.is_empty() {
        install(&found.packages)?;
    }
    if !found.components.is_empty() {
        add_components(&found.components)?;
    }

    // Again, since without pkg-config nothing was known about FFmpeg.
    let left = survey(&ThisMachine, purpose).without_faults()?;
    if left.is_clear() {
        return Ok(());
    }
    let missing = [left.packages, left.components].concat().join(", ");
    Err(format!(
        "still missing after the installation: {missing}. Does another copy stand before it, by PATH, PKG_CONFIG or LIBCLANG_PATH?"
    ))
}

fn survey(machine: &impl Machine, purpose: Purpose) -> Survey {
    let mut survey = Survey::default();
    let answers = |program: &str, arg: &str| machine.read(program, &[arg]).is_some();

    if answers("pkg-config", "--version") {
        survey_ffmpeg(machine, &mut survey);
    } else {
        survey.packages.push("pkg-config");
        // Nothing can be asked about them yet; apt-get leaves alone those that are there.
        survey
            .packages
            .extend(LIBRARIES.iter().map(|library| library.package));
    }
    if !machine.has_libclang() {
        survey.packages.push("libclang-dev");
    }

    if matches!(purpose, Purpose::Test | Purpose::Everything) {
        if !answers("ffmpeg", "-version") {
            survey.packages.push("ffmpeg");
        }
        for (program, package) in TEST_PROGRAMS {
            if !machine.has_program(program) && !survey.packages.contains(&package) {
                survey.packages.push(package);
            }
        }
        if machine.read("python3", &python::PROBE).is_none() {
            survey.packages.push("python3-venv");
        }
        for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
            if machine.read("cargo", &[command, "--version"]).is_none() {
                survey.components.push(component);
            }
        }
    }
    if matches!(purpose, Purpose::Fuzz | Purpose::Everything) && !answers("c++", "--version") {
        survey.packages.push("g++");
    }
    survey
}

/// Each library is there, of one FFmpeg, and of a version that the code is written for.
fn survey_ffmpeg(machine: &impl Machine, survey: &mut Survey) {
    let mut release = None;
    for library in &LIBRARIES {
        let Some(version) = machine.read("pkg-config", &["--modversion", library.module]) else {
            survey.packages.push(library.package);
            continue;
        };
        let mut numbers = version
            .split('.')
            .map_while(|number| number.parse::<u32>().ok());
        let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));

        if library.module == LIBRARIES[0].module {
            release = library.majors.iter().position(|&known| known == major);
            if release.is_none() || (release == Some(0) && minor < FFMPEG_5_1_LIBAVUTIL_MINOR) {
                survey.faults.push(format!(
                    "FFmpeg 5.1 to 8.x is needed (libavutil 57.28 to 60), and pkg-config finds libavutil {version}{}. \
                     Debian 12 and 13 and Ubuntu 24.04 package one that fits; elsewhere build FFmpeg and run \
                     `PKG_CONFIG_PATH=ITS_PREFIX/lib/pkgconfig cargo xtask setup`.",
                    place(machine, library.module)
                ));
                return;
            }
        } else if let Some(release) = release
            && library.majors[release] != major
        {
            survey.faults.push(format!(
                "{} {version}{} is not of the same FFmpeg as libavutil{}: FFmpeg {} has {} {}. \
                 Remove one of the two, or name the folder of one whole FFmpeg in PKG_CONFIG_PATH.",
                library.module,
                place(machine, library.module),
                place(machine, LIBRARIES[0].module),
                5 + release,
                library.module,
                library.majors[release],
            ));
        }
    }
}

/// ` in /usr/lib/pkgconfig`, where pkg-config knows.
fn place(machine: &impl Machine, module: &str) -> String {
    machine
        .read("pkg-config", &["--variable=pcfiledir", module])
        .filter(|folder| !folder.is_empty())
        .map(|folder| format!(" in {folder}"))
        .unwrap_or_default()
}

fn install(packages: &[&str]) -> Result {
    let list = packages.join(" ");
    if sh::read("apt-get", &["--version"]).is_none() {
        return Err(format!(
            "missing, by their names in Debian: {list}. There is no apt-get here; install them with your package manager."
        ));
    }
    let become_root: &[&str] = if sh::read("id", &["-u"]).as_deref() == Some("0") {
        &[]
    } else if sh::read("sudo", &["-n", "true"]).is_some() {
        &["sudo", "-n"]
    } else {
        return Err(format!(
            "missing: {list}. Run `sudo apt-get update && sudo apt-get install -y {list}`, then this again."
        ));
    };

    // Wait for another apt-get rather than fail: a fresh machine often runs one of its own.
    let apt_get = [
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-o",
        "DPkg::Lock::Timeout=120",
    ];
    let words = [become_root, &apt_get].concat();
    let apt_get = |args: &[&str]| sh::run(Command::new(words[0]).args(&words[1..]).args(args));

    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    apt_get(&install).or_else(|_| {
        eprintln!("setup: the package lists may be old or absent; fetching them and trying again");
        apt_get(&["update"])?;
        apt_get(&install)
    })
}

fn add_components(components: &[&str]) -> Result {
    if sh::read("rustup", &["--version"]).is_none() {
        let list = components.join(" and ");
        return Err(format!(
            "this Rust comes without {list}, and there is no rustup to add them; Debian's own Rust has them as `rustfmt` and `rust-clippy`"
        ));
    }
    sh::run(
        Command::new("rustup")
            .args(["component", "add"])
            .args(components),
    )
}

/// The machine that we run on.
struct ThisMachine;

impl Machine for ThisMachine {
    fn read(&self, program: &str, args: &[&str]) -> Option<String> {
        sh::read(program, args)
    }

    fn has_libclang(&self) -> bool {
        // A path that someone set is theirs to answer for.
        env::var_os("LIBCLANG_PATH").is_some()
            || libclang_dirs().iter().any(|dir| holds_libclang(dir))
    }

    fn has_program(&self, name: &str) -> bool {
        let path = env::var_os("PATH").unwrap_or_default();
        // Daemons lie where the PATH of a plain user does not lead.
        let daemons = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
        env::split_paths(&path)
            .chain(daemons)
            .any(|folder| folder.join(name).is_file())
    }
}

/// Where clang-sys, which bindgen uses, looks for libclang on Linux and macOS.
fn libclang_dirs() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = sh::read("llvm-config", &["--libdir"])
        .map(PathBuf::from)
        .into_iter()
        .collect();
    dirs.extend(
        [
            "/usr/lib64",
            "/usr/lib",
            "/usr/local/lib",
            "/opt/homebrew/opt/llvm/lib",
        ]
        .map(PathBuf::from),
    );
    let versions = Path::new("/usr/lib")
        .read_dir()
        .into_iter()
        .flatten()
        .flatten();
    dirs.extend(
        versions
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm-"))
            .map(|entry| entry.path().join("lib")),
    );
    dirs
}

/// Whether a folder holds libclang and clang's own headers beside it; without `stddef.h` it parses no C library's header.
fn holds_libclang(dir: &Path) -> bool {
    let entries = |dir: &Path| {
        dir.read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect::<Vec<_>>()
    };
    let is_library = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            let rest = name.strip_prefix("libclang").unwrap_or_default();
            // libclang.so, libclang.so.1, libclang-14.so.1, libclang.dylib; not libclang-cpp.so.
            rest.starts_with(".so")
                || rest.starts_with(".dylib")
                || (rest.starts_with("-1") && rest.contains(".so"))
        })
    };
    entries(dir).iter().any(is_library)
        && entries(&dir.join("clang"))
            .iter()
            .any(|version| version.join("include/stddef.h").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with FFmpeg's libraries of given versions, and some programs.
    struct Fake {
        versions: [&'static str; 7],
        programs: Vec<&'static str>,
        libclang: bool,
    }

    const FFMPEG_5_1: [&str; 7] = [
        "57.28.100",
        "59.37.100",
        "59.27.100",
        "59.7.100",
        "8.44.100",
        "6.7.100",
        "4.7.100",
    ];
    const FFMPEG_6_1: [&str; 7] = [
        "58.29.100",
        "60.31.102",
        "60.16.100",
        "60.3.100",
        "9.12.100",
        "7.5.100",
        "4.12.100",
    ];
    const FFMPEG_7_1: [&str; 7] = [
        "59.39.100",
        "61.19.101",
        "61.7.100",
        "61.3.100",
        "10.4.100",
        "8.3.100",
        "5.3.100",
    ];
    const FFMPEG_8_0: [&str; 7] = [
        "60.8.100",
        "62.11.100",
        "62.3.100",
        "62.1.100",
        "11.4.100",
        "9.1.100",
        "6.1.100",
    ];

    impl Fake {
        fn with(versions: [&'static str; 7]) -> Fake {
            Fake {
                versions,
                programs: vec![
                    "pkg-config",
                    "ffmpeg",
                    "cargo",
                    "c++",
                    "slurmctld",
                    "slurmd",
                    "sbatch",
                    "munged",
                    "shellcheck",
                    "nginx",
                    "python3",
                ],
                libclang: true,
            }
        }
    }

    impl Machine for Fake {
        fn read(&self, program: &str, args: &[&str]) -> Option<String> {
            if !self.programs.contains(&program) {
                return None;
            }
            match (program, args) {
                ("pkg-config", ["--modversion", module]) => {
                    let library = LIBRARIES
                        .iter()
                        .position(|library| library.module == *module)?;
                    Some(self.versions[library].to_owned()).filter(|version| !version.is_empty())
                }
                ("pkg-config", ["--variable=pcfiledir", _]) => {
                    Some("/opt/ffmpeg/lib/pkgconfig".to_owned())
                }
                _ => Some(String::new()),
            }
        }

        fn has_libclang(&self) -> bool {
            self.libclang
        }

        fn has_program(&self, name: &str) -> bool {
            self.programs.contains(&name)
        }
    }

    #[test]
    fn every_supported_ffmpeg_is_clear() {
        for versions in [FFMPEG_5_1, FFMPEG_6_1, FFMPEG_7_1, FFMPEG_8_0] {
            for purpose in [
                Purpose::Build,
                Purpose::Test,
                Purpose::Fuzz,
                Purpose::Everything,
            ] {
                assert_eq!(
                    survey(&Fake::with(versions), purpose),
                    Survey::default(),
                    "{versions:?}"
                );
            }
        }
    }

    #[test]
    fn without_pkg_config_it_is_asked_for_with_all_seven_libraries() {
        let mut machine = Fake::with(FFMPEG_5_1);
        machine.programs.retain(|&program| program != "pkg-config");
        let packages = survey(&machine, Purpose::Build).packages;
        assert_eq!(packages.len(), 8);
        assert_eq!(packages[0], "pkg-config");
    }

    #[test]
    fn only_what_is_missing_is_asked_for() {
        let mut machine = Fake::with(FFMPEG_5_1);
        machine.versions[5] = "";
        machine.libclang = false;
        machine.programs.retain(|&program| program == "pkg-config");

        let build = survey(&machine, Purpose::Build);
        assert_eq!(build.packages, ["libswscale-dev", "libclang-dev"]);
        assert!(build.components.is_empty());
        let test = survey(&machine, Purpose::Test);
        assert_eq!(
            test.packages,
            [
                "libswscale-dev",
                "libclang-dev",
                "ffmpeg",
                "slurm-wlm",
                "slurm-client",
                "munge",
                "shellcheck",
                "nginx-light",
                "python3-venv"
            ]
        );
        assert_eq!(test.components, ["rustfmt", "clippy"]);
        let fuzz = survey(&machine, Purpose::Fuzz);
        assert_eq!(fuzz.packages, ["libswscale-dev", "libclang-dev", "g++"]);
    }

    #[test]
    fn an_ffmpeg_too_old_or_too_new_is_named_with_what_to_run() {
        for version in ["56.70.100", "57.17.100", "61.1.100"] {
            let mut machine = Fake::with(FFMPEG_5_1);
            machine.versions[0] = version;
            let faults = survey(&machine, Purpose::Build).faults;
            assert_eq!(faults.len(), 1, "{faults:?}");
            for part in [
                version,
                "/opt/ffmpeg/lib/pkgconfig",
                "FFmpeg 5.1 to 8.x",
                "cargo xtask setup",
            ] {
                assert!(faults[0].contains(part), "{part} in {}", faults[0]);
            }
        }
    }

    #[test]
    fn two_ffmpegs_mixed_are_named_both() {
        let mut machine = Fake::with(FFMPEG_7_1);
        machine.versions[1] = FFMPEG_5_1[1];
        let faults = survey(&machine, Purpose::Build).faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].starts_with("libavcodec 59.37.100"),
            "{}",
            faults[0]
        );
        assert!(
            faults[0].contains("FFmpeg 7 has libavcodec 61"),
            "{}",
            faults[0]
        );
    }
}
