//! Tasks that start the release binary and a script that talks to it.

use crate::Outcome;
use crate::process::{python, release_binary, root, run, target};
use std::process::Command;

pub(crate) fn crash(arguments: &[String]) -> Outcome {
    run_against_binary("tests/crash/kill_under_load.py", arguments)
}

pub(crate) fn two_hosts(arguments: &[String]) -> Outcome {
    run_against_binary("tests/agents/two_hosts.py", arguments)
}

pub(crate) fn contract(arguments: &[String]) -> Outcome {
    run_against_binary("tests/contract/published_schemas.py", arguments)
}

pub(crate) fn proof(arguments: &[String]) -> Outcome {
    run_against_binary("tests/audit/proof_of_decisions.py", arguments)
}

pub(crate) fn moves(arguments: &[String]) -> Outcome {
    run_against_binary("tests/operations/backup_and_export.py", arguments)
}

pub(crate) fn abuse(arguments: &[String]) -> Outcome {
    run_against_binary("tests/abuse/run.py", arguments)
}

/// Each script runs twice: with the instances of flows kept between turns, and with none kept and every flow run again
/// after every turn.
pub(crate) fn conversations(arguments: &[String]) -> Outcome {
    let binary = release_binary()?;
    for script in [
        "kernel",
        "effects",
        "interrupts",
        "hooks",
        "admins",
        "durability",
        "desks",
        "bridges",
        "takeovers",
        "recovery",
    ] {
        for (cold, strict) in [("0", "off"), ("1", "on")] {
            let path = root().join(format!("tests/conversations/{script}.py"));
            let mut command = python(&path, arguments);
            command.env("TANDEM_TEST_COLD", cold);
            command.env("TANDEM_STRICT_FLOWS", strict);
            run(command.arg("--binary").arg(&binary))?;
        }
    }
    Ok(())
}

pub(crate) fn browser(arguments: &[String]) -> Outcome {
    run_against_binary("tests/browser/console.py", arguments)?;
    run_against_binary("tests/browser/chat.py", arguments)?;
    run_against_binary("tests/browser/takeover.py", arguments)
}

pub(crate) fn bench(arguments: &[String]) -> Outcome {
    let binary = release_binary()?;
    let program = target()?.join("release").join("bench");
    let mut command = Command::new(program);
    command.arg("--binary").arg(binary).current_dir(root());
    run(command.args(arguments))
}

fn run_against_binary(script: &str, arguments: &[String]) -> Outcome {
    let binary = release_binary()?;
    let mut command = python(&root().join(script), arguments);
    run(command.arg("--binary").arg(binary))
}
