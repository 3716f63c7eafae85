//! Live takeover: what is not sent, where messages go, what waits.

use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect, value};
use crate::session::SessionRefusal;
use serde_json::{Value, json};
use tandem_record::EscalationId;
use tandem_record::conversation::{
    AdminRequest, ChatAnswer, ChatToolCall, CodeOutcome, EscalationStatus, MessageRole,
    SentMessage, SessionCommand, SessionEventBody as Body, SessionReply, SideMessage,
    TakeoverDirection, TakeoverOrigin,
};

const MODEL: &str = "model speaks";

/// A desk with a model, and these other fields.
pub(super) fn desk(more: Value) -> TestSession {
    let mut config = json!({"model": {"provider": "scripted", "script": {"answers": []}}});
    let fields = config.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    TestSession::new(config, &[])
}

impl TestSession {
    pub(super) fn take_over(&mut self, by: &str) -> Result<SessionReply, SessionRefusal> {
        self.act(by, AdminRequest::TakeOver)
    }

    pub(super) fn write_in_takeover(
        &mut self,
        by: &str,
        text: &str,
    ) -> Result<SessionReply, SessionRefusal> {
        let message_id = "h-1".into();
        let text = text.to_owned();
        self.act(by, AdminRequest::SendTakeoverMessage { message_id, text })
    }

    pub(super) fn hand_back(
        &mut self,
        by: &str,
        note: Option<&str>,
    ) -> Result<SessionReply, SessionRefusal> {
        let note = note.map(str::to_owned);
        self.act(by, AdminRequest::HandBack { note })
    }

    /// Why texts were not sent, in order.
    pub(super) fn suppressed(&self) -> Vec<&str> {
        let suppressed = self.events.iter().filter_map(|event| match event {
            Body::ResponseSuppressed { reason, .. } => Some(reason.as_str()),
            _ => None,
        });
        suppressed.collect()
    }

    /// Who wrote to whom during takeovers.
    pub(super) fn takeover_messages(&self) -> Vec<TakeoverDirection> {
        let messages = self.events.iter().filter_map(|event| match event {
            Body::LiveTakeoverMessage { direction, .. } => Some(*direction),
            _ => None,
        });
        messages.collect()
    }
}

fn escalation_of(reply: Result<SessionReply, SessionRefusal>) -> EscalationId {
    match reply {
        Ok(SessionReply::Escalation(record)) => record.id,
        other => panic!("{other:?}"),
    }
}

/// Z-87 (half: messages reach the person and no model is asked), Z-32 (half: no hook sees them),
/// Z-92 (half: author and memory), §12.4
#[test]
fn person_and_user_talk_while_the_agent_is_silent() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    assert_eq!(desk.say("hi"), [MODEL]);
    desk.take_over("ana").expect("free");
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    let hooks = desk.count(|body| matches!(body, Body::HookDecided { .. }));
    assert!(desk.say("are you there?").is_empty());
    assert_eq!(
        desk.count(|body| matches!(body, Body::HookDecided { .. })),
        hooks
    );
    desk.write_in_takeover("ana", "Ana here.")
        .expect("her floor");
    assert_eq!(desk.sent, [MODEL, "Ana here."]);
    desk.hand_back("ana", None).expect("hers");
    assert_eq!(desk.state().hitl_mode(), None);
    assert_eq!(desk.say("thanks"), [MODEL]);
    assert_eq!(desk.model_calls.len(), 2);
    let shown = format!("{:?}", desk.model_calls.last());
    for heard in ["are you there?", "Ana here."] {
        assert!(shown.contains(heard), "{shown}");
    }
    let spoken = desk.state().memory().find(|m| m.text == "Ana here.");
    let author = spoken.and_then(|m| m.author.clone()).expect("an author");
    assert_eq!(
        (author.kind.as_str(), author.actor_id.as_str()),
        ("human", "ana")
    );
    assert_eq!(
        desk.takeover_messages(),
        [
            TakeoverDirection::UserToHuman,
            TakeoverDirection::HumanToUser
        ]
    );
}

