//! Starting other programs, always from the root of the workspace.

use crate::Outcome;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The root of the workspace, whatever the current directory is.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let parent = manifest.parent().expect("xtask is inside the workspace");
    parent.to_owned()
}

/// The shared acceptance material. It is beside the repository, not part of it.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = root().parent()?.join("shared").join(name);
    path.exists().then_some(path)
}

pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // Build scripts that watch these variables (for example ring's) would see a change and rebuild
    // a third of the tree each time.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_THIS_PACKAGE
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command
}

/// Variables that `cargo run` sets for the package it runs.
const OF_THIS_PACKAGE: &[&str] = &[
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_NAME",
    "CARGO_PRIMARY_PACKAGE",
];

pub(crate) fn python(script: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new("python3");
    command.arg(script).args(arguments).current_dir(root());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs the command to its end with inherited output and prints how long it took. An exit code
/// other than 0 is a failure.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let shown = show(command);
    println!("$ {shown}");
    let started = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start {shown}: {error}"))?;
    println!("[{:.1} s] {shown}", started.elapsed().as_secs_f64());
    if status.success() {
        Ok(())
    } else {
        Err(format!("{shown} ended with {status}"))
    }
}

/// Runs without printing and returns the output.
pub(crate) fn read(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {shown}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{shown} printed something not UTF-8"))
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let here = root();
    let arguments = command.get_args().map(|argument| {
        let path = Path::new(argument);
        path.strip_prefix(&here).unwrap_or(path).to_string_lossy()
    });
    std::iter::once(name.to_string_lossy())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The target directory of cargo.
pub(crate) fn target() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str();
    Ok(PathBuf::from(path.expect("cargo names its target")))
}

pub(crate) fn metadata() -> Result<serde_json::Value, String> {
    let text = read(&mut cargo(&[
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata is not JSON: {error}"))
}

/// Builds the release binaries for tests of the whole binary, once for all of them, and returns the
/// server binary.
pub(crate) fn release_binary() -> Result<PathBuf, String> {
    run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "tandem",
        "--package",
        "bench",
    ]))?;
    Ok(target()?.join("release").join("tandem"))
}
