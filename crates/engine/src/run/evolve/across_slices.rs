//! What an event does when it concerns several slices at once.

use crate::definition::Definition;
use crate::run::state::State;
use tandem_record::{AgentEvent, Interrupt, InterruptId, NodeId, RunId, RunStatus, Seq};

/// The wait of a child, as its parent shows it.
pub(super) struct MirroredWait<'e> {
    /// The run and node that own the interrupt.
    pub(super) owner: &'e (RunId, NodeId),
    pub(super) interrupt: Interrupt,
}

impl State {
    /// A node waits for an answer to its own question, or a child of it waits for one.
    pub(super) fn suspend_node(
        &mut self,
        (ix, node): (Option<usize>, &NodeId),
        status: RunStatus,
        child: Option<&RunId>,
        mirrored: Option<MirroredWait<'_>>,
        seq: Seq,
    ) {
        match child {
            Some(child) => self.children.set_status(child, status, seq),
            None => self.children.set_newest_status(node, Some(status), seq),
        }
        let Some(ix) = ix else {
            return;
        };
        let waits_already = self.scheduling.is_suspended(ix);
        self.scheduling.suspend(ix);
        match mirrored {
            None => self.questions.set_status(ix, status),
            Some(wait) => {
                let owner = (wait.owner, child);
                let place = (waits_already, seq);
                self.questions
                    .mirror(ix, wait.interrupt, status, owner, place);
            }
        }
    }

    /// The node ended or starts again: its questions and workers are gone.
    pub(super) fn forget_waits(&mut self, ix: usize) {
        self.questions.forget(ix);
        self.agents.forget(ix);
    }

    /// The end of a node may record the end of its child.
    pub(super) fn child_ended(&mut self, node: &NodeId, status: Option<RunStatus>, seq: Seq) {
        self.children.set_newest_status(node, status, seq);
    }

    /// A question of the node, or of one of its children, was answered.
    pub(super) fn resume_node(
        &mut self,
        ix: usize,
        node: &NodeId,
        interrupt: Option<&InterruptId>,
        seq: Seq,
    ) {
        let over = self.questions.resume(ix, interrupt);
        if over.was_last {
            self.scheduling.resume(ix);
        }
        let running = RunStatus::Running;
        match over.child {
            Some(child) => self.children.set_status(&child, running, seq),
            None => self.children.set_newest_status(node, Some(running), seq),
        }
    }

    pub(super) fn apply_agent_event(
        &mut self,
        def: &Definition,
        ix: usize,
        agent_event: &AgentEvent,
        seq: Seq,
    ) {
        self.agents.note_reasoning(def, ix, agent_event);
        if self.agents.record_verdict(ix, agent_event)
            && let Some(verifier) = self.scheduling.end_verification(ix)
        {
            let completed = RunStatus::Completed;
            self.children.set_status(&verifier, completed, seq);
        }
    }
}
