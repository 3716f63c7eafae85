//! Takeovers by commands of the desk, and by handlers of admins.

use super::harness::{TestSession, value};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AuthorizationDecision, CodeOutcome, SessionCommand, SessionEventBody as Body, SideMessage,
};

const MODE: &str = "__zupa.hitl.mode";
const DENIED: &str = "You cannot use this command.";

fn auth() -> Value {
    json!({
        "tokens": [],
        "chat": [
            {"transport": "desk", "address": "ana", "actorId": "ana", "role": "boss"},
            {"transport": "desk", "address": "eva", "actorId": "eva", "role": "vip"},
            {"transport": "desk", "address": "vic", "actorId": "vic", "role": "viewer"},
        ],
        "roles": {
            "boss": ["hitl.takeover.start", "hitl.takeover.end", "command.vip"],
            "vip": ["command.vip"],
            "viewer": ["hitl.escalation.view"],
        },
    })
}

fn desk(commands: Value, admin_auth: Value) -> TestSession {
    let config = json!({"commands": commands, "adminAuth": admin_auth,
        "model": {"provider": "scripted", "script": {"answers": []}}});
    let mut desk = TestSession::new(config, &[]);
    desk.say("hi");
    desk
}

/// A handler that writes the mode and says something to the user.
fn writes(desk: &mut TestSession, name: &str, mode: Option<&str>, text: &str) {
    let (mode, text) = (mode.map(|mode| json!(mode)), text.to_owned());
    let done = CodeOutcome {
        kv: vec![(MODE.to_owned(), mode)],
        side_messages: vec![SideMessage {
            to: "u1".to_owned(),
            text,
        }],
        ..CodeOutcome::default()
    };
    desk.functions.insert(
        format!("commands.{name}.handler"),
        Box::new(move |_| done.clone()),
    );
}

fn admin(name: &str) -> Value {
    json!({name: {"description": "d", "access": "admin", "handler": {"$fn": true}}})
}

fn decided(desk: &TestSession) -> Vec<(&str, bool)> {
    let decided = desk.events.iter().filter_map(|event| match event {
        Body::AuthorizationDecided(decision) => Some((decision.action.as_str(), decision.granted)),
        _ => None,
    });
    decided.collect()
}

/// Z-156 (half: the desk's own commands), Z-27 (half: they name the session), Z-29 (half: admin commands run)
#[test]
fn desk_takes_over_and_hands_back_by_commands() {
    let mut desk = desk(json!({}), auth());
    let told = desk.run_command("ana", "/takeover u1", "u1");
    assert_eq!(
        told,
        ["You have the conversation with u1; the agent is silent."]
    );
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    assert!(desk.say("hello?").is_empty());
    let told = desk.run_command("ana", "/handback u1 be kind", "u1");
    assert_eq!(told, ["The agent has the conversation with u1 again."]);
    assert_eq!(desk.state().hitl_mode(), None);
    let note = desk.state().memory().last().expect("an entry").text.clone();
    assert!(note.ends_with("be kind"), "{note}");
    assert_eq!(desk.run_command("vic", "/takeover u1", "u1"), [DENIED]);
    assert_eq!(desk.state().hitl_mode(), None);
    let told = desk.run_command("ana", "/handback u1", "u1");
    assert_eq!(told, ["Not done: no person has the conversation."]);
}

/// Z-194 (half: the handlers of the sample), Z-91 (half: an authorized command's texts are sent)
#[test]
fn handler_of_an_admin_writes_the_mode() {
    let mut commands = admin("takeover");
    commands["handback"] = admin("handback")["handback"].clone();
    let mut desk = desk(commands, auth());
    writes(
        &mut desk,
        "takeover",
        Some("live_takeover"),
        "A human agent joined.",
    );
    writes(&mut desk, "handback", None, "Back to the assistant.");
    assert_eq!(
        desk.run_command("ana", "/takeover u1", "u1"),
        ["A human agent joined."]
    );
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    assert_eq!(
        desk.state()
            .takeover_escalation()
            .expect("open")
            .assignee
            .as_deref(),
        Some("ana")
    );
    assert_eq!(
        desk.run_command("ana", "/handback u1", "u1"),
        ["Back to the assistant."]
    );
    assert_eq!(desk.state().hitl_mode(), None);
    // The command gate granted these actions already.
    assert_eq!(
        decided(&desk),
        [("hitl.takeover.start", true), ("hitl.takeover.end", true)]
    );
    assert!(desk.failures("kv").is_empty());
}

