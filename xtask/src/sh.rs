//! Running other programs, in plain sight: each command is shown before it runs.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// The folder of the workspace's manifest.
pub(crate) fn project_root() -> PathBuf {
    // Cargo tells where xtask's manifest stands now; the compile-time value serves a binary that is run by hand.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or(xtask.clone(), Path::to_path_buf)
}

/// The folder where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// `cargo ARGS...`, the arguments separated by spaces.
pub(crate) fn cargo(args: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(args.split_whitespace());
    command
}

/// Shows a command, runs it to its end, and turns a failure into an error that shows how to run it again.
pub(crate) fn run(command: &mut Command) -> Result {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command
        .status()
        .map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{shown}` failed ({status})"))
    }
}

/// What a program prints on stdout, or `None` where it is missing or fails.
pub(crate) fn read(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A command as one would type it: variables, program, arguments.
pub(crate) fn show(command: &Command) -> String {
    let mut line = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let _ = write!(line, "{}={} ", name.to_string_lossy(), quoted(value));
        }
    }
    line.push_str(&quoted(command.get_program()));
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&quoted(arg));
    }
    line
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_pasted_into_a_shell() {
        let mut command = Command::new("cargo");
        command
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(["doc", "it's", ""]);
        assert_eq!(
            show(&command),
            r"RUSTDOCFLAGS='-D warnings' cargo doc 'it'\''s' ''"
        );
    }

    #[test]
    fn a_missing_or_failing_program_prints_nothing() {
        assert_eq!(read("no-such-program", &[]), None);
        assert_eq!(read("false", &[]), None);
        assert_eq!(read("echo", &["one", "line"]), Some("one line".to_owned()));
    }
}
