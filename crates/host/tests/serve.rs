//! The real binary: started, used through its own commands, stopped. Every server has its own store
//! and port; tests wait only for observable conditions.

mod server;

use server::{KEY, Server, free_port, tandem};
use std::net::TcpListener;
use std::process::Output;

const WAITING: &str = r#"{
  "id": "slow", "name": "Slow", "version": "1",
  "nodes": [{"id": "sleep", "typeId": "core.delay", "name": "Sleep", "position": {"x": 0, "y": 0},
             "config": {"delayMs": 600000}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

const FAILING: &str = r#"{
  "id": "broken", "name": "Broken", "version": "1",
  "nodes": [{"id": "boom", "typeId": "core.fail", "name": "Boom", "position": {"x": 0, "y": 0},
             "config": {"code": "out_of_luck", "message": "No luck today."}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

const ASKING: &str = r#"{
  "id": "asking", "name": "Asking", "version": "1",
  "nodes": [{"id": "gate", "typeId": "core.approvalGate", "name": "Gate",
             "position": {"x": 0, "y": 0}, "config": {"title": "May I?"}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

const PARENT: &str = r#"{
  "id": "parent", "name": "Parent", "version": "1",
  "nodes": [{"id": "sub", "typeId": "core.subWorkflow", "name": "Sub",
             "position": {"x": 0, "y": 0}, "config": {"workflowId": "child"}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

const CHILD: &str = r#"{
  "id": "child", "name": "Child", "version": "1",
  "nodes": [{"id": "one", "typeId": "core.noop", "name": "One",
             "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

#[test]
fn a_run_can_be_started_watched_listed_and_cancelled() {
    let server = Server::with_workflows(&[("slow.json", WAITING), ("broken.json", FAILING)]);

    let watched = server.run(&["run", "hello", "--follow", "--input", r#"{"name": "Ada"}"#]);
    assert_eq!(code(&watched), 0, "{}", text(&watched.stderr));
    let shown = text(&watched.stdout);
    assert!(shown.contains("✓ greet              completed"), "{shown}");
    assert!(
        shown.contains("\"to\": \"Ada\""),
        "the primary output ends it: {shown}"
    );

    let failed = server.run(&["run", "broken"]);
    assert_eq!(code(&failed), 1);
    assert!(
        text(&failed.stdout).contains("failed in"),
        "{}",
        text(&failed.stdout)
    );
    assert!(text(&failed.stdout).contains("[out_of_luck] No luck today."));

    let follower = server.start(&["run", "slow", "--follow", "--json"]);
    let run = server.only_run("slow", "running");
    let cancelled = server.run(&["runs", "cancel", &run, "--reason", "test"]);
    assert_eq!(code(&cancelled), 0, "{}", text(&cancelled.stderr));
    let followed = follower.wait_with_output().unwrap();
    assert_eq!(code(&followed), 2, "{}", text(&followed.stderr));
    let last = text(&followed.stdout).lines().last().unwrap().to_owned();
    assert!(last.contains("\"run.cancelled\""), "{last}");

    let table = text(
        &server
            .run(&["runs", "list", "--status", "cancelled"])
            .stdout,
    );
    assert!(table.contains(&run) && table.contains("slow"), "{table}");
    let sheet = text(&server.run(&["runs", "show", &run]).stdout);
    assert!(sheet.contains("cancelled"), "{sheet}");
    let events = text(&server.run(&["runs", "events", &run]).stdout);
    assert!(
        events.contains("⊘ run                cancelled: test"),
        "{events}"
    );
}

#[test]
fn run_waiting_for_a_person_exits_with_3() {
    let server = Server::with_workflows(&[("asking.json", ASKING)]);
    let asking = server.run(&["run", "asking"]);
    let shown = text(&asking.stdout);
    assert_eq!(code(&asking), 3, "{shown}");
    assert!(shown.ends_with("waiting-approval at gate\n"), "{shown}");
}

#[test]
fn refusals_name_code_message_and_next_step() {
    let server = Server::with_workflows(&[]);
    let unknown = server.run(&["run", "nothing"]);
    assert_eq!(code(&unknown), 1);
    let printed = text(&unknown.stderr);
    assert!(
        printed.contains("workflow_not_found") && printed.contains("--workflows"),
        "{printed}"
    );

    let keyless = tandem(server.home())
        .args(["runs", "list", "--url", &server.url])
        .output()
        .unwrap();
    assert_eq!(code(&keyless), 1);
    let printed = text(&keyless.stderr);
    assert!(
        printed.contains("unauthenticated") && printed.contains("TANDEM_API_KEY"),
        "{printed}"
    );
}

#[test]
fn keys_are_created_used_rotated_and_revoked() {
    let server = Server::with_workflows(&[]);
    let made = server.run(&["keys", "create", "reader", "--scope", "runs:read"]);
    assert_eq!(code(&made), 0, "{}", text(&made.stderr));
    let secret = text(&made.stdout).trim().to_owned();
    let with = |key: &str, args: &[&str]| {
        let mut command = tandem(server.home());
        command
            .args(args)
            .args(["--url", &server.url, "--key", key]);
        command.output().unwrap()
    };
    assert_eq!(code(&with(&secret, &["runs", "list"])), 0);
    let beyond = with(&secret, &["run", "hello"]);
    assert_eq!(code(&beyond), 1);
    assert!(
        text(&beyond.stderr).contains("runs:create"),
        "{}",
        text(&beyond.stderr)
    );

    let listed = text(&server.run(&["keys", "list", "--json"]).stdout);
    let keys: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let found = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|k| k["name"] == "reader");
    let id = found.unwrap()["keyId"].as_str().unwrap().to_owned();
    let rotated = server.run(&["keys", "rotate", &id]);
    let second = text(&rotated.stdout).trim().to_owned();
    assert_eq!(code(&server.run(&["keys", "revoke", &id])), 0);
    let revoked = with(&secret, &["runs", "list"]);
    assert!(
        text(&revoked.stderr).contains("key_revoked"),
        "{}",
        text(&revoked.stderr)
    );
    assert_eq!(code(&with(&second, &["runs", "list"])), 0);
}

#[test]
fn first_key_of_a_tenant_is_created_in_the_store() {
    let mut server = Server::with_workflows(&[]);
    let own = [
        "keys",
        "create",
        "a",
        "--scope",
        "runs:read",
        "--tenant",
        "default",
    ];
    assert_eq!(code(&server.run(&own)), 0);
    let elsewhere = [
        "keys",
        "create",
        "a",
        "--scope",
        "runs:read",
        "--tenant",
        "acme",
    ];
    let refused = server.run(&elsewhere);
    assert_eq!(code(&refused), 1);
    let printed = text(&refused.stderr);
    assert!(printed.contains("tenant_membership_required"), "{printed}");
    let in_store = |server: &Server| {
        let mut command = tandem(server.home());
        command
            .args(elsewhere)
            .args(["--store", "sqlite:tandem.db"]);
        command.output().unwrap()
    };
    let locked = text(&in_store(&server).stderr);
    assert!(locked.contains("locked"), "{locked}");
    assert_eq!(server.terminate(), 0, "{}", server.log());
    let made = in_store(&server);
    assert_eq!(code(&made), 0, "{}", text(&made.stderr));
    let secret = text(&made.stdout).trim().to_owned();
    server.start_again();
    let listed = tandem(server.home())
        .args(["runs", "list", "--url", &server.url, "--key", &secret])
        .output()
        .unwrap();
    assert_eq!(code(&listed), 0, "{}", text(&listed.stderr));
}

#[test]
fn the_ancestry_of_a_child_names_its_parent() {
    let server = Server::with_workflows(&[("parent.json", PARENT), ("child.json", CHILD)]);
    let ran = server.run(&["run", "parent", "--json"]);
    assert_eq!(code(&ran), 0, "{}", text(&ran.stderr));
    let parent = server.only_run("parent", "completed");
    let child = server.only_run("child", "completed");
    let ancestry = server.run(&["runs", "ancestry", &child]);
    assert_eq!(code(&ancestry), 0, "{}", text(&ancestry.stderr));
    let line = format!("by core.subWorkflow of {parent}");
    assert!(
        text(&ancestry.stdout).contains(&line),
        "{}",
        text(&ancestry.stdout)
    );
    let ancestry = text(&server.run(&["runs", "ancestry", &child, "--json"]).stdout);
    let ancestry: serde_json::Value = serde_json::from_str(&ancestry).unwrap();
    assert_eq!(ancestry["ancestors"][0]["runId"], parent.as_str());
    assert!(ancestry["ancestors"].as_array().unwrap().len() == 1);
}

#[test]
fn terminated_server_drains_exits_0_and_resumes_after_restart() {
    let mut server = Server::with_workflows(&[("slow.json", WAITING)]);
    let mut follower = server.start(&["run", "slow", "--follow", "--json"]);
    let run = server.only_run("slow", "running");
    // An open stream must not delay the exit of the server.
    assert_eq!(server.terminate(), 0, "{}", server.log());
    server.start_again();
    assert_eq!(server.only_run("slow", "running"), run);
    assert_eq!(code(&server.run(&["runs", "cancel", &run])), 0);
    // The follower has reconnected and sees the end.
    assert_eq!(follower.wait().unwrap().code(), Some(2));
}

#[test]
fn second_server_on_a_store_is_rejected() {
    let server = Server::with_workflows(&[]);
    let second = tandem(server.home())
        .args(["serve", "--listen", &format!("127.0.0.1:{}", free_port())])
        .args(["--store", &server.store()])
        .output()
        .unwrap();
    assert_eq!(code(&second), 1);
    let printed = text(&second.stderr);
    assert!(
        printed.contains("cannot open the store (locked)"),
        "{printed}"
    );
}

#[test]
fn startup_errors_are_one_line() {
    let home = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap().to_string();
    std::fs::write(
        home.path().join("junk.db"),
        "this is not a database, not at all",
    )
    .unwrap();
    std::fs::write(
        home.path().join("bad.toml"),
        "listen = \"127.0.0.1:0\"\nnope = 1\n",
    )
    .unwrap();
    let table: &[(&[&str], &str)] = &[
        (&["serve", "--listen", &in_use], "the port is in use"),
        (
            &["dev", "--listen", &in_use],
            "choose another address with --listen",
        ),
        (&["serve", "--listen", "nowhere"], "the port is missing"),
        (
            &["serve", "--listen", "0.0.0.0:0", "--test-seams"],
            "it is not loopback",
        ),
        (
            &["serve", "--store", "postgres://db"],
            "not in this version",
        ),
        (
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--store",
                "sqlite:junk.db",
            ],
            "(corrupt)",
        ),
        (
            &["serve", "--listen", "127.0.0.1:0", "--workflows", "absent"],
            "cannot read the workflows",
        ),
        (
            &["serve", "--config", "bad.toml"],
            "bad.toml:2:1: unknown field `nope`",
        ),
        (
            &["serve", "--config", "absent.toml"],
            "cannot read the configuration",
        ),
    ];
    for (args, expected) in table {
        let output = tandem(home.path()).args(*args).output().unwrap();
        let printed = text(&output.stderr);
        assert_eq!(code(&output), 1, "{args:?}: {printed}");
        assert!(printed.contains(expected), "{args:?}: {printed}");
        let errors = printed
            .lines()
            .filter(|line| line.starts_with("error: "))
            .count();
        assert_eq!(
            (errors, printed.lines().count()),
            (1, 1),
            "{args:?}: {printed}"
        );
    }
}

#[test]
fn missing_key_is_created_and_shown_once() {
    let mut server = Server::without_key();
    let log = server.log();
    let secret = log
        .split_whitespace()
        .find(|word| word.starts_with("tdm_live_"))
        .unwrap_or_else(|| panic!("no key in {log}"))
        .to_owned();
    let listed = tandem(server.home())
        .args(["keys", "list", "--url", &server.url, "--key", &secret])
        .output()
        .unwrap();
    assert_eq!(code(&listed), 0, "{}", text(&listed.stderr));
    assert_eq!(server.terminate(), 0);
    let database = std::fs::read(server.home().join("tandem.db")).unwrap();
    let is_stored = database
        .windows(secret.len())
        .any(|w| w == secret.as_bytes());
    assert!(!is_stored, "only a hash is stored");
    server.start_again();
    assert!(!server.log().contains("tdm_live_"), "{}", server.log());
}

#[test]
fn login_link_is_printed_only_on_request() {
    let plain = Server::without_key();
    let printed = plain.log_with("console: ");
    assert!(!printed.contains("login?code="), "{printed}");
    assert!(
        printed.contains("/console (sign in with a key)"),
        "{printed}"
    );
    let server = Server::with_login_link();
    let printed = server.log_with("console: ");
    assert_eq!(
        printed.matches("/console/login?code=").count(),
        1,
        "{printed}"
    );
}

#[test]
fn bad_documents_are_reported_and_the_others_load() {
    let server = Server::with_workflows(&[("bad.json", "{"), ("broken.json", FAILING)]);
    let log = server.log();
    assert!(
        log.contains("bad.json is not registered: not JSON"),
        "{log}"
    );
    assert!(log.contains("1 refused"), "{log}");
    assert_eq!(code(&server.run(&["run", "broken"])), 1);
    assert!(!log.contains(KEY), "keys stay out of the log: {log}");
}

#[test]
fn dev_needs_no_setup_and_finds_its_key() {
    let server = Server::dev();
    let printed = server.log_with("tandem check");
    let links = printed.matches("/console/login?code=").count();
    assert_eq!((links, printed.lines().count()), (1, 6), "{printed}");
    let waiting = tandem(server.home())
        .args(["inbox", "list", "--url", &server.url])
        .output()
        .unwrap();
    let waiting = text(&waiting.stdout);
    assert!(waiting.contains("Refund"), "{waiting}");
    let run = tandem(server.home())
        .args(["run", "hello", "--url", &server.url])
        .output()
        .unwrap();
    assert_eq!(code(&run), 0, "{}", text(&run.stderr));
    let listed = tandem(server.home())
        .args([
            "runs",
            "list",
            "--workflow",
            "order-pipeline",
            "--url",
            &server.url,
        ])
        .output()
        .unwrap();
    assert!(
        text(&listed.stdout).contains("running"),
        "{}",
        text(&listed.stdout)
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let key = std::fs::metadata(server.home().join(".tandem/dev-key")).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn request_with_too_many_header_bytes_gets_431() {
    let server = Server::with_workflows(&[]);
    let value = "x".repeat(1_000);
    let status = |bytes: usize| {
        let headers = vec![("x-filler", value.as_str()); bytes / value.len()];
        let answer = server.post("/v1/runs", &headers, "{}");
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status(60_000), "400", "the body is read and refused");
    assert_eq!(
        status(70_000),
        "431",
        "their sum counts, not the longest one"
    );
}
