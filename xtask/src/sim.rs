//! The simulator, built with the features the tests were built with, so that nothing is compiled
//! twice.

use crate::Outcome;
use crate::process::{cargo, root, run, target};
use std::process::Command;

pub(crate) fn sim(arguments: &[String]) -> Outcome {
    run(&mut cargo(&["build", "--workspace", "--example", "sim"]))?;
    let program = target()?.join("debug").join("examples").join("sim");
    run(Command::new(program).args(arguments).current_dir(root()))
}
