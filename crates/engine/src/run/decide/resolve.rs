//! Answering. One decision closes a question; every later one learns who made it. An answer that
//! does not fit leaves the question open.

use crate::definition::{Problem, schema};
use crate::expression::equal;
use crate::graph::binding::RunScope;
use crate::node::{ApprovalGate, ClarificationGate, Kind, OpenInterrupt};
use crate::run::finish::Done;
use crate::run::refusal::Refusal;
use crate::run::start::Entry;
use crate::run::state::Phase;
use crate::run::turn::Turn;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{
    Decision, ErrorInfo, Event, InterruptId, NodeId, NodeStatus, Object, Principal, Reply,
    Resolution, Seq, Vote,
};

/// An answer and who gives it.
pub(super) struct Answer {
    pub(super) value: Value,
    pub(super) by: Option<Principal>,
    pub(super) by_link: bool,
}

pub(super) fn resolve(
    turn: &mut Turn<'_>,
    node: &NodeId,
    interrupt: Option<&InterruptId>,
    answer: Answer,
) -> Result<Reply, Refusal> {
    let ix = open_question(turn, node, interrupt)?;
    let def = Arc::clone(&turn.run.def);
    let open = turn.run.state.nodes[ix].suspended.as_ref();
    let interrupt = &open.expect("open_question found it").interrupt;
    let (id, kind) = (interrupt.id.clone(), interrupt.kind.clone());
    let closed = match &def.nodes[ix].kind {
        Kind::ApprovalGate(gate) => approval(turn, ix, gate, answer)?,
        Kind::ClarificationGate(gate) => clarification(turn, ix, gate, &answer)?,
        Kind::OpenInterrupt(open) => other(turn, ix, open, &answer)?,
        kind => unreachable!("{kind:?} never asks"),
    };
    let votes = closed.votes;
    turn.advance();
    Ok(Reply::Resolved {
        interrupt: id,
        node: node.clone(),
        kind,
        outcome: closed.outcome,
        votes,
        status: turn.run.status(),
    })
}

/// What became of the question; no outcome while it stays open.
struct Closed {
    outcome: Option<String>,
    votes: Vec<Vote>,
}

/// The node whose own question is open, or why there is none.
fn open_question(
    turn: &Turn<'_>,
    node: &NodeId,
    interrupt: Option<&InterruptId>,
) -> Result<usize, Refusal> {
    let state = &turn.run.state;
    let ix = turn.run.def.index(node);
    let open = ix.filter(|ix| {
        let node = &state.nodes[*ix];
        let own = node.suspended.as_ref().filter(|s| s.mirrors.is_none());
        node.status == NodeStatus::Suspended
            && own.is_some_and(|s| interrupt.is_none_or(|wanted| *wanted == s.interrupt.id))
    });
    if let Some(ix) = open.filter(|_| matches!(state.phase, Phase::Running | Phase::Paused)) {
        return Ok(ix);
    }
    let mut closed = state.closed.iter().rev().filter(|c| c.node == *node);
    match closed.find(|c| interrupt.is_none_or(|wanted| *wanted == c.interrupt)) {
        Some(closed) if closed.outcome == "cancelled" => Err(Refusal::InterruptGone),
        Some(closed) => Err(Refusal::AlreadyResolved(closed.clone())),
        None => Err(Refusal::InterruptNotFound { node: node.clone() }),
    }
}

fn invalid<T>(path: &str, message: impl Into<String>) -> Result<T, Refusal> {
    let path = format!("/resumeValue{path}");
    Err(Refusal::Invalid(vec![Problem::new(path, message)]))
}

/// Reads an approval answer, in today's words or an older client's.
fn read_decision(gate: &ApprovalGate, answer: &Answer) -> Result<Decision, Refusal> {
    let Value::Object(fields) = &answer.value else {
        return invalid("", "must be an object with an action");
    };
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let feedback = text("feedback").or_else(|| text("comment"));
    let mut refine = fields.get("refineFeedback").cloned();
    let action = match (text("action"), text("decision").as_deref()) {
        (Some(action), _) if action == "edit" => "edit-accept".to_owned(),
        (Some(action), _) => action,
        (None, Some("approved")) => "accept".to_owned(),
        (None, Some("rejected")) if feedback.is_some() => {
            refine = Some(json!({"scope": "whole", "text": feedback}));
            "refine".to_owned()
        }
        (None, Some("rejected")) => "reject".to_owned(),
        (None, _) => return invalid("/action", "an action is required"),
    };
    if !gate.actions.contains(&action) {
        let offered = gate.actions.join(", ");
        return invalid(
            "/action",
            format!("{action:?} is not offered; choose one of {offered}"),
        );
    }
    if action == "refine" {
        let scope = refine
            .as_ref()
            .and_then(|r| r.get("scope"))
            .and_then(Value::as_str);
        if !matches!(scope, Some("whole" | "section" | "items")) {
            return invalid("/refineFeedback/scope", "must be whole, section or items");
        }
    }
    let edited = fields.get("editedArtifactData").cloned();
    if action == "edit-accept" && edited.is_none() {
        return invalid("/editedArtifactData", "the edited artifact is required");
    }
    Ok(Decision {
        refine: refine.filter(|_| action == "refine"),
        edited: edited.filter(|_| action == "edit-accept"),
        action,
        by: answer.by.clone(),
        voter: text("voter"),
        feedback,
    })
}

