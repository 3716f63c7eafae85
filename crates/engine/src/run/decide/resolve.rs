//! Answering. One decision closes a question; every later one learns who made it. An answer that
//! does not fit leaves the question open.

use super::answers::{clarification, other};
use super::approval::{approval, rejected};
use super::held;
use crate::definition::Problem;
use crate::node::Kind;
use crate::run::refusal::Refusal;
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
        Kind::Dispatch(_) => held::dispatch(turn, ix, answer)?,
        Kind::Supervisor(_) | Kind::MockAgent(_) => held::unsure(turn, ix, answer)?,
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
pub(super) struct Closed {
    pub(super) outcome: Option<String>,
    pub(super) votes: Vec<Vote>,
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

pub(super) fn invalid<T>(path: &str, message: impl Into<String>) -> Result<T, Refusal> {
    let path = format!("/resumeValue{path}");
    Err(Refusal::Invalid(vec![Problem::new(path, message)]))
}

/// Records the end of a question; the node runs again afterwards.
pub(super) fn close(
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
