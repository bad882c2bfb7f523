//! What is handed to sbatch: the same when pasted, and fit for a POSIX shell.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::workplace::Workplace;

/// Remembers its arguments, one file a call, and answers as a federated cluster does.
const SBATCH: &str = "#!/bin/sh
number=$(ls \"$CALLS\" | wc -l)
for word in \"$@\"; do printf '%s\\0' \"$word\"; done > \"$CALLS/$((100 + number))\"
case \"$*\" in *\"${REFUSED:-never}\"*) echo 'sbatch: error: no' >&2; exit 1 ;; esac
echo \"$((100 + number));alps\"
";

/// The arguments of every call, in order.
fn calls(folder: &Path) -> Vec<Vec<String>> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let words = |text: String| text.split_terminator('\0').map(str::to_owned).collect();
    files
        .iter()
        .map(|file| words(fs::read_to_string(file).unwrap()))
        .collect()
}

/// A workplace where sbatch only remembers, in the folder `name`.
fn remembering(workplace: &mut Workplace, name: &str) -> std::path::PathBuf {
    let bin = workplace.program("bin/sbatch", SBATCH);
    workplace.first_on_path(bin.parent().unwrap());
    let calls = workplace.path(name);
    fs::create_dir(&calls).unwrap();
    workplace.set("CALLS", calls.to_str().unwrap());
    calls
}

fn pasted(workplace: &Workplace, script: &str) {
    fs::write(workplace.path("script.sh"), script).unwrap();
    let status = workplace.command("dash").arg("script.sh").status().unwrap();
    assert!(status.success());
}

#[test]
fn a_dry_run_pasted_into_a_shell_submits_the_very_same_jobs() {
    let mut workplace = Workplace::new();
    workplace.set("OUT_DIR", "o'u t $HOME 100%j");
    workplace.set("REPO_ID", "/data/of \"mine\" `id`");
    workplace.set("ACCOUNT", "an account");
    for (serial, refused) in [("1", "never"), ("0", "never"), ("1", "bench-hub-sarm-cpu")] {
        let name = format!("{serial}{refused}");
        workplace.set("SERIAL", serial);
        workplace.set("REFUSED", refused);
        let submitted = remembering(&mut workplace, &format!("submitted{name}"));
        let run = workplace.xtask(&["bench-matrix"]);
        assert_eq!(run.succeeded, refused == "never", "{}", run.stderr);
        let printed = remembering(&mut workplace, &format!("printed{name}"));
        let dry = workplace.xtask(&["bench-matrix", "--dry-run"]).well();
        assert_eq!(calls(&printed).len(), 0);
        pasted(&workplace, &dry.stdout);
        let [submitted, printed] = [submitted, printed].map(|folder| calls(&folder));
        assert_eq!(submitted, printed);
        assert_eq!(submitted.len(), 12);
        let dependency = |call: usize| {
            let found = submitted[call]
                .iter()
                .find(|word| word.starts_with("--dependency"));
            found.map(String::as_str)
        };
        assert_eq!(dependency(0), None);
        let before_the_fourth = match (serial, refused) {
            ("0", _) => None,
            // The id without its cluster; of the last that was taken.
            (_, "never") => Some("--dependency=afterany:102"),
            _ => Some("--dependency=afterany:101"),
        };
        assert_eq!(dependency(3), before_the_fourth);
    }
}

#[test]
fn a_job_asks_for_one_node_and_for_what_its_workers_need() {
    let mut workplace = Workplace::new();
    for (name, value) in [
        ("PARTITION", "gpu"),
        ("QOS", "high"),
        ("GPUS", "a100:2"),
        ("CPU_WORKERS", "0"),
    ] {
        workplace.set(name, value);
    }
    let folder = remembering(&mut workplace, "calls");
    let args = [
        "bench-matrix",
        "--sources",
        "hub",
        "--modes",
        "single",
        "--mem",
        "3G",
    ];
    workplace.xtask(&args).well();
    let calls = calls(&folder);
    let asked = |call: usize, word: &str| calls[call].iter().any(|other| other == word);
    for word in [
        "--parsable",
        "--nodes=1",
        "--ntasks=1",
        "--partition=gpu",
        "--qos=high",
        "--mem=3G",
        "--time=10",
    ] {
        assert!(asked(0, word) && asked(1, word), "{word} in {calls:?}");
    }
    // No workers still need a core.
    assert!(asked(0, "--cpus-per-task=1") && asked(1, "--cpus-per-task=1"));
    assert!(!calls[0].iter().any(|word| word.starts_with("--gpus")));
    assert!(asked(1, "--gpus=a100:2"));
    let jobs = workplace.jobs();
    assert_eq!(
        (jobs[0]["id"].as_str(), jobs[0]["cluster"].as_str()),
        (Some("100"), Some("alps"))
    );
}

/// Runs a checker over a script; it must find nothing.
#[track_caller]
pub(crate) fn check(program: &str, args: &[&str], script: &Path) {
    let output = Command::new(program)
        .args(args)
        .arg(script)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; `cargo xtask setup` installs it"));
    assert!(
        output.status.success(),
        "{program} {}:\n{}{}",
        script.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn scripts_are_fit_for_a_posix_shell() {
    let mut workplace = Workplace::new();
    workplace.set("CONDA_ENV", "my env");
    workplace.set("OUT_DIR", "o'u t $HOME 100%j");
    let folder = remembering(&mut workplace, "calls");
    workplace.xtask(&["bench-matrix"]).well();
    let mut scripts = Vec::new();
    for call in calls(&folder) {
        let bodies: Vec<&str> = call
            .iter()
            .filter_map(|word| word.strip_prefix("--wrap="))
            .collect();
        assert_eq!(bodies.len(), 1);
        let script = workplace.path(&format!("body{}.sh", scripts.len()));
        // As sbatch wraps it.
        fs::write(&script, format!("#!/bin/sh\n{}", bodies[0])).unwrap();
        scripts.push(script);
    }
    assert_eq!(scripts.len(), 12);
    let dry = workplace.xtask(&["bench-matrix", "--dry-run"]).well();
    let script = workplace.path("dry.sh");
    fs::write(&script, format!("#!/bin/sh\n{}", dry.stdout)).unwrap();
    check("dash", &["-n"], &script);
    // Quotes within quotes and their dollars are for the node to read, and the last id is for who pastes it.
    check(
        "shellcheck",
        &["--shell=sh", "--exclude=SC1003,SC2016,SC2034"],
        &script,
    );
    for script in scripts {
        check("dash", &["-n"], &script);
        // The folder's name holds a dollar that is none.
        check("shellcheck", &["--shell=sh", "--exclude=SC2016"], &script);
    }
}