fn approval(
    turn: &mut Turn<'_>,
    ix: usize,
    gate: &ApprovalGate,
    answer: Answer,
) -> Result<Closed, Refusal> {
    if gate.auth_required && answer.by_link {
        return Err(Refusal::ElevationRequired);
    }
    let decision = read_decision(gate, &answer)?;
    let named = decision.voter.clone();
    let voice = named.or_else(|| decision.by.as_ref().map(ToString::to_string));
    if !gate.approvers.is_empty() {
        let by = voice.unwrap_or_default();
        if !gate.approvers.contains(&by) {
            return Err(Refusal::NotEligible { by });
        }
    }
    if decision.action == "ask" {
        return question_back(turn, ix, &answer);
    }
    let redo = match decision.action.as_str() {
        "refine" if turn.run.state.phase == Phase::Paused => {
            return invalid(
                "/action",
                "the run is paused; resume it before asking for changes",
            );
        }
        "refine" => Some(producer(turn, ix)?),
        _ => None,
    };
    let node = turn.run.def.nodes[ix].id.clone();
    let cause = turn.run.state.nodes[ix].last;
    let redo_id = redo.map(|r| turn.run.def.nodes[r].id.clone());
    let received = turn.emit(
        Event::ApprovalReceived {
            node,
            decision: Box::new(decision.clone()),
            redo: redo_id,
        },
        cause,
    );
    let votes = turn.run.state.nodes[ix]
        .suspended
        .as_ref()
        .map(|s| s.votes.clone())
        .unwrap_or_default();
    let count = |action: &str| votes.iter().filter(|v| v.action == action).count();
    let rejections = if gate.majority {
        gate.required / 2 + 1
    } else {
        1
    };
    let decided = match decision.action.as_str() {
        "accept" => count("accept") + count("edit-accept") >= gate.required as usize,
        "reject" => count("reject") >= rejections as usize,
        _ => true,
    };
    if !decided {
        return Ok(Closed {
            outcome: None,
            votes,
        });
    }
    let outcome = match decision.action.as_str() {
        "reject" => "rejected",
        "refine" => "changes-requested",
        _ => "accepted",
    };
    let resumed = close(turn, ix, answer.value, outcome, None, answer.by, received);
    match (decision.action.as_str(), redo) {
        ("reject", _) => rejected(turn, ix, outputs(&decision), resumed),
        (_, Some(producer)) => loop_back(turn, ix, producer, gate, resumed),
        _ => turn.complete_node(ix, Done::with(outputs(&decision)), resumed),
    }
    Ok(Closed {
        outcome: Some(outcome.to_owned()),
        votes,
    })
}

fn question_back(turn: &mut Turn<'_>, ix: usize, answer: &Answer) -> Result<Closed, Refusal> {
    let fields = answer.value.as_object();
    let keys = ["question", "text", "feedback"];
    let text = keys.iter().find_map(|k| fields?.get(*k)?.as_str());
    let Some(question) = text.filter(|t| !t.is_empty()) else {
        return invalid("/question", "what do you want to know?");
    };
    let open = turn.run.state.nodes[ix].suspended.as_ref();
    let (interrupt, votes) = open
        .map(|s| (s.interrupt.id.clone(), s.votes.clone()))
        .expect("the question is open");
    let event = Event::ApprovalQuestioned {
        node: turn.run.def.nodes[ix].id.clone(),
        interrupt,
        question: question.to_owned(),
        by: answer.by.clone(),
    };
    let cause = turn.run.state.nodes[ix].last;
    turn.emit(event, cause);
    Ok(Closed {
        outcome: None,
        votes,
    })
}