/// Z-194 (half: the right for the action is looked at where the gate granted another)
#[test]
fn handler_of_another_command_needs_the_right_too() {
    for (who, taken) in [("ana", true), ("eva", false)] {
        let mut desk = desk(admin("vip"), auth());
        writes(&mut desk, "vip", Some("live_takeover"), "hello");
        desk.run_command(who, "/vip u1", "u1");
        assert_eq!(desk.state().is_taken_over(), taken, "{who}");
        assert_eq!(
            decided(&desk),
            [("command.vip", true), ("hitl.takeover.start", taken)]
        );
    }
}

/// Z-194 (half: the same where the rules are code)
#[test]
fn rules_in_code_are_asked_for_the_takeover() {
    for allows in [true, false] {
        let rules = json!({"resolveActor": {"$fn": true}, "can": {"$fn": true}});
        let mut desk = desk(admin("vip"), rules);
        writes(&mut desk, "vip", Some("live_takeover"), "hello");
        let actor = |_: &_| value(json!({"id": "ana"}));
        desk.functions
            .insert("adminAuth.resolveActor".to_owned(), Box::new(actor));
        desk.functions.insert(
            "adminAuth.can".to_owned(),
            Box::new(move |call| value(json!(call.args[0] == json!("command.vip") || allows))),
        );
        desk.run_command("x", "/vip u1", "u1");
        assert_eq!(desk.state().is_taken_over(), allows);
    }
}

/// Z-194 (half: nobody else's code writes the mode). An admin who is authorized elsewhere meanwhile lends a running
/// command of the user nothing.
#[test]
fn public_command_never_writes_the_mode() {
    let commands = json!({"mine": {"description": "d", "handler": {"$fn": true}}});
    let mut desk = desk(commands, auth());
    writes(&mut desk, "mine", Some("live_takeover"), "hello");
    desk.held = vec!["session.code"];
    desk.say("/mine");
    let decision = AuthorizationDecision {
        granted: true,
        action: "hitl.takeover.start".to_owned(),
        actor: Some(tandem_record::conversation::AdminActor {
            id: "ana".to_owned(),
            role: None,
            channel: "ui_api".to_owned(),
            metadata: None,
        }),
        signal: None,
        escalation_id: None,
        proxy_id: None,
        reason: None,
        adapter: "ui_api".to_owned(),
    };
    desk.command(SessionCommand::RecordAuthorization(Box::new(decision)))
        .expect("recorded");
    desk.held.clear();
    desk.perform_all();
    assert!(!desk.state().is_taken_over());
    assert_eq!(desk.failures("kv").len(), 1);
}

/// Z-27 (half: without an argument the target is the session the command arrived in, with one only what it names)
#[test]
fn command_that_names_no_conversation_changes_nothing() {
    let mut rules = auth();
    rules["chat"][0] =
        json!({"transport": "loopback", "address": "u1", "actorId": "ana", "role": "boss"});
    let mut desk = desk(json!({}), rules);
    let nothing = ["There is no such conversation."];
    for target in ["u11", "ses-nope", "somebody"] {
        assert_eq!(desk.say(&format!("/takeover {target}")), nothing);
        assert!(!desk.state().is_taken_over(), "{target}");
    }
    let told = desk.say("/takeover");
    assert_eq!(
        told,
        ["You have the conversation with u1; the agent is silent."]
    );
    for target in ["u11", "esc-1", "551199"] {
        assert_eq!(desk.say(&format!("/handback {target} see you")), nothing);
        assert!(desk.state().is_taken_over(), "{target}");
    }
    desk.say("/handback see you");
    assert!(!desk.state().is_taken_over());
    let note = desk.state().memory().last().expect("an entry").text.clone();
    assert!(note.ends_with("see you"), "{note}");
}