/// Z-88 (half: by an admin, with an escalation for the audit; idempotent for the same actor, conflict for another),
/// Z-255 (half: messages and the handback need the right, not the holding)
#[test]
fn first_admin_has_the_floor() {
    let mut desk = desk(json!({}));
    desk.say("hi");
    let first = escalation_of(desk.take_over("ana"));
    let record = desk.state().escalation(&first).expect("known");
    assert_eq!(
        (record.reason.as_str(), record.deadline),
        ("operator", None)
    );
    assert_eq!(record.assignee.as_deref(), Some("ana"));
    let events = desk.events.len();
    assert_eq!(escalation_of(desk.take_over("ana")), first);
    assert_eq!(desk.events.len(), events, "nothing changed");
    let holder = Some("ana".to_owned());
    assert_eq!(
        desk.take_over("ben"),
        Err(SessionRefusal::TakeoverActive { holder })
    );
    // Messages and the handback need the right, not the floor.
    desk.write_in_takeover("ben", "Ben helps.")
        .expect("allowed");
    desk.hand_back("ben", None).expect("allowed");
    let record = desk.state().escalation(&first).expect("known");
    let resolution = record.resolution.as_ref().expect("handed back");
    assert_eq!(record.status, EscalationStatus::Resolved);
    assert_eq!(
        (resolution.resolved_by.as_str(), resolution.channel.as_str()),
        ("ben", "ui_api")
    );
    assert_eq!(
        desk.write_in_takeover("ana", "late"),
        Err(SessionRefusal::NoTakeover)
    );
    assert_eq!(desk.hand_back("ana", None), Err(SessionRefusal::NoTakeover));
}

/// Z-254 (half: nobody resolves a takeover)
#[test]
fn takeover_cannot_be_resolved() {
    let mut desk = desk(json!({}));
    desk.say("hi");
    desk.take_over("ana").expect("free");
    let holder = Some("ana".to_owned());
    assert_eq!(
        desk.resolve(true, "ben"),
        Err(SessionRefusal::TakeoverActive { holder })
    );
    desk.hand_back("ana", None).expect("hers");
    assert_eq!(
        desk.resolve(true, "ben"),
        Err(SessionRefusal::EscalationNotFound)
    );
}

/// Z-90 (half: at once, during a model call, whose answer is not sent), Z-91 (half: an answer that comes later)
#[test]
fn takeover_does_not_wait_for_the_model() {
    let mut desk = desk(json!({}));
    desk.held = vec!["session.model"];
    desk.say("hi");
    desk.take_over("ana").expect("free");
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    assert!(desk.state().turn().is_some(), "the model has not answered");
    desk.receive("hello?");
    desk.held.clear();
    desk.perform_all();
    assert!(desk.sent.is_empty(), "{:?}", desk.sent);
    assert_eq!(desk.suppressed(), ["live_takeover"]);
    // The next message is the person's.
    assert_eq!(desk.takeover_messages(), [TakeoverDirection::UserToHuman]);
    assert_eq!(desk.model_calls.len(), 1);
    let said: Vec<_> = desk.state().memory().map(|m| m.text.as_str()).collect();
    assert_eq!(
        said,
        ["hi", "hello?"],
        "what was not said is not remembered"
    );
}

/// Z-91 (half: texts that are in the outbox are refused when they come to be sent)
#[test]
fn texts_on_their_way_are_withheld() {
    let mut desk = desk(json!({}));
    desk.held = vec!["session.send"];
    desk.say("hi");
    assert!(desk.state().has_deliveries());
    desk.take_over("ana").expect("free");
    desk.hand_back("ana", None).expect("hers");
    desk.held.clear();
    desk.perform_all();
    assert!(desk.sent.is_empty(), "also after the handback");
    assert_eq!(desk.suppressed(), ["live_takeover"]);
    assert!(!desk.state().has_deliveries());
    assert!(
        desk.state().memory().all(|m| m.text != MODEL),
        "it was not said"
    );
}

/// Z-91 (half: texts of tools and replacements by hooks), Z-7 (half: not during a takeover)
#[test]
fn tools_and_hooks_do_not_speak_either() {
    let mut desk = desk(json!({"tools": [{"name": "note", "kind": "record"}],
        "beforeResponse": {"$fn": true}}));
    desk.functions.insert(
        "tools.note".to_owned(),
        Box::new(|_| CodeOutcome {
            side_messages: vec![SideMessage {
                to: "u1".to_owned(),
                text: "by the way".to_owned(),
            }],
            ..value(json!("noted"))
        }),
    );
    let replaces = |_: &_| value(json!({"action": "replace", "reply": "better"}));
    desk.functions
        .insert("beforeResponse".to_owned(), Box::new(replaces));
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: "note".to_owned(),
            args: json!({}),
        }],
        ..ChatAnswer::default()
    }));
    desk.held = vec!["session.tool"];
    desk.say("hi");
    desk.take_over("ana").expect("free");
    desk.held.clear();
    desk.perform_all();
    assert!(desk.sent.is_empty(), "{:?}", desk.sent);
    assert_eq!(desk.suppressed(), ["live_takeover", "live_takeover"]);
}

