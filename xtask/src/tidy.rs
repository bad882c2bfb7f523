//! `cargo xtask tidy`: the rules of the house, read off the files. It runs as a test as well.
//!
//! - Members depend on each other only along the arrows that ARCHITECTURE.md draws.
//! - Each member has a README.md, takes the workspace's lints, and names no version of its own.
//! - Each Rust file opens with a `//!` line, or with its README.
//! - Unsafe code stands in modules `ffi` of crates/decode and nowhere else; every other crate forbids it.
//! - No file names a folder of somebody's machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Result, sh};

/// The one crate with code that the compiler cannot check.
const CRATE_WITH_UNSAFE: &str = "decode";

/// Folders that hold no source: what is built, what is downloaded, and the data.
const SKIPPED_FOLDERS: &[&str] = &[
    "target",
    "fixtures",
    "shared",
    "corpus",
    "artifacts",
    "__pycache__",
];

/// The files that people write.
const TEXT: &[&str] = &[
    "rs", "toml", "md", "json", "py", "pyi", "sh", "sbatch", "yml", "run",
];

pub(crate) fn run() -> Result {
    let faults = faults(&sh::project_root())?;
    if faults.is_empty() {
        return Ok(());
    }
    let count = faults.len();
    Err(format!(
        "{}\n{count} against the rules of the house; `cargo xtask tidy` checks again",
        faults.join("\n")
    ))
}

/// Everything in the workspace at `root` that breaks a rule, a line each.
fn faults(root: &Path) -> Result<Vec<String>> {
    let members = members(root)?;
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut faults = Vec::new();

    match parse_arrows(&read(&root.join("ARCHITECTURE.md"))?, &names) {
        Ok(arrows) => faults.extend(
            members
                .iter()
                .flat_map(|member| stray_edges(member, &arrows)),
        ),
        Err(fault) => faults.push(fault),
    }
    for member in &members {
        let readme = member.manifest.with_file_name("README.md");
        if !root.join(&readme).exists() {
            faults.push(format!("{}: is missing", readme.display()));
        }
        faults.extend(manifest_faults(
            &member.manifest,
            &read(&root.join(&member.manifest))?,
        ));
        if member.name != CRATE_WITH_UNSAFE {
            for top in &member.roots {
                if !read(&root.join(top))?.contains("#![forbid(unsafe_code)]") {
                    faults.push(format!("{}: does not forbid unsafe code", top.display()));
                }
            }
        }
    }
    for path in text_files(root)? {
        let shown = path.strip_prefix(root).unwrap_or(&path);
        faults.extend(file_faults(shown, &read(&path)?));
    }
    Ok(faults)
}

/// A package of the workspace, as far as a rule asks about it.
#[derive(Debug)]
struct Member {
    name: String,
    /// Paths are relative to the workspace's root.
    manifest: PathBuf,
    /// The root files of its library and its programs.
    roots: Vec<PathBuf>,
    /// The members it depends on.
    edges: Vec<Edge>,
}

#[derive(Debug)]
struct Edge {
    to: String,
    tests_only: bool,
}

fn members(root: &Path) -> Result<Vec<Member>> {
    let mut metadata = Command::new("cargo");
    metadata
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root);
    let output = metadata
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "`{}` failed:\n{}",
            sh::show(&metadata),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the output of cargo metadata: {error}"))?;
    list(&metadata["packages"])
        .iter()
        .map(|package| member(root, package))
        .collect()
}

