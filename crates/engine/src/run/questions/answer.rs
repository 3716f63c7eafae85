//! An answer to an interrupt, and how it closes the interrupt.

use super::answers::{resolve_clarification, resolve_open_interrupt};
use super::approval::resolve_approval;
use super::conversation;
use crate::definition::Problem;
use crate::node::Kind;
use crate::run::agents::{resolve_at_dispatch, resolve_low_confidence};
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::refusal::Refusal;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{
    DeciderSnapshot, Event, InterruptId, NodeId, NodeStatus, Principal, Resolution, Seq, Vote,
};

/// An answer and its author.
pub(in crate::run) struct Answer {
    pub(in crate::run) value: Value,
    pub(in crate::run) by: Option<Principal>,
    pub(in crate::run) decider: DeciderSnapshot,
    /// The external event that answers, if there is one.
    pub(in crate::run) event_id: Option<String>,
}

impl Answer {
    pub(in crate::run) fn of(value: Value, by: Option<Principal>) -> Self {
        Self {
            value,
            by,
            decider: DeciderSnapshot::default(),
            event_id: None,
        }
    }

    /// How this answer closes the interrupt.
    pub(in crate::run) fn closing(&self, outcome: &'static str) -> Closing {
        Closing {
            by: self.by.clone(),
            decider: self.decider.clone(),
            event_id: self.event_id.clone(),
            ..Closing::of(outcome, self.value.clone())
        }
    }
}

/// How an interrupt is closed.
pub(in crate::run) struct Closing {
    pub(in crate::run) outcome: &'static str,
    pub(in crate::run) value: Value,
    pub(in crate::run) reason: Option<&'static str>,
    pub(in crate::run) by: Option<Principal>,
    pub(in crate::run) decider: DeciderSnapshot,
    pub(in crate::run) event_id: Option<String>,
}

impl Closing {
    pub(in crate::run) fn of(outcome: &'static str, value: Value) -> Self {
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

/// The result of an answer; no outcome while the interrupt stays open.
pub(in crate::run) struct AnswerOutcome {
    pub(in crate::run) outcome: Option<String>,
    pub(in crate::run) votes: Vec<Vote>,
}

/// Applies an answer to the open interrupt of a node, by the node's kind.
pub(in crate::run) fn resolve_question(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: Answer,
) -> Result<AnswerOutcome, Refusal> {
    let def = Arc::clone(&draft.run.def);
    match &def.nodes[ix].kind {
        Kind::ApprovalGate(gate) => resolve_approval(draft, ix, gate, answer),
        Kind::ClarificationGate(gate) => resolve_clarification(draft, ix, gate, &answer),
        Kind::GenericInterrupt(open) => resolve_open_interrupt(draft, ix, open, &answer),
        Kind::ConversationGate(_) | Kind::Dispatch(_) => match draft.gate(&def, ix) {
            Some(gate) => conversation::resume(draft, ix, &gate, &answer),
            None => resolve_at_dispatch(draft, ix, answer),
        },
        Kind::Supervisor(_) | Kind::Conformance(_) => resolve_low_confidence(draft, ix, answer),
        Kind::ChatFlow(_) => Err(Refusal::NotAnswerable {
            node: def.nodes[ix].id.clone(),
        }),
        kind => unreachable!("{kind:?} never asks"),
    }
}

/// Whether a message was sent to a conversation that is closed.
pub(in crate::run) fn is_late_exchange(
    draft: &DecisionDraft<'_>,
    node: &NodeId,
    value: &Value,
) -> bool {
    let kind = draft
        .run
        .def
        .index(node)
        .map(|ix| &draft.run.def.nodes[ix].kind);
    matches!(kind, Some(Kind::ConversationGate(_))) && conversation::is_exchange(value)
}

/// The node whose own interrupt is open, or why there is none.
pub(in crate::run) fn open_question(
    draft: &DecisionDraft<'_>,
    node: &NodeId,
    interrupt: Option<&InterruptId>,
) -> Result<usize, Refusal> {
    let run = &draft.run;
    let open = run.def.index(node).filter(|ix| {
        let own = run.open_interrupt(*ix).filter(|s| s.mirrors.is_none());
        run.node(*ix).status == NodeStatus::Suspended
            && own.is_some_and(|s| interrupt.is_none_or(|wanted| *wanted == s.interrupt.id))
    });
    if let Some(ix) = open.filter(|_| matches!(run.phase(), Phase::Running | Phase::Paused)) {
        return Ok(ix);
    }
    let closed = run.state.questions.closed.iter();
    let mut closed = closed.rev().filter(|c| c.node == *node);
    match closed.find(|c| interrupt.is_none_or(|wanted| *wanted == c.interrupt)) {
        Some(closed) if closed.outcome == "cancelled" => Err(Refusal::InterruptGone),
        Some(closed) => Err(Refusal::AlreadyResolved(closed.clone())),
        None => Err(Refusal::InterruptNotFound { node: node.clone() }),
    }
}

pub(in crate::run) fn invalid<T>(path: &str, message: impl Into<String>) -> Result<T, Refusal> {
    let path = format!("/resumeValue{path}");
    Err(Refusal::Invalid(vec![Problem::new(path, message)]))
}

/// Records that an interrupt was closed, with the event that opened it as cause. The node runs
/// again afterwards.
pub(in crate::run) fn close(draft: &mut DecisionDraft<'_>, ix: usize, closing: Closing) -> Seq {
    let node = draft.run.def.nodes[ix].id.clone();
    let open = draft.run.open_interrupt(ix);
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
