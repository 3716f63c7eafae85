//! Commands that need an admin: who may use them, on which session, and what is recorded.

use super::escalations::waiting_desk_with;
use super::harness::{TestSession, failed, value};
use crate::session::SessionRefusal;
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminActor, AdminRequest, AgentMode, AuthorizationDecision, CodeOutcome, SessionCommand,
    SessionEventBody as Body,
};

const DENIED: &str = "You cannot use this command.";

fn as_data() -> Value {
    json!({
        "tokens": [],
        "chat": [
            {"transport": "desk", "address": "ana", "actorId": "ana", "role": "boss"},
            {"transport": "desk", "address": "vic", "actorId": "vic", "role": "viewer"},
        ],
        "roles": {
            "boss": ["command.vip", "hitl.escalation.resolve", "hitl.escalation.view"],
            "viewer": ["hitl.escalation.view"],
        },
    })
}

fn as_code() -> Value {
    json!({"resolveActor": {"$fn": true}, "can": {"$fn": true}})
}

fn vip() -> Value {
    json!({"vip": {"description": "Marks", "access": "admin", "handler": {"$fn": true}}})
}

fn decisions(desk: &TestSession) -> Vec<&AuthorizationDecision> {
    let decided = desk.events.iter().filter_map(|event| match event {
        Body::AuthorizationDecided(decision) => Some(&**decision),
        _ => None,
    });
    decided.collect()
}

fn function(desk: &mut TestSession, path: &str, answer: CodeOutcome) {
    let answer = move |_: &_| answer.clone();
    desk.functions.insert(path.to_owned(), Box::new(answer));
}

/// Z-24 (half: somebody with the right), Z-27 (half: a target that is named), Z-147 (half: the grant),
/// Z-256 (half: what the handler gets)
#[test]
fn admin_command_acts_on_the_session_it_names_and_answers_the_admin() {
    let mut desk = TestSession::new(json!({"commands": vip(), "adminAuth": as_data()}), &[]);
    desk.say("hi");
    desk.functions.insert(
        "commands.vip.handler".to_owned(),
        Box::new(|call| {
            assert_eq!(call.args, [json!("now")], "the target is not an argument");
            CodeOutcome {
                kv: vec![("vip".to_owned(), Some(json!("yes")))],
                ..value(json!("Done."))
            }
        }),
    );
    assert_eq!(desk.run_command("ana", "/vip u1 now", "u1"), ["Done."]);
    assert_eq!(desk.state().key("vip"), Some(json!("yes")));
    let expected = ("desk".to_owned(), "ana".to_owned(), "Done.".to_owned());
    assert_eq!(desk.routes.last(), Some(&expected));
    let granted = decisions(&desk)[0];
    assert!(granted.granted);
    assert_eq!(granted.action, "command.vip");
    assert_eq!(granted.actor.as_ref().map(|a| a.id.as_str()), Some("ana"));
    assert_eq!(granted.adapter, "chat:desk");
    assert_eq!(
        desk.state().memory().count(),
        2,
        "the model sees none of it"
    );
}

/// Z-24 (half: somebody without the right), Z-146 (half: no actor), Z-147 (half: the denial)
#[test]
fn admin_command_is_refused_to_users_and_to_admins_without_the_right() {
    let mut desk = TestSession::new(json!({"commands": vip(), "adminAuth": as_data()}), &[]);
    assert_eq!(desk.say("/vip"), [DENIED]);
    assert_eq!(desk.run_command("vic", "/vip u1", "u1"), [DENIED]);
    let reasons: Vec<_> = decisions(&desk)
        .iter()
        .map(|d| (d.reason.as_deref(), d.actor.is_some(), d.signal.is_some()))
        .collect();
    let expected = [
        (Some("no_actor"), false, true),
        (Some("forbidden"), true, false),
    ];
    assert_eq!(reasons, expected);
    let mut desk = TestSession::new(json!({"commands": vip(), "adminAuth": null}), &[]);
    assert_eq!(desk.say("/vip"), [DENIED]);
    assert_eq!(
        decisions(&desk)[0].reason.as_deref(),
        Some("no_auth_config")
    );
}