fn outputs(decision: &Decision) -> Object {
    let mut outputs = Object::from_iter([("action".to_owned(), json!(decision.action))]);
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            outputs.insert(key.to_owned(), value);
        }
    };
    set("decidedBy", decision.by.as_ref().map(|by| json!(by)));
    set(
        "feedback",
        decision.feedback.as_ref().map(|text| json!(text)),
    );
    set("artifactData", decision.edited.clone());
    outputs
}

/// Records the end of a question; the node runs again afterwards.
fn close(
    turn: &mut Turn<'_>,
    ix: usize,
    value: Value,
    outcome: &str,
    reason: Option<&str>,
    by: Option<Principal>,
    cause: Seq,
) -> Seq {
    let node = turn.run.def.nodes[ix].id.clone();
    let open = turn.run.state.nodes[ix].suspended.as_ref();
    let interrupt = &open.expect("only open questions are closed").interrupt;
    let (id, kind) = (interrupt.id.clone(), interrupt.kind.clone());
    let resolution = Resolution {
        interrupt: id.clone(),
        kind,
        value: value.clone(),
        by,
        outcome: Some(outcome.to_owned()),
        reason: reason.map(str::to_owned),
    };
    let event = Event::InterruptResolved {
        node: node.clone(),
        resolution: Box::new(resolution),
    };
    let cause = turn.emit(event, Some(cause));
    let event = Event::NodeResumed {
        node,
        interrupt: Some(id),
        value: Some(value),
    };
    turn.emit(event, Some(cause))
}

/// A rejection goes where its author drew an edge for it, or fails the node.
fn rejected(turn: &mut Turn<'_>, ix: usize, outputs: Object, cause: Seq) {
    let drawn = turn.run.def.nodes[ix].outgoing.iter().any(|&e| {
        let condition = turn.run.def.edges[e].condition.as_ref();
        condition.is_some_and(|c| c.holds(&outputs, &RunScope::with_output(&turn.run, &outputs)))
    });
    if drawn {
        turn.complete_node(ix, Done::with(outputs), cause);
    } else {
        let error = ErrorInfo::new("interrupt_rejected", "the approval was refused");
        turn.fail_node(ix, error, Some(cause), None);
    }
}

/// The node whose work is under review: what feeds the gate.
fn producer(turn: &Turn<'_>, ix: usize) -> Result<usize, Refusal> {
    let incoming = turn.run.def.nodes[ix].incoming.iter();
    let mut sources = incoming.map(|e| turn.run.def.edges[*e].source);
    let done = sources.find(|s| turn.run.state.nodes[*s].status == NodeStatus::Completed);
    match done {
        Some(source) => Ok(source),
        None => invalid("/action", "no node before this one could make the changes"),
    }
}

/// Changes were asked for: the producer works again and the gate asks again, a bounded number of
/// times.
fn loop_back(turn: &mut Turn<'_>, ix: usize, producer: usize, gate: &ApprovalGate, cause: Seq) {
    let node = turn.run.def.nodes[ix].id.clone();
    let closed = turn.run.state.closed.iter();
    let rounds = closed
        .filter(|c| c.node == node && c.outcome == "changes-requested")
        .count();
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    let limit = gate
        .max_loopbacks
        .unwrap_or_else(|| turn.run.loopback_limit());
    if rounds > limit {
        let event = Event::LoopbackLimitReached {
            node,
            iterations: rounds,
            limit,
        };
        let cause = turn.emit(event, Some(cause));
        let message = format!("changes were asked for more than {limit} times");
        let error = ErrorInfo::new("loopback_limit_exceeded", message);
        turn.fail_node(ix, error, Some(cause), None);
        return;
    }
    let entry = Entry {
        resets: vec![ix],
        ..Entry::default()
    };
    turn.start_node(producer, entry);
}

fn clarification(
    turn: &mut Turn<'_>,
    ix: usize,
    gate: &ClarificationGate,
    answer: &Answer,
) -> Result<Closed, Refusal> {
    let answers = read_answers(&answer.value)?;
    let mut problems = Vec::new();
    for question in &gate.questions {
        let path = format!("/resumeValue/answers/{}", question.id);
        match (answers.get(&question.id), &question.schema) {
            (None, _) => problems.push(Problem::new(path, "an answer is missing")),
            (Some(value), Some(schema)) => problems.extend(schema::problems(schema, value, &path)),
            (Some(value), None) if !value.is_string() => {
                problems.push(Problem::new(path, "the answer must be a text"));
            }
            (Some(_), None) => {}
        }
    }
    let known = |id: &String| gate.questions.iter().any(|q| q.id == *id);
    for id in answers.keys().filter(|id| !known(id)) {
        let path = format!("/resumeValue/answers/{id}");
        problems.push(Problem::new(path, "nobody asked this"));
    }
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    let event = Event::ClarificationResolved {
        node: turn.run.def.nodes[ix].id.clone(),
        answers: answers.clone(),
        by: answer.by.clone(),
    };
    let cause = turn.emit(event, turn.run.state.nodes[ix].last);
    let value = json!({"answers": answers});
    let resumed = close(turn, ix, value, "answered", None, answer.by.clone(), cause);
    let outputs = Object::from_iter([("answers".to_owned(), json!(answers))]);
    turn.complete_node(ix, Done::with(outputs), resumed);
    Ok(Closed {
        outcome: Some("answered".to_owned()),
        votes: Vec::new(),
    })
}

