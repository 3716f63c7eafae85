//! Every task a contributor runs. `cargo xtask` lists them; CI runs the same ones.
//!
//! Nothing has to be installed first: a task that needs more than Rust and Python prints what to
//! do. Only `std` and `serde_json` are used, so that the first `cargo xtask` starts in seconds.

#![allow(clippy::print_stdout)]

mod acceptance;
mod check;
mod mutants;
mod process;
mod requirements;
mod scripts;
mod sim;
mod tidy;

use std::process::ExitCode;
use std::time::Instant;

/// The error is one line that tells the user what to do.
type Outcome = Result<(), String>;

struct Task {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Outcome,
}

const TASKS: &[Task] = &[
    Task {
        name: "check",
        arguments: "",
        about: "format, lints and tidy: what must hold before a commit",
        run: check::check,
    },
    Task {
        name: "tidy",
        arguments: "",
        about: "dependency arrows, file lengths, error pages, links, requirements",
        run: tidy::tidy,
    },
    Task {
        name: "test",
        arguments: "[FILTER…]",
        about: "every test of the workspace (nextest when installed)",
        run: check::test,
    },
    Task {
        name: "sim",
        arguments: "[--seeds N | A..B | --seed N]",
        about: "the seeded simulator; --seed repeats one failing run",
        run: sim::sim,
    },
    Task {
        name: "crash",
        arguments: "[--seed N]",
        about: "the real binary under load, killed and restarted",
        run: scripts::crash,
    },
    Task {
        name: "two-hosts",
        arguments: "",
        about: "causation and traces between two processes",
        run: scripts::two_hosts,
    },
    Task {
        name: "contract",
        arguments: "",
        about: "everything that leaves the house against the published schemas",
        run: scripts::contract,
    },
    Task {
        name: "proof",
        arguments: "",
        about: "the audit log and receipts, checked by a program of its own",
        run: scripts::proof,
    },
    Task {
        name: "moves",
        arguments: "",
        about: "backup, export and import of the real binary at work",
        run: scripts::moves,
    },
    Task {
        name: "abuse",
        arguments: "[--only TEXT]…",
        about: "attacks on the real binary: bounds, fairness, connections, secrets, rights",
        run: scripts::abuse,
    },
    Task {
        name: "conversations",
        arguments: "[--only TEXT]…",
        about: "agents, flows and their admins on the real binary, instances of flows kept and dropped",
        run: scripts::conversations,
    },
    Task {
        name: "requirements",
        arguments: "",
        about: "runs what the protocol's requirements are proved by; writes docs/requirements*.md",
        run: requirements::requirements,
    },
    Task {
        name: "mutants",
        arguments: "[--seed N] [--count N] [--only TEXT]…",
        about: "changes the code in random places; the tests must notice (takes hours)",
        run: mutants::mutants,
    },
    Task {
        name: "acceptance",
        arguments: "[--only TEXT]…",
        about: "the black-box suite, for the groups in .ci/acceptance-groups",
        run: acceptance::acceptance,
    },
    Task {
        name: "browser",
        arguments: "",
        about: "the console in headless Chromium",
        run: scripts::browser,
    },
    Task {
        name: "bench",
        arguments: "[--quick]",
        about: "load on the real binary beside the ceilings of this machine",
        run: scripts::bench,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        list();
        return ExitCode::SUCCESS;
    };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        list();
        eprintln!("\nthere is no task {name:?}");
        return ExitCode::FAILURE;
    };
    let started = Instant::now();
    let outcome = (task.run)(&arguments[1..]);
    println!("{name}: {:.1} s in all", started.elapsed().as_secs_f64());
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    println!("cargo xtask TASK\n");
    for task in TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        println!("  {call:<28} {}", task.about);
    }
}
