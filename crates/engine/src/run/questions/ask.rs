//! Opens interrupts: suspends a node until it is answered, and reports to the parent that a child
//! waits.

use super::kind_events::kind_specific_request;
use crate::ids::interrupt_id;
use crate::node::{InterruptSettings, Kind, interrupt_kind, waiting_status};
use crate::run::draft::DecisionDraft;
use crate::run::state::Run;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{
    ChildOutcome, EffectKind, Event, Interrupt, InterruptId, LowConfidence, NodeStatus, RunStatus,
    Seq,
};

/// An interrupt as a node requests it.
pub(crate) struct Question {
    pub(crate) kind: String,
    pub(crate) data: Value,
    pub(crate) resume_schema: Option<Value>,
    pub(crate) timeout_ms: Option<u64>,
    /// The status of the run meanwhile, where the kind does not define it.
    pub(crate) status: Option<RunStatus>,
    /// Set when the interrupt is about a decision with low confidence.
    pub(crate) low_confidence: Option<LowConfidence>,
    /// What `data` shows masked, as it is.
    pub(crate) hidden: Option<Value>,
}

impl Run {
    /// Id and key of the next interrupt of a node. It has the number of the node's execution, or
    /// the next unused number. A node may ask again after an answer, and a fork asks again what was
    /// answered in its source.
    pub(in crate::run) fn next_question(&self, ix: usize) -> (InterruptId, String) {
        let node = &self.def.nodes[ix].id;
        let mut number = self.node(ix).execution;
        let mut id = interrupt_id(self.id(), node, number);
        while self.closed_question(&id).is_some() {
            number += 1;
            id = interrupt_id(self.id(), node, number);
        }
        (id, format!("{}:{node}:{number}", self.id()))
    }
}

impl DecisionDraft<'_> {
    /// Opens an interrupt at a started node.
    pub(in crate::run) fn ask(&mut self, ix: usize, question: Question, cause: Seq) {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        let (id, key) = self.run.next_question(ix);
        let asking = node.kind.interrupt_settings();
        let mut question = question;
        if let Some(supervisor) = self.deciding_supervisor(ix) {
            let hidden = self.run.mask_decision(supervisor, &mut question.data);
            question.hidden = hidden.or(question.hidden);
        }
        let simply = question.timeout_ms.map(|ms| self.now.plus_ms(ms));
        let due = asking
            .and_then(InterruptSettings::first_timeout_ms)
            .map(|ms| self.now.plus_ms(ms));
        let interrupt = Interrupt {
            id,
            key,
            kind: question.kind.clone(),
            data: question.data,
            resume_schema: question.resume_schema,
            timeout_ms: question.timeout_ms,
            requested_at: self.now,
            due: due.filter(|_| due != simply),
            priority: asking.and_then(|asking| asking.priority),
            hidden: question.hidden,
        };
        let (id, key) = (interrupt.id.clone(), interrupt.key.clone());
        let data = interrupt.data.clone();
        let kind_specific = kind_specific_request(node, &interrupt);
        let requested = Event::InterruptRequested {
            node: node.id.clone(),
            interrupt: Box::new(interrupt),
        };
        let cause = self.emit(requested, Some(cause));
        if let Some(event) = kind_specific {
            self.emit(event, Some(cause));
        }
        let low_confidence = interrupt_kind::low_confidence(&question.kind, &data);
        let suspended = self.emit(
            Event::NodeSuspended {
                node: node.id.clone(),
                interrupt: id,
                status: question
                    .status
                    .unwrap_or_else(|| waiting_status(&question.kind)),
                reason: interrupt_kind::suspend_reason(&question.kind).map(str::to_owned),
                kind: question.kind,
                key,
                mirrors: None,
                data: None,
                child: None,
                low_confidence: question.low_confidence.or(low_confidence),
            },
            Some(cause),
        );
        self.open_conversation(ix, suspended);
        self.answer_from_early_event(ix);
    }

    /// The supervisor whose decision a question is about.
    fn deciding_supervisor(&self, ix: usize) -> Option<usize> {
        match &self.run.def.nodes[ix].kind {
            Kind::Supervisor(_) => Some(ix),
            Kind::Dispatch(_) => self.run.def.index(&self.run.newest_decision()?.node),
            _ => None,
        }
    }

    /// Removes a mirrored wait before the node continues.
    pub(in crate::run) fn resume_mirror(&mut self, ix: usize, cause: Seq) -> Seq {
        if self.run.node(ix).status != NodeStatus::Suspended {
            return cause;
        }
        let node = self.run.def.nodes[ix].id.clone();
        let event = Event::NodeResumed {
            node,
            interrupt: None,
            value: None,
        };
        self.emit(event, Some(cause))
    }

    /// Notifies the parent when this run as a whole begins or stops waiting.
    pub(in crate::run) fn mirror_to_parent(&mut self) {
        let Some(parent) = self.run.started_request().and_then(|r| r.parent.clone()) else {
            return;
        };
        let awaited = self.run.awaited_interrupt();
        if awaited == self.questions.waited_for || self.run.phase().is_terminal() {
            return;
        }
        let child = self.run.id().clone();
        let waiting = self.run.first_suspended().filter(|_| awaited.is_some());
        let outcome = match waiting {
            Some((ix, open)) => {
                let here = || (child.clone(), self.run.def.nodes[ix].id.clone());
                let (asker, node) = open.mirrors.clone().unwrap_or_else(here);
                ChildOutcome::Waiting {
                    child: child.clone(),
                    asker,
                    node,
                    status: open.status,
                    interrupt: open.interrupt.id.clone(),
                    kind: open.interrupt.kind.clone(),
                    key: Some(open.interrupt.key.clone()),
                    data: Some(open.interrupt.data.clone()),
                }
            }
            None => ChildOutcome::Resumed {
                child: child.clone(),
            },
        };
        let id = format!("waits:{child}:{}", self.run.next_seq());
        let kind = EffectKind::NotifyParent {
            parent: parent.run_id,
            node: parent.node_id,
            outcome,
        };
        self.add_one_shot_effect(id, kind);
    }
}