/// Both forms clients send: an object by question id, or a list of id and answer.
fn read_answers(value: &Value) -> Result<Object, Refusal> {
    match value.get("answers") {
        Some(Value::Object(answers)) => Ok(answers.clone()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                let id = item.get("id").and_then(Value::as_str)?.to_owned();
                Some((id, item.get("answer")?.clone()))
            })
            .collect::<Option<Object>>()
            .map_or_else(|| invalid("/answers", "each entry needs id and answer"), Ok),
        _ => invalid("/answers", "answers are required"),
    }
}

fn other(
    turn: &mut Turn<'_>,
    ix: usize,
    open: &OpenInterrupt,
    answer: &Answer,
) -> Result<Closed, Refusal> {
    if open.kind == "external-event" {
        let wanted = open.data.get("correlation").and_then(Value::as_object);
        let inner = answer.value.get("eventPayload");
        let fits = |key: &str, value: &Value| {
            let found = answer.value.get(key).or_else(|| inner?.get(key));
            found.is_some_and(|found| equal(found, value))
        };
        let off = wanted
            .into_iter()
            .flatten()
            .filter(|(key, value)| !fits(key, value));
        let keys: Vec<String> = off.map(|(key, _)| key.clone()).collect();
        if !keys.is_empty() {
            return Err(Refusal::CorrelationMismatch { keys });
        }
    }
    if let Some(schema) = &open.schema {
        let problems = schema::problems(schema, &answer.value, "/resumeValue");
        if !problems.is_empty() {
            return Err(Refusal::Invalid(problems));
        }
    }
    let cause = turn.run.state.nodes[ix].last.unwrap_or(Seq(0));
    let by = answer.by.clone();
    let resumed = close(turn, ix, answer.value.clone(), "resolved", None, by, cause);
    let outputs = match &answer.value {
        Value::Object(fields) => fields.clone(),
        value => Object::from_iter([("output".to_owned(), value.clone())]),
    };
    turn.complete_node(ix, Done::with(outputs), resumed);
    Ok(Closed {
        outcome: Some("resolved".to_owned()),
        votes: Vec::new(),
    })
}

/// A question's time is up. Silence never approves.
pub(super) fn deadline(turn: &mut Turn<'_>, node: &NodeId) -> bool {
    let Ok(ix) = open_question(turn, node, None) else {
        return false;
    };
    let state = &turn.run.state.nodes[ix];
    let open = state.suspended.as_ref().expect("open_question found it");
    let due = open
        .interrupt
        .timeout_ms
        .map(|ms| open.interrupt.requested_at.plus_ms(ms));
    if due.is_none_or(|due| turn.now < due) {
        return false;
    }
    let cause = state.last.unwrap_or(Seq(0));
    let approval = matches!(turn.run.def.nodes[ix].kind, Kind::ApprovalGate(_));
    let cause = if approval {
        let decision = Decision {
            action: "timeout".to_owned(),
            by: None,
            voter: None,
            feedback: None,
            refine: None,
            edited: None,
        };
        let event = Event::ApprovalReceived {
            node: node.clone(),
            decision: Box::new(decision),
            redo: None,
        };
        turn.emit(event, Some(cause))
    } else {
        cause
    };
    let resumed = close(
        turn,
        ix,
        Value::Null,
        "rejected",
        Some("timeout"),
        None,
        cause,
    );
    if approval {
        let outputs = Object::from_iter([
            ("action".to_owned(), json!("reject")),
            ("reason".to_owned(), json!("timeout")),
        ]);
        rejected(turn, ix, outputs, resumed);
    } else {
        let error = ErrorInfo::new("interrupt_timeout", "nobody answered in time");
        turn.fail_node(ix, error, Some(resumed), None);
    }
    true
}
