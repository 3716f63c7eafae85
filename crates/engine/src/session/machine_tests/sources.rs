//! What a response comes from: texts of a waiting flow belong to the flow, also those that do not resume it.

use super::escalations::waiting_desk_with;
use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect, value};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use tandem_record::conversation::{CandidateOrigin, ResponseSource, SessionEventBody as Body};

/// Origins and sources of the candidates so far.
fn candidates(desk: &TestSession) -> Vec<(CandidateOrigin, ResponseSource)> {
    let prepared = desk.events.iter().filter_map(|event| match event {
        Body::ResponsePrepared {
            candidate, source, ..
        } => Some((candidate.origin, *source)),
        _ => None,
    });
    prepared.collect()
}

/// Notes what `onResponse` is told.
fn reports(desk: &mut TestSession) -> Rc<RefCell<Vec<(Value, Value)>>> {
    let told = Rc::new(RefCell::new(Vec::new()));
    let notes = Rc::clone(&told);
    desk.functions.insert(
        "onResponse".to_owned(),
        Box::new(move |call| {
            let report = (call.args[0].clone(), call.args[1].clone());
            notes.borrow_mut().push(report);
            value(Value::Null)
        }),
    );
    told
}

/// Z-52 (half: the ack while a flow waits), Z-130 (half: the ack while a flow waits),
/// Z-132 (half: the ack while a flow waits)
#[test]
fn ack_while_a_flow_waits_is_a_response_of_the_flow() {
    let mut desk = waiting_desk_with(json!({"onResponse": {"$fn": true},
        "hitl": {"asyncPendingPolicy": {"behavior": "ack", "ackText": "Soon."}}}));
    let told = reports(&mut desk);
    assert_eq!(desk.say("any news?"), ["Soon."]);
    let last = candidates(&desk).pop();
    assert_eq!(last, Some((CandidateOrigin::Ack, ResponseSource::Flow)));
    let told = told.borrow();
    let (reply, meta) = told.last().expect("it is reported");
    assert_eq!(*reply, json!({"reply": "Soon.", "replies": ["Soon."]}));
    assert_eq!(meta["source"], "flow");
    assert_eq!(meta["flowId"], "refund");
    assert_eq!(meta["hitlState"], "pending_admin_resolution");
    assert!(meta["escalationId"].is_string());
    assert_eq!(meta["policy"], json!({"beforeLLMAction": "continue"}));
    let memory: Vec<_> = desk.state().memory().map(|m| m.text.as_str()).collect();
    assert_eq!(memory.last(), Some(&"Soon."));
}

/// nothing was inferred, and no flow is there.
/// Z-130 (half: an ack without a flow), Z-132 (half: an ack without a flow)
#[test]
fn ack_without_a_flow_is_a_short_circuit() {
    let config = json!({"hitl": {"humanKeyword": "human", "humanMode": "async_resolution",
        "escalationDefaults": {"autoAckText": "A colleague comes."}}});
    let mut desk = TestSession::new(config, &[]);
    desk.say("human");
    let expected = (CandidateOrigin::Ack, ResponseSource::ShortCircuit);
    assert_eq!(candidates(&desk), [expected]);
}

/// Z-52 (half: reminders), Z-132 (half: reminders), Z-242 (half: their source)
#[test]
fn reminder_and_repeated_question_are_responses_of_the_flow() {
    let asking = code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?",
            "timeoutSeconds": 600, "reminders": [{"afterSeconds": 60, "text": "Well?"}]})),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "onResponse": {"$fn": true}});
    let mut desk = TestSession::new(config, &[("asking", asking)]);
    route_on_start(&mut desk);
    desk.say("start asking");
    let told = reports(&mut desk);
    desk.wait_seconds(60);
    desk.say("purple");
    let of_flow = (CandidateOrigin::Confirm, ResponseSource::Flow);
    assert_eq!(candidates(&desk), [of_flow; 3]);
    let told = told.borrow();
    let replies: Vec<_> = told.iter().map(|(reply, _)| &reply["reply"]).collect();
    assert_eq!(replies, ["Well?", "Sure?"]);
    assert!(told.iter().all(|(_, meta)| meta["flowId"] == "asking"));
}

/// What the events of one name tell of their response: text or candidate, flow, policy, state.
fn response_events(desk: &TestSession, is_it: fn(&Body) -> bool) -> Vec<(Option<String>, Value)> {
    let events = desk.log.iter().filter(|event| is_it(&event.event.body));
    let told = events.map(|event| {
        let flow = event.event.flow.as_ref().map(|f| f.flow_id.to_string());
        (flow, json!(event.event.response))
    });
    told.collect()
}