/// Z-24 (half: resolveActor, then can), Z-143 (half: their order), Z-146 (half: rules in code)
#[test]
fn rules_in_code_are_asked_in_order_and_fail_closed() {
    let cases = [
        (
            value(json!({"id": "ana", "role": "boss"})),
            value(json!(true)),
            None,
        ),
        (value(Value::Null), value(json!(true)), Some("no_actor")),
        (
            value(json!({"id": ""})),
            value(json!(true)),
            Some("no_actor"),
        ),
        (failed("failed", "down"), value(json!(true)), Some("error")),
        (
            failed("timeout", "slow"),
            value(json!(true)),
            Some("timeout"),
        ),
        (
            value(json!({"id": "ana"})),
            value(json!(false)),
            Some("forbidden"),
        ),
        (
            value(json!({"id": "ana"})),
            value(json!("yes")),
            Some("error"),
        ),
        (
            value(json!({"id": "ana"})),
            failed("timeout", "slow"),
            Some("timeout"),
        ),
    ];
    for (actor, right, denial) in cases {
        let mut desk = TestSession::new(json!({"commands": vip(), "adminAuth": as_code()}), &[]);
        function(&mut desk, "adminAuth.resolveActor", actor);
        function(&mut desk, "adminAuth.can", right);
        function(&mut desk, "commands.vip.handler", value(json!("Done.")));
        let answer = if denial.is_some() { DENIED } else { "Done." };
        assert_eq!(desk.say("/vip"), [answer], "{denial:?}");
        assert_eq!(decisions(&desk)[0].reason.as_deref(), denial);
    }
}

/// `can` gets the target session as readers see it, `resolveActor` the admin's message.
/// Z-27 (half: can gets the target session), Z-143 (half: what both are given)
#[test]
fn rules_in_code_see_the_target_session() {
    let mut desk = TestSession::new(json!({"commands": vip(), "adminAuth": as_code()}), &[]);
    desk.say("hi");
    desk.functions.insert(
        "adminAuth.resolveActor".to_owned(),
        Box::new(|call| {
            assert_eq!(call.args[0]["inbound"]["from"], "ana");
            value(json!({"id": "ana"}))
        }),
    );
    desk.functions.insert(
        "adminAuth.can".to_owned(),
        Box::new(|call| {
            assert_eq!(call.args[0], "command.vip");
            assert_eq!(call.args[1]["channel"], "chat:desk");
            assert_eq!(call.args[2]["id"], "s-1");
            assert_eq!(call.args[2]["userExternalId"], "u1");
            assert_eq!(call.args[2]["hitl"]["mode"], Value::Null);
            value(json!(true))
        }),
    );
    desk.run_command("ana", "/vip u1", "u1");
    assert!(decisions(&desk)[0].granted);
}

/// Z-23 (half: help lists by right), Z-266 (half: rules as data)
#[test]
fn help_lists_admin_commands_to_admins_only_and_records_nothing() {
    let mut desk = TestSession::new(json!({"commands": vip(), "adminAuth": as_data()}), &[]);
    let for_user = desk.say("/help").join("\n");
    assert!(
        !for_user.contains("/vip") && !for_user.contains("/resolve"),
        "{for_user}"
    );
    let for_admin = desk.run_command("ana", "/help", "u1").join("\n");
    assert!(
        for_admin.contains("/vip – Marks") && for_admin.contains("/resolve"),
        "{for_admin}"
    );
    let for_viewer = desk.run_command("vic", "/help", "u1").join("\n");
    assert!(for_viewer.contains("/escalations") && !for_viewer.contains("/vip"));
    assert!(decisions(&desk).is_empty());
}

/// Z-23 (half: help asks rules in code), Z-266 (half: rules in code)
#[test]
fn help_asks_the_rules_in_code_about_each_command() {
    let mut desk = TestSession::new(json!({"commands": vip(), "adminAuth": as_code()}), &[]);
    function(
        &mut desk,
        "adminAuth.resolveActor",
        value(json!({"id": "ana"})),
    );
    desk.functions.insert(
        "adminAuth.can".to_owned(),
        Box::new(|call| value(json!(call.args[0] == "command.vip"))),
    );
    let help = desk.say("/help").join("\n");
    assert!(
        help.contains("/vip") && !help.contains("/resolve"),
        "{help}"
    );
    function(
        &mut desk,
        "adminAuth.resolveActor",
        failed("failed", "down"),
    );
    assert!(!desk.say("/help").join("\n").contains("/vip"));
    assert!(decisions(&desk).is_empty());
}

