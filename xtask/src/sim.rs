//! The simulator, built with the same features as the tests, so that nothing is compiled twice.

use crate::Outcome;
use crate::process::{cargo, root, run, target};
use std::process::Command;

pub(crate) fn sim(arguments: &[String]) -> Outcome {
    run(&mut cargo(&["build", "--workspace", "--example", "sim"]))?;
    let program = target()?.join("debug").join("examples").join("sim");
    let mut command = Command::new(program);
    match arguments {
        // `--seeds N` means the first N; a range A..B and a single --seed are passed on unchanged.
        [flag, count] if flag == "--seeds" && !count.contains("..") => {
            command.args(["--seeds", &format!("0..{count}")])
        }
        others => command.args(others),
    };
    run(command.current_dir(root()))
}