/// Z-136 (half: what is sent after the turn is told of the state after the turn, and of its own flow)
#[test]
fn events_of_a_response_tell_its_source_policy_and_state() {
    let booking = code(|step, _, _| match step {
        0 => effect(json!({"type": "say", "text": "Hello."})),
        1 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        2 => effect(json!({"type": "say", "text": "Booked."})),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "beforeResponse": {"$fn": true}});
    let mut desk = TestSession::new(config, &[("booking", booking)]);
    route_on_start(&mut desk);
    desk.functions.insert(
        "beforeResponse".to_owned(),
        Box::new(|call| match call.args[0]["candidate"]["text"].as_str() {
            Some("Hello.") => value(json!({"action": "replace", "reply": "Hello!"})),
            _ => value(Value::Null),
        }),
    );
    desk.held.push("session.send");
    desk.say("start booking");
    desk.say("yes");
    desk.held.clear();
    desk.perform_all();
    let meta = |response: &str, state: &str, before: &str| {
        let meta = json!({"source": "flow", "beforeLlmAction": before,
            "beforeResponseAction": response, "hitlState": state});
        (Some("booking".to_owned()), meta)
    };
    let expected = [
        meta("replace", "pending_confirm", "route_flow"),
        meta("continue", "pending_confirm", "route_flow"),
        meta("continue", "resolved", "continue"),
    ];
    for is_it in [
        (|e| matches!(e, Body::ResponseSent { .. })) as fn(&Body) -> bool,
        |e| matches!(e, Body::ResponsePersisted { .. }),
    ] {
        assert_eq!(response_events(&desk, is_it), expected);
    }
    let prepared = response_events(&desk, |e| matches!(e, Body::ResponsePrepared { .. }));
    let states: Vec<_> = prepared.iter().map(|(_, m)| &m["hitlState"]).collect();
    assert_eq!(states, ["none", "pending_confirm", "resolved"]);
    assert!(
        prepared
            .iter()
            .all(|(_, m)| m["beforeResponseAction"].is_null())
    );
}

/// a decided escalation is named although it is closed.
/// Z-131 (half: the escalation that was decided), Z-133 (half: the escalation that was decided),
/// Z-136 (half: the escalation that was decided)
#[test]
fn response_to_a_decision_names_the_escalation() {
    let mut desk = waiting_desk_with(json!({"onResponse": {"$fn": true}}));
    let reported = reports(&mut desk);
    let id = desk.state().escalations().next().expect("one").id.clone();
    desk.resolve(true, "ana").expect("open");
    let sent = response_events(&desk, |e| matches!(e, Body::ResponseSent { .. }));
    let (flow, meta) = sent.last().expect("it was sent");
    assert_eq!(flow.as_deref(), Some("refund"));
    assert_eq!(
        (&meta["hitlState"], &meta["escalationId"]),
        (&json!("resolved"), &json!(id))
    );
    let reported = reported.borrow();
    let (_, meta) = reported.last().expect("it is reported");
    assert_eq!(
        (&meta["hitlState"], &meta["escalationId"]),
        (&json!("resolved"), &json!(id))
    );
}

/// Z-136 (half: a command's answer is no response of the model or a flow)
#[test]
fn answer_of_a_command_has_no_source() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.say("/usage");
    let sent = response_events(&desk, |e| matches!(e, Body::ResponseSent { .. }));
    assert_eq!(sent, [(None, Value::Null)]);
}

/// §2.3, Z-129 (half: the context of a report is that of its turn, whatever goes on meanwhile)
#[test]
fn report_is_called_with_the_context_of_its_turn() {
    let config = json!({"onResponse": {"$fn": true},
        "outputSchema": {"type": "object", "required": ["reply"]}});
    let mut desk = TestSession::new(config, &[]);
    desk.answers
        .push_back(Ok(tandem_record::conversation::ChatAnswer {
            structured: Some(json!({"reply": "Hello."})),
            ..Default::default()
        }));
    desk.held.push("session.code");
    desk.say("first");
    desk.held.push("session.model");
    desk.say("second");
    let report = desk.held_effect();
    let context = desk.state().work_context(&report);
    assert_eq!(context["inbound"]["body"], "first");
    assert_eq!(context["turnId"], json!(desk.state().turn_id(1)));
    assert_eq!(context["session"]["messageCount"], 3);
    let other = desk.state().work_context(&"other".into());
    assert_eq!(other["inbound"]["body"], "second");
}

/// Z-124 (half: a cancelled text is kept, and was never said)
#[test]
fn ledger_keeps_a_cancelled_text() {
    let config = json!({"beforeResponse": {"$fn": true}});
    let mut desk = TestSession::new(config, &[]);
    desk.functions.insert(
        "beforeResponse".to_owned(),
        Box::new(|_| value(json!({"action": "cancel", "reason": "secret"}))),
    );
    desk.say("hi");
    let mut ledger = tandem_record::conversation::SessionLedger::default();
    desk.log.iter().for_each(|event| ledger.evolve(event));
    let [canceled] = ledger.outbox.as_slice() else {
        panic!("{:?}", ledger.outbox);
    };
    assert_eq!(canceled.text, "model speaks");
    assert_eq!(
        canceled.status,
        tandem_record::conversation::IntentStatus::Canceled
    );
    assert_eq!(canceled.reason.as_deref(), Some("secret"));
    assert_eq!(ledger.messages.len(), 1, "only what the user said");
    assert_eq!(ledger.sent_by(1, "u1").count(), 0);
}
