//! What a commit must pass: `check` (format, lints, tidy) and `test`.

use crate::Outcome;
use crate::process::{cargo, run};
use std::process::{Command, Stdio};

pub(crate) fn check(_: &[String]) -> Outcome {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))?;
    crate::tidy::tidy(&[])
}

pub(crate) fn test(arguments: &[String]) -> Outcome {
    let mut command = if nextest_is_installed() {
        cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        cargo(&["test", "--workspace", "--no-fail-fast"])
    };
    run(command.args(arguments))
}

fn nextest_is_installed() -> bool {
    Command::new("cargo-nextest")
        .args(["nextest", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
