//! Running other programs, in plain sight: each command is shown before it runs.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

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

/// What came of a command that was given a limited time.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It ended by itself.
    Ended {
        succeeded: bool,
        stdout: String,
        stderr: String,
    },
    /// It was still running at the end of its time, and was killed.
    TooLate,
    /// No program of that name is on PATH.
    Missing,
}

/// Runs a command without input, for at most `limit`.
pub(crate) fn ask(command: &mut Command, limit: Duration) -> Result<Answer> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Answer::Missing),
        Err(error) => return Err(format!("cannot run `{}`: {error}", show(command))),
    };
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let deadline = Instant::now() + limit;
    let status = loop {
        let status = child
            .try_wait()
            .map_err(|error| format!("cannot wait for `{}`: {error}", show(command)))?;
        if let Some(status) = status {
            break status;
        }
        if Instant::now() >= deadline {
            // Either may fail only because it has ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(Answer::TooLate);
        }
        thread::sleep(Duration::from_millis(5));
    };
    Ok(Answer::Ended {
        succeeded: status.success(),
        stdout: collected(&stdout),
        stderr: collected(&stderr),
    })
}

/// Reads a pipe to its end on a thread of its own: a full pipe would stop the program that writes to it.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still told.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// A program that leaves a child behind leaves its pipes open; nobody waits for that child.
fn collected(pipe: &Receiver<Vec<u8>>) -> String {
    let bytes = pipe
        .recv_timeout(Duration::from_secs(2))
        .unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// Writes to stdout what a command was asked for.
pub(crate) fn print(text: &str) -> Result {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| format!("cannot write to stdout: {error}"))
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

/// A word as a POSIX shell reads it back: one word, with nothing in it expanded.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
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
    fn a_shell_reads_back_what_was_quoted() {
        let mut words: Vec<String> = [
            "",
            " ",
            "a b",
            "it's",
            "'",
            "''",
            "'\\''",
            "\"",
            "$HOME",
            "${HOME}",
            "$(id)",
            "`id`",
            "\\",
            "\\n",
            "a\nb\n",
            "*",
            "~",
            "~root",
            "a=b",
            "-n",
            "--",
            "%s",
            "!",
            "#",
            "a;b",
            "a&&b",
            "a|b",
            "(a)",
            "{a,b}",
            "é \u{1f916}",
            "\t",
        ]
        .map(str::to_owned)
        .to_vec();
        // Random words of the characters that mean something to a shell, from a fixed seed.
        let alphabet: Vec<char> = "'\"\\$`*?[]{}()<>|&;#~!=% \t\nab-é".chars().collect();
        let mut state = 1_u64;
        for _ in 0..300 {
            let mut word = String::new();
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                word.push(alphabet[(state >> 33) as usize % alphabet.len()]);
            }
            words.push(word);
        }
        let script: String = words
            .iter()
            .map(|word| format!("printf '%s\\0' {}\n", quoted(word)))
            .collect();
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let read: Vec<&str> = text.split_terminator('\0').collect();
        assert_eq!(read, words);
    }

    #[test]
    fn a_command_is_answered_missing_or_too_late() {
        let ask = |program: &str, args: &[&str], limit| {
            super::ask(Command::new(program).args(args), limit).unwrap()
        };
        let long = Duration::from_secs(60);
        assert!(matches!(ask("no-such-program", &[], long), Answer::Missing));
        assert!(matches!(
            ask("sleep", &["60"], Duration::from_millis(50)),
            Answer::TooLate
        ));
        let Answer::Ended {
            succeeded,
            stdout,
            stderr,
        } = ask("sh", &["-c", "echo out; echo err >&2; exit 3"], long)
        else {
            panic!("it did not end");
        };
        assert_eq!(
            (succeeded, stdout.as_str(), stderr.as_str()),
            (false, "out", "err")
        );
    }

    #[test]
    fn a_missing_or_failing_program_prints_nothing() {
        assert_eq!(read("no-such-program", &[]), None);
        assert_eq!(read("false", &[]), None);
        assert_eq!(read("echo", &["one", "line"]), Some("one line".to_owned()));
    }
}
