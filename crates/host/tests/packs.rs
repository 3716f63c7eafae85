//! Packs with the real binary: loaded from the operator's directory, used by workflows, advertised
//! in discovery, and not needed to replay recorded results.

mod server;

use serde_json::Value;
use server::{Server, tandem};
use std::path::Path;
use tempfile::TempDir;

const MANIFEST: &str = include_str!("../../wasm/packs/greet/pack.json");
const MODULE: &[u8] = include_bytes!("../../wasm/packs/greet/pack.wasm");
const GREETING: &str = r#"{
  "id": "greeting", "name": "Greeting", "version": "1",
  "nodes": [{"id": "greet", "typeId": "vendor.openwop.rust-hello.greet", "name": "Greet",
             "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

fn put(directory: &Path, name: &str, manifest: &str) {
    let folder = directory.join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("pack.json"), manifest).unwrap();
    std::fs::write(folder.join("pack.wasm"), MODULE).unwrap();
}

/// A valid pack and one for another ABI.
fn packs() -> TempDir {
    let packs = tempfile::tempdir().unwrap();
    let label = "\"label\": \"Greet\"";
    let strict = format!("{label}, \"configSchemaRef\": \"config.json\"");
    put(packs.path(), "greet", &MANIFEST.replace(label, &strict));
    let schema = r#"{"additionalProperties": false}"#;
    std::fs::write(packs.path().join("greet/config.json"), schema).unwrap();
    let newer = MANIFEST.replace("\"abiVersion\": 1", "\"abiVersion\": 2");
    put(packs.path(), "newer", &newer);
    packs
}

fn serving(packs: &Path) -> Server {
    let unknown = GREETING
        .replace("\"greeting\"", "\"unknown\"")
        .replace("rust-hello.greet", "nobody.greets");
    Server::configured(
        &format!("packs = [{:?}]\n", packs.display().to_string()),
        &[("greeting.json", GREETING), ("unknown.json", &unknown)],
    )
}

fn discovery(server: &Server) -> Value {
    let answer = server.get("/.well-known/openwop");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

fn events(server: &Server, run: &str) -> Vec<(String, Value)> {
    let output = server.run(&["runs", "events", run, "--json"]);
    let output = String::from_utf8(output.stdout).unwrap();
    output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|event| {
            (
                event["type"].as_str().unwrap().to_owned(),
                event["payload"].clone(),
            )
        })
        .collect()
}

fn types(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn pack_adds_a_node_type() {
    let packs = packs();
    let mut server = serving(packs.path());
    let log = server.log();
    assert!(log.contains("1 packs loaded, 1 refused"), "{log}");
    assert!(log.contains("unsupported_abi_version"), "{log}");
    assert!(
        log.contains("\"vendor.openwop.nobody.greets\" is not a node type of this host"),
        "{log}"
    );

    let discovery = discovery(&server);
    let wasm = &discovery["nodePackRuntimes"]["wasm"];
    assert_eq!(wasm["supported"], true);
    assert_eq!(wasm["loadedPacks"][0], "vendor.openwop.rust-hello");
    let served = discovery["extensions"]["nodeTypes"].as_array().unwrap();
    assert!(served.contains(&"vendor.openwop.rust-hello.greet".into()));

    let ran = server.run(&[
        "run",
        "greeting",
        "--follow",
        "--input",
        r#"{"name": "Ada"}"#,
    ]);
    assert!(ran.status.success(), "{ran:?}");
    let run = server.only_run("greeting", "completed");
    let first = events(&server, &run);
    let course = [
        "run.started",
        "node.started",
        "log.appended",
        "node.completed",
        "run.completed",
    ];
    assert_eq!(types(&first), course);
    assert_eq!(first[3].1["outputs"]["greeting"], "Hello, Ada!");

    // Without the pack a replay still returns the recorded result, and a new run fails.
    std::fs::remove_dir_all(packs.path().join("greet")).unwrap();
    assert_eq!(server.terminate(), 0);
    server.start_again();
    let forked = server.run(&["runs", "fork", &run]);
    assert!(forked.status.success(), "{forked:?}");
    let again = server.run(&["run", "greeting"]);
    let printed = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(printed.contains("pack_unavailable"), "{printed}");
    let listed = server.run(&["runs", "list", "--json", "--status", "completed"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    for listed in listed["runs"].as_array().unwrap() {
        let events_of_run = events(&server, listed["runId"].as_str().unwrap());
        assert_eq!(types(&events_of_run), course);
        assert_eq!(events_of_run[3].1["outputs"]["greeting"], "Hello, Ada!");
    }
}

#[test]
fn host_without_packs_advertises_none() {
    let server = Server::with_workflows(&[]);
    let discovery = discovery(&server);
    assert_eq!(discovery.get("nodePackRuntimes"), None);
}

#[test]
fn check_uses_the_packs_named_by_option() {
    let packs = packs();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("greeting.json"), GREETING).unwrap();
    let run_check = |args: &[&str]| {
        let output = tandem(home.path()).args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (good, printed) = run_check(&["check", "greeting.json"]);
    assert!(!good && printed.contains("with --packs"), "{printed}");
    let directory = packs.path().display().to_string();
    let (good, printed) = run_check(&["check", "--packs", &directory, "greeting.json"]);
    assert!(
        good && printed.contains("unsupported_abi_version"),
        "{printed}"
    );
    let odd = GREETING.replace("\"config\": {}", "\"config\": {\"tone\": \"odd\"}");
    std::fs::write(home.path().join("odd.json"), odd).unwrap();
    let (good, printed) = run_check(&["check", "--packs", &directory, "odd.json"]);
    assert!(!good && printed.contains("/nodes/0/config: "), "{printed}");
    let (good, printed) = run_check(&["check", "--packs", "nowhere", "greeting.json"]);
    assert!(
        !good && printed.contains("cannot read the packs in nowhere"),
        "{printed}"
    );
}
