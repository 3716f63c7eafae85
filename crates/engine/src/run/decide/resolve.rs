//! Answers to interrupts. One decision closes an interrupt; every later one is refused with the
//! name of the decider. An invalid answer leaves the interrupt open.

use super::answers::{resolve_clarification, resolve_open_interrupt};
use super::approval::resolve_approval;
use super::conversation;
use super::held_decision;
use super::overdue::expired_question;
use crate::definition::Problem;
use crate::node::Kind;
use crate::run::draft::DecisionDraft;
use crate::run::refusal::Refusal;
use crate::run::state::Phase;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{
    DeciderSnapshot, Event, InterruptId, NodeId, NodeStatus, Principal, Reply, Resolution, Seq,
    Vote,
};

/// An answer and its author.
pub(super) struct Answer {
    pub(super) value: Value,
    pub(super) by: Option<Principal>,
    pub(super) decider: DeciderSnapshot,
    /// The external event that answers, if there is one.
    pub(super) event_id: Option<String>,
}

impl Answer {
    pub(super) fn of(value: Value, by: Option<Principal>) -> Self {
        Self {
            value,
            by,
            decider: DeciderSnapshot::default(),
            event_id: None,
        }
    }

    /// How this answer closes the interrupt.
    pub(super) fn closing(&self, outcome: &'static str) -> Closing {
        Closing {
            by: self.by.clone(),
            decider: self.decider.clone(),
            event_id: self.event_id.clone(),
            ..Closing::of(outcome, self.value.clone())
        }
    }
}

/// How an interrupt is closed.
pub(super) struct Closing {
    pub(super) outcome: &'static str,
    pub(super) value: Value,
    pub(super) reason: Option<&'static str>,
    pub(super) by: Option<Principal>,
    pub(super) decider: DeciderSnapshot,
    pub(super) event_id: Option<String>,
}

impl Closing {
    pub(super) fn of(outcome: &'static str, value: Value) -> Self {
        Self {
            outcome,
            value,
            reason: None,
            by: None,
            decider: DeciderSnapshot::default(),
            event_id: None,
        }
    }
}

pub(super) fn resolve(
    draft: &mut DecisionDraft<'_>,
    node: &NodeId,
    interrupt: Option<&InterruptId>,
    answer: Answer,
) -> Result<Reply, Refusal> {
    let ix = match open_question(draft, node, interrupt) {
        Err(Refusal::AlreadyResolved(_)) if is_late_exchange(draft, node, &answer.value) => {
            return invalid("/operation", "the conversation is closed");
        }
        found => found?,
    };
    if let Some(closed) = expired_question(draft, ix) {
        return Err(Refusal::AlreadyResolved(closed));
    }
    let def = Arc::clone(&draft.run.def);
    let open = draft.run.state.nodes[ix].suspended.as_ref();
    let interrupt = &open.expect("open_question found it").interrupt;
    let (id, kind) = (interrupt.id.clone(), interrupt.kind.clone());
    let closed = match &def.nodes[ix].kind {
        Kind::ApprovalGate(gate) => resolve_approval(draft, ix, gate, answer)?,
        Kind::ClarificationGate(gate) => resolve_clarification(draft, ix, gate, &answer)?,
        Kind::GenericInterrupt(open) => resolve_open_interrupt(draft, ix, open, &answer)?,
        Kind::ConversationGate(_) | Kind::Dispatch(_) => match draft.gate(&def, ix) {
            Some(gate) => conversation::resume(draft, ix, &gate, &answer)?,
            None => held_decision::resolve_at_dispatch(draft, ix, answer)?,
        },
        Kind::Supervisor(_) | Kind::MockAgent(_) => {
            held_decision::resolve_low_confidence(draft, ix, answer)?
        }
        kind => unreachable!("{kind:?} never asks"),
    };
    let votes = closed.votes;
    draft.advance();
    Ok(Reply::Resolved {
        interrupt: id,
        node: node.clone(),
        kind,
        outcome: closed.outcome,
        votes,
        status: draft.run.status(),
    })
}

fn is_late_exchange(draft: &DecisionDraft<'_>, node: &NodeId, value: &Value) -> bool {
    let kind = draft
        .run
        .def
        .index(node)
        .map(|ix| &draft.run.def.nodes[ix].kind);
    matches!(kind, Some(Kind::ConversationGate(_))) && conversation::is_exchange(value)
}

/// The result of an answer; no outcome while the interrupt stays open.
pub(super) struct AnswerOutcome {
    pub(super) outcome: Option<String>,
    pub(super) votes: Vec<Vote>,
}

/// The node whose own interrupt is open, or why there is none.
pub(super) fn open_question(
    draft: &DecisionDraft<'_>,
    node: &NodeId,
    interrupt: Option<&InterruptId>,
) -> Result<usize, Refusal> {
    let state = &draft.run.state;
    let ix = draft.run.def.index(node);
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

/// Records that an interrupt was closed, with the event that opened it as cause. The node runs
/// again afterwards.
pub(super) fn close(draft: &mut DecisionDraft<'_>, ix: usize, closing: Closing) -> Seq {
    let node = draft.run.def.nodes[ix].id.clone();
    let open = draft.run.state.nodes[ix].suspended.as_ref();
    let open = open.expect("only open questions are closed");
    let opened = open.since;
    let (id, kind) = (open.interrupt.id.clone(), open.interrupt.kind.clone());
    let resolution = Resolution {
        interrupt: id.clone(),
        kind,
        value: closing.value.clone(),
        by: closing.by,
        decider: closing.decider,
        event_id: closing.event_id,
        outcome: Some(closing.outcome.to_owned()),
        reason: closing.reason.map(str::to_owned),
    };
    let event = Event::InterruptResolved {
        node: node.clone(),
        resolution: Box::new(resolution),
    };
    let cause = draft.emit(event, Some(opened));
    let event = Event::NodeResumed {
        node,
        interrupt: Some(id),
        value: Some(closing.value),
    };
    draft.emit(event, Some(cause))
}