fn member(root: &Path, package: &Value) -> Result<Member> {
    let relative = |path: &Value| -> Result<PathBuf> {
        let path = PathBuf::from(text(path)?);
        Ok(path
            .strip_prefix(root)
            .map(Path::to_path_buf)
            .unwrap_or(path))
    };
    let is_root = |target: &&Value| {
        list(&target["kind"])
            .iter()
            .any(|kind| kind == "lib" || kind == "bin")
    };
    // A dependency with a path and no registry is a member; a crate names itself for the features that its tests need.
    let is_member = |dependency: &&Value| {
        dependency["source"].is_null()
            && dependency["path"].is_string()
            && dependency["name"] != package["name"]
    };
    Ok(Member {
        name: text(&package["name"])?,
        manifest: relative(&package["manifest_path"])?,
        roots: list(&package["targets"])
            .iter()
            .filter(is_root)
            .map(|target| relative(&target["src_path"]))
            .collect::<Result<_>>()?,
        edges: list(&package["dependencies"])
            .iter()
            .filter(is_member)
            .map(|dependency| {
                Ok(Edge {
                    to: text(&dependency["name"])?,
                    tests_only: dependency["kind"] == "dev",
                })
            })
            .collect::<Result<_>>()?,
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Result<String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("cargo metadata: a text was expected, not {value}"))
}

/// An edge that ARCHITECTURE.md draws: `from -> to`, or `from ~> to` for tests only. `*` is any member.
#[derive(Debug)]
struct Arrow {
    from: String,
    to: String,
    tests_only: bool,
}

/// The arrows in the block that opens with "```arrows".
fn parse_arrows(page: &str, members: &[&str]) -> Result<Vec<Arrow>> {
    let fault = |message: &str| format!("ARCHITECTURE.md: {message}");
    let (_, block) = page
        .split_once("```arrows\n")
        .ok_or_else(|| fault("has no block that opens with ```arrows"))?;
    let (block, _) = block
        .split_once("```")
        .ok_or_else(|| fault("the block of arrows has no end"))?;

    let mut arrows = Vec::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [from, tip @ ("->" | "~>"), to @ ..] = words.as_slice() else {
            return Err(fault(&format!(
                "`{line}` is no arrow; write `from -> to to` or, for tests, `from ~> to`"
            )));
        };
        if let Some(stranger) = to
            .iter()
            .chain([from])
            .find(|name| **name != "*" && !members.contains(name))
        {
            return Err(fault(&format!(
                "`{stranger}` in `{line}` is no member of the workspace"
            )));
        }
        arrows.extend(to.iter().map(|to| Arrow {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            tests_only: *tip == "~>",
        }));
    }
    Ok(arrows)
}

/// The dependencies of a member that no arrow draws.
fn stray_edges(member: &Member, arrows: &[Arrow]) -> Vec<String> {
    let matches = |pattern: &str, name: &str| pattern == "*" || pattern == name;
    let drawn = |edge: &Edge| {
        arrows.iter().any(|arrow| {
            matches(&arrow.from, &member.name)
                && matches(&arrow.to, &edge.to)
                && (edge.tests_only || !arrow.tests_only)
        })
    };
    member
        .edges
        .iter()
        .filter(|edge| !drawn(edge))
        .map(|edge| {
            let who = if edge.tests_only { "the tests of " } else { "" };
            let (from, to) = (&member.name, &edge.to);
            let manifest = member.manifest.display();
            format!("{manifest}: {who}{from} may not depend on {to}: ARCHITECTURE.md draws no such arrow")
        })
        .collect()
}

fn manifest_faults(path: &Path, manifest: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut section = "";
    let mut takes_lints = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        }
        takes_lints |=
            line == "lints.workspace = true" || (section == "lints" && line == "workspace = true");
        // One line each; the later lines of a long one hold no `=`.
        let names_a_dependency =
            section.ends_with("dependencies") && line.contains('=') && !line.starts_with('#');
        // A crate may name itself, for the features that its own tests need.
        let is_known = ["workspace = true", "path = \".\""]
            .iter()
            .any(|origin| line.contains(origin));
        if names_a_dependency && !is_known {
            faults.push(format!(
                "{}: `{line}`: versions and paths belong in the root's [workspace.dependencies]",
                path.display()
            ));
        }
    }
    if !takes_lints {
        faults.push(format!(
            "{}: lacks `lints.workspace = true`",
            path.display()
        ));
    }
    faults
}

fn file_faults(path: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let opens_well = ["//!", "#![doc = include_str!("]
        .iter()
        .any(|opening| text.starts_with(opening));
    if is_rust && !opens_well {
        faults.push(format!(
            "{}:1: the first line should be a `//!` that says what the file is",
            path.display()
        ));
    }

    // Written so that this file does not break its own rules.
    let unsafe_forms =
        ["{", "fn ", "impl", "extern", "trait"].map(|next| ["unsafe", next].join(" "));
    let machine_folders = ["work", "home", "root", "Users"].map(|folder| format!("/{folder}/"));
    let may_be_unsafe = path.starts_with(Path::new("crates").join(CRATE_WITH_UNSAFE).join("src"))
        && path.iter().any(|part| part == "ffi" || part == "ffi.rs");

    let is_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        unsafe_forms.iter().any(|form| code.contains(form))
    };
    if is_rust
        && !may_be_unsafe
        && let Some(number) = text.lines().position(is_unsafe)
    {
        let place = format!("{}:{}", path.display(), number + 1);
        faults.push(format!(
            "{place}: unsafe code belongs in a module `ffi` of crates/{CRATE_WITH_UNSAFE}"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(folder) = machine_folders
            .iter()
            .find(|folder| names_folder(line, folder))
        {
            let place = format!("{}:{}", path.display(), number + 1);
            faults.push(format!("{place}: {folder} is a folder of one machine"));
        }
    }
    faults
}

/// Whether an absolute path in `line` starts with `folder`; `../home/` and `https://a.org/home/` are others' business.
fn names_folder(line: &str, folder: &str) -> bool {
    let within_a_path = |c: char| c.is_alphanumeric() || "._-~}*/".contains(c);
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(within_a_path))
}

