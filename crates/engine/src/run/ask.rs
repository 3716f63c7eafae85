//! Asking: a node stops until somebody answers, and a parent learns that its child waits.

use super::start::Question;
use super::state::{Phase, Run};
use super::turn::Turn;
use crate::ids::interrupt_id;
use crate::node::{Asking, Kind, interrupt_kind, waiting_status};
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{ChildOutcome, EffectKind, Event, Interrupt, InterruptId, NodeStatus, Seq};

impl Run {
    /// The question this run as a whole waits for, if it waits.
    pub(crate) fn awaited(&self) -> Option<InterruptId> {
        let waiting = self.state.phase == Phase::Running && self.status().is_waiting();
        let open = self.first_suspended().filter(|_| waiting);
        open.map(|(_, s)| s.interrupt.id.clone())
    }
}

impl Turn<'_> {
    /// Opens a question at a started node.
    pub(super) fn ask(&mut self, ix: usize, question: Question, cause: Seq) {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        let round = self.run.state.nodes[ix].execution;
        let mut id = interrupt_id(self.run.id(), &node.id, round);
        if self.run.closed_question(&id).is_some() {
            // A fork asks again what its source had answered.
            id = interrupt_id(self.run.id(), &node.id, u32::MAX - round);
        }
        let asking = node.kind.asking();
        let simply = question.timeout_ms.map(|ms| self.now.plus_ms(ms));
        let due = asking
            .and_then(Asking::first_ms)
            .map(|ms| self.now.plus_ms(ms));
        let interrupt = Interrupt {
            id,
            key: format!("{}:{}:{round}", self.run.id(), node.id),
            kind: question.kind.clone(),
            data: question.data,
            resume_schema: question.resume_schema,
            timeout_ms: question.timeout_ms,
            requested_at: self.now,
            due: due.filter(|_| due != simply),
            priority: asking.and_then(|asking| asking.priority),
        };
        let (id, key) = (interrupt.id.clone(), interrupt.key.clone());
        let data = interrupt.data.clone();
        let requested = Event::InterruptRequested {
            node: node.id.clone(),
            interrupt: Box::new(interrupt),
        };
        let cause = self.emit(requested, Some(cause));
        let older = match &node.kind {
            Kind::ApprovalGate(gate) => {
                let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
                Some(Event::ApprovalRequested {
                    node: node.id.clone(),
                    interrupt: id.clone(),
                    artifact_id: text("artifactId").to_owned(),
                    artifact_type: text("artifactType").to_owned(),
                    title: text("title").to_owned(),
                    actions: gate.actions.clone(),
                    approvers: gate.asking.people(0).approvers.clone(),
                    required: gate.required,
                })
            }
            Kind::ClarificationGate(gate) => Some(Event::ClarificationRequested {
                node: node.id.clone(),
                interrupt: id.clone(),
                questions: gate.questions(),
            }),
            _ => None,
        };
        if let Some(event) = older {
            self.emit(event, Some(cause));
        }
        let doubt = interrupt_kind::doubt(&question.kind, &data);
        let suspended = self.emit(
            Event::NodeSuspended {
                node: node.id.clone(),
                interrupt: id,
                status: question
                    .status
                    .unwrap_or_else(|| waiting_status(&question.kind)),
                reason: interrupt_kind::suspended_for(&question.kind).map(str::to_owned),
                kind: question.kind,
                key,
                mirrors: None,
                child: None,
                doubt: question.doubt.or(doubt),
            },
            Some(cause),
        );
        self.open_conversation(ix, suspended);
        self.take_early(ix);
    }

    /// Takes back a mirrored wait before the node goes on.
    pub(super) fn resume_mirror(&mut self, ix: usize, cause: Seq) -> Seq {
        if self.run.state.nodes[ix].status != NodeStatus::Suspended {
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

    /// Tells the parent when this run begins or stops to wait as a whole.
    pub(super) fn mirror_to_parent(&mut self) {
        let Some(parent) = self
            .run
            .state
            .request
            .as_ref()
            .and_then(|r| r.parent.clone())
        else {
            return;
        };
        let awaited = self.run.awaited();
        if awaited == self.waited_for || self.run.state.phase.is_terminal() {
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
        self.once(id, kind);
    }
}
