//! Allowed dependencies between crates. A new dependency must be added here in the same commit.

use super::Findings;
use serde_json::Value;

/// Ordinary dependencies between crates of this workspace.
const ALLOWED: &[(&str, &[&str])] = &[
    ("tandem-record", &[]),
    ("tandem-wire", &["tandem-record"]),
    // Wraps the JSON Schema validator, for the engine and for packs.
    ("tandem-schema", &[]),
    ("tandem-engine", &["tandem-record", "tandem-schema"]),
    ("tandem-store", &["tandem-record"]),
    ("tandem-store-sqlite", &["tandem-record", "tandem-store"]),
    ("tandem-access", &["tandem-record", "tandem-store"]),
    // Interprets packs. A separate crate, because nothing else needs its dependencies.
    ("tandem-wasm", &["tandem-record", "tandem-schema"]),
    // Runs flows and functions of agents. Plain data in and out; nothing else needs its dependencies.
    ("tandem-script", &[]),
    // Flows in Rust: what their authors use, without the runtime.
    ("tandem-flow", &["tandem-record", "tandem-engine"]),
    ("tandem-nodes", &["tandem-record", "tandem-wasm"]),
    (
        "tandem-runtime",
        &[
            "tandem-record",
            "tandem-engine",
            "tandem-schema",
            "tandem-store",
            "tandem-nodes",
        ],
    ),
    // The agents of a host, from their folders: what the runtime calls through a trait.
    (
        "tandem-agents",
        &[
            "tandem-record",
            "tandem-schema",
            "tandem-engine",
            "tandem-script",
            "tandem-flow",
            "tandem-nodes",
            "tandem-runtime",
            // Signatures of transports.
            "tandem-access",
        ],
    ),
    // Use cases of every entry point.
    (
        "tandem-app",
        &["tandem-record", "tandem-runtime", "tandem-access"],
    ),
    ("tandem-console", &[]),
    // Not the runtime: an entry point calls use cases. `access` authenticates its requests.
    (
        "tandem-api",
        &[
            "tandem-record",
            "tandem-app",
            "tandem-access",
            "tandem-wire",
            "tandem-console",
        ],
    ),
    // The binary and the library: the only crate that names a concrete database.
    (
        "tandem",
        &[
            "tandem-record",
            "tandem-wire",
            "tandem-engine",
            "tandem-store",
            "tandem-store-sqlite",
            "tandem-access",
            "tandem-nodes",
            "tandem-runtime",
            "tandem-agents",
            "tandem-app",
            "tandem-console",
            "tandem-api",
            "tandem-wasm",
            "tandem-script",
            "tandem-flow",
            "tandem-schema",
        ],
    ),
    // A program that embeds the host.
    ("rust-agent", &["tandem"]),
    (
        "tandem-testkit",
        &[
            "tandem-record",
            "tandem-engine",
            "tandem-store",
            "tandem-runtime",
            "tandem-nodes",
        ],
    ),
    // Measures the store and the server binary.
    (
        "bench",
        &[
            "tandem-record",
            "tandem-store",
            "tandem-store-sqlite",
            "tandem-testkit",
        ],
    ),
    ("xtask", &[]),
];

/// No test depends on these.
const NEVER_IN_TESTS: &[&str] = &["bench", "xtask"];

pub(super) fn check(metadata: &Value, findings: &mut Findings) {
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let name_of = |package: &Value| package["name"].as_str().expect("a name").to_owned();
    let members: Vec<String> = packages.iter().map(name_of).collect();
    for package in packages {
        let name = name_of(package);
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            findings.error(
                &name,
                "a new crate: say in xtask/src/tidy/dependencies.rs what it may use",
            );
            continue;
        };
        let dependencies = package["dependencies"].as_array().expect("a list");
        for dependency in dependencies {
            let target = name_of(dependency);
            if !members.contains(&target) {
                continue;
            }
            let for_tests = dependency["kind"].as_str() == Some("dev");
            let fine = if for_tests {
                !NEVER_IN_TESTS.contains(&target.as_str())
            } else {
                allowed.contains(&target.as_str())
            };
            if !fine {
                findings.error(&name, format!("may not depend on {target}"));
            }
        }
    }
}