/// Z-91 (half: a hook that is asked when the takeover begins decides about nothing)
#[test]
fn replacement_that_comes_late_is_not_sent() {
    let mut desk = desk(json!({"beforeResponse": {"$fn": true}}));
    let replaces = |_: &_| value(json!({"action": "replace", "reply": "better"}));
    desk.functions
        .insert("beforeResponse".to_owned(), Box::new(replaces));
    desk.held = vec!["session.code"];
    desk.say("hi");
    desk.take_over("ana").expect("free");
    desk.held.clear();
    desk.perform_all();
    assert!(desk.sent.is_empty(), "{:?}", desk.sent);
    assert_eq!(desk.suppressed(), ["live_takeover"]);
}

/// Z-29 (half: public commands are routed unless they are listed), Z-87 (half: a message that looks like a command)
#[test]
fn commands_of_the_user_go_to_the_person_unless_they_are_listed() {
    let mut desk = desk(json!({"hitl": {"takeover": {"allowedCommands": ["usage"]}}}));
    desk.say("hi");
    desk.take_over("ana").expect("free");
    assert!(desk.say("/help").is_empty());
    assert!(desk.say("/nope").is_empty());
    assert_eq!(desk.takeover_messages().len(), 2);
    assert_eq!(desk.say("/usage").len(), 1, "it is listed");
    assert_eq!(desk.takeover_messages().len(), 2);
    assert!(
        desk.state().memory().any(|m| m.text == "/help"),
        "the person was told so"
    );
}

/// Z-242 (half: a word of consent counts during a takeover, and the person reads it too)
#[test]
fn consent_counts_during_a_takeover() {
    let mut desk = desk(json!({"consent": {"stopKeywords": ["stop"], "startKeywords": ["go"]}}));
    desk.say("hi");
    desk.take_over("ana").expect("free");
    assert!(desk.say("stop").is_empty());
    let consent = desk.state().start().user.consent.expect("said");
    assert!(!consent.proactive);
    assert_eq!(desk.takeover_messages(), [TakeoverDirection::UserToHuman]);
}

/// Z-241 (half: in a takeover messages go to the person whatever the mode is)
#[test]
fn takeover_comes_before_the_mode_of_the_agent() {
    for mode in ["off", "draft_only"] {
        let mut desk = desk(json!({ "agentMode": mode }));
        desk.say("hi");
        let drafts = desk.state().drafts().count();
        desk.take_over("ana").expect("free");
        desk.say("hello?");
        assert_eq!(
            desk.takeover_messages(),
            [TakeoverDirection::UserToHuman],
            "{mode}"
        );
        desk.write_in_takeover("ana", "Ana here.")
            .expect("her floor");
        assert_eq!(desk.sent, ["Ana here."], "{mode}");
        assert_eq!(desk.state().drafts().count(), drafts, "{mode}");
    }
}