fn text_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = folder
            .read_dir()
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                let hidden = name.starts_with('.') && name != ".ci" && name != ".cargo";
                if !hidden && !SKIPPED_FOLDERS.contains(&&*name) {
                    folders.push(path);
                }
            } else if TEXT.contains(&name.rsplit('.').next().unwrap_or_default()) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let faults = faults(&sh::project_root()).unwrap();
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }

    fn stray(page: &str, to: &str, tests_only: bool) -> Vec<String> {
        let arrows = parse_arrows(page, &["top", "middle", "testkit"]).unwrap();
        let edges = vec![Edge {
            to: to.to_owned(),
            tests_only,
        }];
        let member = Member {
            name: "top".to_owned(),
            manifest: "top/Cargo.toml".into(),
            roots: Vec::new(),
            edges,
        };
        stray_edges(&member, &arrows)
    }

    #[test]
    fn an_edge_needs_an_arrow_of_its_own_direction_and_kind() {
        let page = "# Arrows\n```arrows\ntop -> middle\n* ~> testkit\n```\n";
        assert!(stray(page, "middle", false).is_empty());
        assert!(stray(page, "middle", true).is_empty());
        assert!(stray(page, "testkit", true).is_empty());
        assert_eq!(
            stray(page, "testkit", false),
            ["top/Cargo.toml: top may not depend on testkit: ARCHITECTURE.md draws no such arrow"]
        );
        assert_eq!(
            stray("```arrows\nmiddle -> top\n```", "middle", false).len(),
            1
        );
        assert!(stray("```arrows\ntop -> *\n```", "middle", false).is_empty());
    }

    #[test]
    fn a_page_without_arrows_or_with_strangers_is_refused() {
        let fault = |page: &str| parse_arrows(page, &["top"]).unwrap_err();
        assert!(fault("# Design").contains("no block"));
        assert!(fault("```arrows\ntop -> gone\n```").contains("`gone`"));
        assert!(fault("```arrows\ntop gone\n```").contains("is no arrow"));
    }

    #[test]
    fn a_manifest_takes_lints_and_versions_from_the_workspace() {
        let faults = |manifest: &str| manifest_faults(Path::new("Cargo.toml"), manifest);
        let good = "[lints]\nworkspace = true\n[dependencies]\na.workspace = true\nb = { workspace = true, features = [\n\"c\",\n] }\n";
        assert!(faults(good).is_empty());
        assert!(faults("[dependencies]\nworkspace = true\n")[0].contains("lacks"));
        assert!(
            faults("lints.workspace = true\n[dev-dependencies]\na = \"1\"\n")[0]
                .contains("`a = \"1\"`")
        );
    }

    #[test]
    fn a_rust_file_opens_with_its_own_docs() {
        let faults = |text: &str| file_faults(Path::new("crates/window/src/a.rs"), text).len();
        assert_eq!(faults("//! What it is.\n"), 0);
        assert_eq!(faults("#![doc = include_str!(\"../README.md\")]\n"), 0);
        assert_eq!(faults("use std::fs;\n"), 1);
    }

    #[test]
    fn unsafe_code_stands_in_one_place() {
        let code = [
            "//! Calls C.\nuns",
            "afe { call() }\n// an uns",
            "afe { in a comment }\n",
        ]
        .concat();
        let faults = |path: &str| file_faults(Path::new(path), &code).len();
        assert_eq!(faults("crates/decode/src/cpu/ffi.rs"), 0);
        assert_eq!(faults("crates/decode/src/cpu/ffi/frame.rs"), 0);
        assert_eq!(faults("crates/decode/src/cpu/mod.rs"), 1);
        assert_eq!(faults("crates/window/src/ffi.rs"), 1);
    }

    #[test]
    fn a_folder_of_one_machine_is_found_and_others_are_not() {
        let home = ["", "home", ""].join("/");
        for (line, expected) in [
            ("\"{}ann\"", true),
            ("see {}", true),
            ("https://a.org{}", false),
            ("..{}x", false),
        ] {
            assert_eq!(
                names_folder(&line.replace("{}", &home), &home),
                expected,
                "{line}"
            );
        }
    }
}
