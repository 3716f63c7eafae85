//! Questions of a run that the conversation shows whose flow started it with `surfaceInterrupts` (Z-220).
//!
//! Each is announced to the conversation in the commit that opens it, and called off in the commit that closes it,
//! however it is closed. What only certain people may decide stays in the inbox: a conversation knows its admins by the
//! rules of its agent, not as this host's principals.

use crate::run::draft::DecisionDraft;
use crate::run::state::Run;
use std::collections::BTreeMap;
use tandem_record::conversation::{ClosedWorkflowQuestion, WaitingSession, WorkflowQuestion};
use tandem_record::{EffectKind, InterruptId};

const SURFACED: [&str; 2] = ["approval", "clarification"];

impl Run {
    fn surfaces_to(&self) -> Option<&WaitingSession> {
        let waiting = self.started_request()?.waiting_session.as_deref();
        waiting.filter(|waiting| waiting.surfaces_questions)
    }

    /// The open questions that the conversation shows. Those of runs below this one stay in the inbox.
    pub fn surfaced_questions(&self) -> BTreeMap<InterruptId, WorkflowQuestion> {
        if self.surfaces_to().is_none() || self.phase().is_terminal() {
            return BTreeMap::new();
        }
        let shown = self.shown_interrupts().filter(|(ix, open)| {
            open.mirrors.is_none()
                && SURFACED.contains(&open.interrupt.kind.as_str())
                && !self.policy_at(*ix, open).requires_identity()
        });
        let questions = shown.map(|(ix, open)| {
            let question = WorkflowQuestion {
                run_id: self.id().clone(),
                node_id: self.def.nodes[ix].id.clone(),
                interrupt_id: open.interrupt.id.clone(),
                kind: open.interrupt.kind.clone(),
                data: open.interrupt.data.clone(),
            };
            (open.interrupt.id.clone(), question)
        });
        questions.collect()
    }
}

impl DecisionDraft<'_> {
    /// Tells the conversation which questions were opened and closed by this decision.
    pub(in crate::run) fn mirror_to_session(
        &mut self,
        before: &BTreeMap<InterruptId, WorkflowQuestion>,
    ) {
        let Some(to) = self.run.surfaces_to().cloned() else {
            return;
        };
        let after = self.run.surfaced_questions();
        for (id, question) in &after {
            if !before.contains_key(id) {
                let kind = EffectKind::AskSession {
                    to: to.clone(),
                    question: Box::new(question.clone()),
                };
                self.add_one_shot_effect(format!("surface:{id}"), kind);
            }
        }
        for id in before.keys().filter(|id| !after.contains_key(*id)) {
            let closed = self.run.closed_question(id);
            let closed = ClosedWorkflowQuestion {
                interrupt_id: id.clone(),
                outcome: closed.map_or("closed", |closed| &closed.outcome).to_owned(),
                by: closed.and_then(|closed| closed.by.clone()),
            };
            let kind = EffectKind::CloseSessionQuestion {
                to: to.clone(),
                closed: Box::new(closed),
            };
            self.add_one_shot_effect(format!("unsurface:{id}"), kind);
        }
    }
}