/// Z-89 (half: deadlines and decisions wait, and come in order right after the handback)
#[test]
fn what_becomes_due_is_held_in_order() {
    let flow = code(|step, with, _| match step {
        0 => {
            effect(json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"}))
        }
        1 => {
            effect(json!({"type": "interrupt.confirm", "question": "Sure?", "timeoutSeconds": 60}))
        }
        2 => effect(
            json!({"type": "say", "text": format!("sure: {}", super::harness::text_of(with))}),
        ),
        3 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        4 => effect(json!({"type": "say", "text": "decided"})),
        _ => done(),
    });
    let mut desk = TestSession::new(
        json!({"beforeLLM": {"$fn": true},
        "model": {"provider": "scripted", "script": {"answers": []}}}),
        &[("a", flow)],
    );
    route_on_start(&mut desk);
    desk.say("start a");
    desk.take_over("ana").expect("free");
    desk.wait_seconds(61);
    assert_eq!(desk.paused_on(), Some("confirm"), "the deadline waits");
    let escalation = desk.state().attached_escalation().expect("open").id.clone();
    let decision = tandem_record::conversation::EscalationDecision {
        approved: true,
        message: None,
        action_data: None,
        claimed_by: None,
    };
    let escalation = Some(escalation);
    desk.act(
        "ben",
        AdminRequest::Resolve {
            escalation,
            decision,
        },
    )
    .expect("open");
    desk.say("and now?");
    assert_eq!(desk.sent, ["Sure?"]);
    assert!(
        desk.state().required_timers().is_empty(),
        "nothing is due twice"
    );
    desk.hand_back("ana", None).expect("hers");
    assert_eq!(desk.sent, ["Sure?", "sure: false", "decided"]);
    let held = desk.events.iter().find_map(|event| match event {
        Body::LiveTakeoverEnded(ended) => Some(ended.held_items),
        _ => None,
    });
    assert_eq!(held, Some(1), "the decision reached nobody who waited yet");
}

/// Z-89 (half: turns that waited already when the takeover began), Z-235 (half: recorded, and the start of a takeover)
#[test]
fn answer_from_outside_starts_a_takeover() {
    for starts in [true, false] {
        let mut desk = desk(json!({"hitl": {"takeover": {"onExternalReply": starts}}}));
        desk.say("hi");
        let command = SessionCommand::RecordExternalReply {
            message_id: "w-1".into(),
            text: "I am on my way.".to_owned(),
            sent_at: desk.now,
        };
        desk.command(command).expect("recorded");
        let last = desk.state().memory().last().expect("recorded").clone();
        assert_eq!(last.text, "I am on my way.");
        let author = last.author.expect("an author");
        assert_eq!(
            (author.kind.as_str(), author.actor_id.as_str()),
            ("human", "external")
        );
        assert_eq!(desk.state().is_taken_over(), starts);
        if starts {
            let record = desk.state().takeover_escalation().expect("open");
            assert_eq!(record.reason, "external_reply");
            let by = |body: &Body| {
                matches!(
                    body,
                    Body::LiveTakeoverStarted {
                        by: TakeoverOrigin::ExternalReply,
                        ..
                    }
                )
            };
            assert_eq!(desk.count(by), 1);
            // Nobody of the desk has it: an admin may.
            desk.take_over("ana").expect("nobody holds it");
        }
    }
}

/// Z-235 (half: texts that this host sent, known by their ids, are not recorded and start nothing)
#[test]
fn own_texts_that_a_network_reports_are_no_answers_from_outside() {
    let mut desk = desk(json!({"hitl": {"takeover": {"onExternalReply": true}}}));
    desk.sent_messages.push_back(SentMessage {
        provider_message_id: Some("w-1".to_owned()),
        further_ids: vec!["w-2".to_owned()],
        ..SentMessage::default()
    });
    assert_eq!(desk.say("hi"), [MODEL]);
    let reported = |id: &str, desk: &TestSession| SessionCommand::RecordExternalReply {
        message_id: id.into(),
        text: MODEL.to_owned(),
        sent_at: desk.now,
    };
    let events = desk.events.len();
    for id in ["w-1", "w-2", "w-1"] {
        let command = reported(id, &desk);
        assert_eq!(desk.command(command), Ok(SessionReply::Done));
    }
    assert_eq!(desk.events.len(), events);
    assert!(!desk.state().is_taken_over());
    // The same words of somebody else are an answer from outside.
    let command = reported("w-3", &desk);
    desk.command(command).expect("recorded");
    assert!(desk.state().is_taken_over());
}

/// Z-237 (half: the model is told who had the floor, from when to when, with the note)
#[test]
fn model_is_told_of_the_stretch_it_missed() {
    let mut desk = desk(json!({}));
    desk.say("hi");
    let from = desk.now;
    desk.take_over("ana").expect("free");
    desk.wait_seconds(60);
    desk.write_in_takeover("ben", "Ben here.").expect("allowed");
    desk.hand_back("ana", Some("She is calm now."))
        .expect("hers");
    let note = desk.state().memory().last().expect("an entry").clone();
    assert_eq!(note.role, MessageRole::Note);
    for part in [
        "ben",
        &from.rfc3339(),
        &desk.now.rfc3339(),
        "She is calm now.",
    ] {
        assert!(note.text.contains(part), "{part} is not in {}", note.text);
    }
    desk.say("thanks");
    let shown = format!("{:?}", desk.model_calls.last());
    assert!(shown.contains("She is calm now."), "{shown}");
}

/// Z-237 (half: nobody would answer, so the floor is not given back)
#[test]
fn handback_to_an_agent_without_a_model_is_refused() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.say("hi");
    desk.take_over("ana").expect("free");
    assert_eq!(
        desk.hand_back("ana", None),
        Err(SessionRefusal::AgentUnavailable)
    );
    assert!(desk.state().is_taken_over());
}
