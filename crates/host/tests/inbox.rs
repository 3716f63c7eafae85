//! `tandem inbox` with the real binary: list, show, decide, answer, and error messages.

mod server;

use serde_json::Value;
use server::Server;
use std::process::Output;

const ASKING: &str = r#"{
  "id": "asking", "name": "Asking", "version": "1",
  "nodes": [{"id": "gate", "typeId": "core.approvalGate", "name": "Gate",
             "position": {"x": 0, "y": 0},
             "config": {"title": "May I?", "artifactData": {"amount": 5}}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

const SURVEY: &str = r#"{
  "id": "survey", "name": "Survey", "version": "1",
  "nodes": [{"id": "ask", "typeId": "core.clarificationGate", "name": "Ask",
             "position": {"x": 0, "y": 0}, "config": {"questions": [
               {"id": "colour", "question": "Which colour?"},
               {"id": "count", "question": "How many?", "schema": {"type": "integer"}}]},
             "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

const QUORUM: &str = r#"{
  "id": "quorum", "name": "Quorum", "version": "1",
  "nodes": [{"id": "gate", "typeId": "core.approvalGate", "name": "Gate",
             "position": {"x": 0, "y": 0},
             "config": {"title": "All of us?", "requiredApprovals": 2}, "inputs": {}}],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Starts a run that waits and returns its question, as the server lists it.
fn ask(server: &Server, workflow: &str) -> Value {
    let started = server.run(&["run", workflow]);
    assert_eq!(code(&started), 3, "{}", err(&started));
    let listed = server.run(&["inbox", "list", "--json", "--limit", "1"]);
    let listed: Value = serde_json::from_str(&out(&listed)).unwrap();
    listed["interrupts"][0].clone()
}

fn id(question: &Value) -> &str {
    question["interruptId"].as_str().unwrap()
}

#[test]
fn a_question_is_listed_shown_and_decided() {
    let server = Server::with_workflows(&[("a.json", ASKING), ("s.json", SURVEY)]);
    let empty = server.run(&["inbox", "list"]);
    assert_eq!(code(&empty), 0);
    assert!(err(&empty).contains("no open questions"), "{}", err(&empty));

    let survey = ask(&server, "survey");
    let question = ask(&server, "asking");
    let question = id(&question);
    let all = out(&server.run(&["inbox", "list"]));
    assert!(all.contains("May I?") && all.contains(id(&survey)), "{all}");
    let some = out(&server.run(&["inbox", "list", "--kind", "approval"]));
    assert!(
        some.contains(question) && !some.contains(id(&survey)),
        "{some}"
    );

    let sheet = out(&server.run(&["inbox", "show", question]));
    for part in [
        "May I?",
        "\"amount\": 5",
        "digest",
        "accept, reject",
        "inbox approve",
    ] {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }

    let stale = server.run(&["inbox", "approve", question, "--digest", "0000"]);
    assert_eq!(code(&stale), 1);
    assert!(err(&stale).contains("artifact_changed"), "{}", err(&stale));

    let decided = server.run(&["inbox", "approve", question, "--comment", "fine"]);
    assert_eq!(code(&decided), 0, "{}", err(&decided));
    let printed = out(&decided);
    assert!(
        printed.contains("accepted; ") && printed.contains("is completed"),
        "{printed}"
    );

    let late = server.run(&["inbox", "reject", question]);
    assert_eq!(code(&late), 1);
    let printed = err(&late);
    assert!(
        printed.contains("interrupt_already_resolved") && printed.contains("It was accepted by"),
        "{printed}"
    );
    let sheet = out(&server.run(&["inbox", "show", question]));
    assert!(
        sheet.contains("decided by") && !sheet.contains("inbox approve"),
        "{sheet}"
    );
}

#[test]
fn a_set_of_questions_is_answered_by_name_or_as_a_whole() {
    let server = Server::with_workflows(&[("s.json", SURVEY)]);
    let question = ask(&server, "survey");
    let wrong = server.run(&["inbox", "approve", id(&question)]);
    assert_eq!(code(&wrong), 1);
    assert!(err(&wrong).contains("inbox answer"), "{}", err(&wrong));
    let bad = [
        "inbox",
        "answer",
        id(&question),
        "--set",
        "colour=blue",
        "--set",
        "count=x",
    ];
    let bad = server.run(&bad);
    assert_eq!(code(&bad), 1);
    assert!(err(&bad).contains("/answers/count"), "{}", err(&bad));
    let good = [
        "inbox",
        "answer",
        id(&question),
        "--set",
        "colour=7",
        "--set",
        "count=3",
    ];
    let good = server.run(&good);
    assert_eq!(code(&good), 0, "{}", err(&good));

    let question = ask(&server, "survey");
    let file = server.home().join("answer.json");
    std::fs::write(&file, r#"{"answers": {"colour": "red", "count": 1}}"#).unwrap();
    let whole = [
        "inbox",
        "answer",
        id(&question),
        "--value",
        "@answer.json",
        "--json",
    ];
    let whole = server.run(&whole);
    assert_eq!(code(&whole), 0, "{}", err(&whole));
    let printed: Value = serde_json::from_str(&out(&whole)).unwrap();
    assert_eq!(printed["interrupt"]["outcome"], "answered");
    let unread = server.run(&["inbox", "answer", "int-none", "--value", "{}"]);
    assert!(err(&unread).contains("inbox list"), "{}", err(&unread));
}

#[test]
fn vote_below_quorum_exits_with_3() {
    let server = Server::with_workflows(&[("q.json", QUORUM)]);
    let question = ask(&server, "quorum");
    let vote = server.run(&["inbox", "approve", id(&question)]);
    assert_eq!(code(&vote), 3, "{}", err(&vote));
    assert!(out(&vote).contains("1 of 2 approvals"), "{}", out(&vote));
}
