//! Who a vote belongs to: authenticated voters, claimed names and links are kept apart.

use super::gates::gate;
use super::harness::RunHarness;
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{Command, DeciderSnapshot, NodeId, Principal, Reply, RunStatus, Vote};

fn by(principal: Option<&str>, value: Value) -> Command {
    Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value,
        by: principal.map(Principal::new),
        by_link: principal.is_none(),
        decider: DeciderSnapshot::default(),
    }
}

fn accept(principal: Option<&str>) -> Command {
    by(principal, json!({"action": "accept"}))
}

fn accept_as(principal: Option<&str>, voter: &str) -> Command {
    by(principal, json!({"action": "accept", "voter": voter}))
}

fn quorum(required: u32) -> RunHarness {
    let config = json!({"requiredApprovals": required, "rejectionPolicy": "majority"});
    RunHarness::started(gate(config))
}

/// Voter, who claimed the name, whether through a link, and the action.
fn votes(reply: Reply) -> Vec<(String, Option<String>, bool, String)> {
    let Reply::Resolved { votes, .. } = reply else {
        panic!("{reply:?}");
    };
    let parts = |vote: Vote| (vote.voter, vote.claimed_by, vote.via_link, vote.action);
    votes.into_iter().map(parts).collect()
}

fn vote(
    voter: &str,
    claimed_by: Option<&str>,
    link: bool,
    action: &str,
) -> (String, Option<String>, bool, String) {
    (
        voter.to_owned(),
        claimed_by.map(str::to_owned),
        link,
        action.to_owned(),
    )
}

#[test]
fn claimed_name_never_replaces_an_authenticated_vote() {
    let mut run = quorum(3);
    run.when(accept(Some("ben")));
    let reply = run.when(by(Some("ana"), json!({"action": "reject", "voter": "ben"})));
    let expected = [
        vote("ben", None, false, "accept"),
        vote("ben", Some("ana"), false, "reject"),
    ];
    assert_eq!(votes(reply), expected);
    let reply = run.when(accept_as(Some("ana"), "ben"));
    let expected = [
        vote("ben", None, false, "accept"),
        vote("ben", Some("ana"), false, "accept"),
    ];
    assert_eq!(
        votes(reply),
        expected,
        "a repeated claim is a repeated vote"
    );
    let reply = run.when(accept_as(Some("ana"), "ana"));
    assert_eq!(
        votes(reply).last(),
        Some(&vote("ana", None, false, "accept"))
    );
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn own_name_as_voter_is_the_own_vote() {
    let mut run = quorum(2);
    run.when(accept(Some("ana")));
    let reply = run.when(accept_as(Some("ana"), "ana"));
    assert_eq!(votes(reply), [vote("ana", None, false, "accept")]);
}

#[test]
fn claimed_names_are_short_and_not_empty() {
    let mut run = quorum(2);
    for bad in [
        json!(""),
        json!(" "),
        json!("\u{200b}"),
        json!(" \u{feff}\u{2060} \u{3164}\u{e0041}"),
        json!("z".repeat(257)),
        json!(7),
    ] {
        let refused = run.try_when(by(Some("ana"), json!({"action": "accept", "voter": bad})));
        match refused {
            Err(Refusal::Invalid(problems)) => assert_eq!(problems[0].path, "/resumeValue/voter"),
            other => panic!("{bad}: {other:?}"),
        }
    }
    run.when(accept_as(Some("ana"), "\u{200b}ben"));
    run.when(accept_as(Some("ana"), &"z".repeat(256)));
}

#[test]
fn unnamed_votes_through_links_are_one_voter() {
    let mut run = quorum(2);
    for _ in 0..2 {
        let reply = run.when(accept(None));
        assert_eq!(votes(reply), [vote("link", None, true, "accept")]);
    }
    let reply = run.when(accept_as(None, "ben"));
    let expected = [
        vote("link", None, true, "accept"),
        vote("ben", Some("link"), true, "accept"),
    ];
    assert_eq!(votes(reply), expected);
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn principal_named_link_is_not_the_link() {
    let mut run = quorum(2);
    run.when(accept(None));
    let reply = run.when(accept(Some("link")));
    assert_eq!(votes(reply).len(), 2);
}

fn edits(principal: &str, amount: u32) -> Command {
    let value = json!({"action": "edit-accept", "editedArtifactData": {"amount": amount}});
    by(Some(principal), value)
}

fn editable() -> RunHarness {
    RunHarness::started(gate(json!({
        "requiredApprovals": 2,
        "actions": ["accept", "reject", "edit-accept"],
        "artifactData": {"amount": 10},
    })))
}

#[test]
fn edit_without_a_change_keeps_earlier_votes() {
    let mut run = editable();
    run.when(accept(Some("ana")));
    assert_eq!(votes(run.when(edits("ben", 10))).len(), 2);
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn equal_edits_agree() {
    let mut run = editable();
    run.when(accept(Some("eva")));
    assert_eq!(votes(run.when(edits("ana", 7))).len(), 1, "eva accepted 10");
    assert_eq!(votes(run.when(edits("ana", 7))).len(), 1, "ana repeats it");
    let mut run = run.given();
    run.when(edits("ben", 7));
    run.then(
        r#"
        approval.received gate edit-accept
        interrupt.resolved gate
        node.resumed gate
        node.completed gate {"action":"edit-accept","artifactData":{"amount":7},"decidedBy":"ben"}
        run.completed {"action":"edit-accept","artifactData":{"amount":7},"decidedBy":"ben"}
        "#,
    );
}

#[test]
fn accepted_edit_is_the_output_when_its_author_votes_again() {
    let mut run = editable();
    run.when(edits("ana", 7));
    run.when(accept(Some("ana")));
    let mut run = run.given();
    run.when(accept(Some("ben")));
    run.then(
        r#"
        approval.received gate accept
        interrupt.resolved gate
        node.resumed gate
        node.completed gate {"action":"accept","artifactData":{"amount":7},"decidedBy":"ben"}
        run.completed {"action":"accept","artifactData":{"amount":7},"decidedBy":"ben"}
        "#,
    );
}