/// Z-26 (half: resolve), Z-154 (half: the action of the command is that of the route), Z-156 (half: resolve)
#[test]
fn resolve_command_decides_with_the_right_for_escalations() {
    let mut desk = waiting_desk_with(json!({"adminAuth": as_data()}));
    let id = desk
        .state()
        .escalations()
        .next()
        .expect("one")
        .id
        .to_string();
    let denied = desk.run_command("vic", &format!("/resolve {id} approve"), &id);
    assert_eq!(denied, [DENIED]);
    assert_eq!(decisions(&desk)[0].action, "hitl.escalation.resolve");
    assert_eq!(desk.paused_on(), Some("admin_resolution"));
    let usage = desk.run_command("ana", &format!("/resolve {id} maybe"), &id);
    assert!(usage[0].starts_with("Usage: /resolve"), "{usage:?}");
    let told = desk.run_command("ana", "/resolve u1 Reject Too old.", "u1");
    assert!(told.contains(&format!("{id} is rejected.")), "{told:?}");
    let record = desk.state().escalations().next().expect("one");
    let resolution = record.resolution.as_ref().expect("resolved");
    assert_eq!(resolution.resolved_by, "ana");
    assert_eq!(resolution.message.as_deref(), Some("Too old."));
    assert_eq!(resolution.channel, "chat:desk");
    assert_eq!(desk.paused_on(), None, "the flow went on");
    let again = desk.run_command("ana", &format!("/resolve {id} approve"), &id);
    assert!(again[0].starts_with("Not done"), "{again:?}");
}

/// Z-156 (half: escalations command lists what is open)
#[test]
fn escalations_command_lists_what_is_open() {
    let mut desk = waiting_desk_with(json!({"adminAuth": as_data()}));
    let listed = desk.run_command("vic", "/escalations u1", "u1").join("\n");
    assert!(listed.contains("High refund amount"), "{listed}");
    assert_eq!(decisions(&desk)[0].action, "hitl.escalation.view");
    desk.resolve(true, "ana").expect("open");
    let listed = desk.run_command("vic", "/escalations u1", "u1");
    assert_eq!(listed, ["Nothing waits for a decision."]);
}

/// Z-156 (half: removed like any command)
#[test]
fn desk_commands_can_be_removed_and_need_admin_auth() {
    let config = json!({"commands": {"resolve": false}, "adminAuth": as_data()});
    let mut desk = TestSession::new(config, &[]);
    assert_eq!(
        desk.say("/resolve x approve"),
        ["Unknown command. Try /help"]
    );
    let mut desk = TestSession::new(json!({"adminAuth": null}), &[]);
    assert_eq!(desk.say("/escalations"), ["Unknown command. Try /help"]);
}

/// Z-27 (half: the first word)
#[test]
fn first_word_of_an_admin_command_may_name_a_target() {
    let desk = TestSession::new(json!({"commands": vip(), "adminAuth": as_data()}), &[]);
    let target = |text| crate::session::command_target(&desk.agent, text);
    assert_eq!(target("/vip u1 x"), Some("u1"));
    assert_eq!(target("/resolve esc-1 approve"), Some("esc-1"));
    assert_eq!(target("/vip"), None);
    assert_eq!(target("/help u1"), None);
    assert_eq!(target("hello u1"), None);
}

/// Z-226 (half: no crash keeps what allows an action without the action), Z-258, Z-152
#[test]
fn right_and_action_are_one_decision() {
    let decision = AuthorizationDecision {
        granted: true,
        action: "flow.manage".to_owned(),
        actor: Some(AdminActor {
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
    let mut desk = TestSession::new(json!({}), &[]);
    desk.say("hi");
    let act = |request: AdminRequest| SessionCommand::Authorized {
        decision: Box::new(decision.clone()),
        command: Box::new(SessionCommand::Act {
            actor: decision.actor.clone().expect("ana"),
            request,
        }),
    };
    let events = desk.events.len();
    let mode = AgentMode::Off;
    desk.command(act(AdminRequest::SetMode { mode }))
        .expect("allowed");
    assert!(matches!(
        &desk.events[events..],
        [Body::AuthorizationDecided(decided), Body::ModeChanged { .. }] if **decided == decision
    ));
    // A refused action leaves nothing: its right is recorded by itself.
    let events = desk.events.len();
    let refused = desk.command(act(AdminRequest::AbortFlow));
    assert_eq!(refused, Err(SessionRefusal::NoFlow));
    assert_eq!(desk.events.len(), events);
}
