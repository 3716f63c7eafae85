//! Texts of the agent that wait for a person's approval.

use super::decide::SessionRefusal;
use super::draft::Draft;
use tandem_record::InterruptId;
use tandem_record::conversation::{
    Author, Candidate, DraftDecision, DraftOutcome, SessionEventBody as Body, SessionReply,
};

/// Texts that wait at the same time. The oldest is dropped for a further one.
const MAX_DRAFTS: usize = 100;

impl Draft<'_> {
    pub(super) fn hold_draft(&mut self, candidate: Candidate) {
        if self.session.drafts.len() >= MAX_DRAFTS {
            let oldest = self.session.drafts.iter();
            let oldest = oldest.min_by_key(|(id, draft)| (draft.created_at, (*id).clone()));
            if let Some(draft_id) = oldest.map(|(id, _)| id.clone()) {
                self.close_draft(draft_id, DraftOutcome::Dropped);
            }
        }
        let next = self.session.next_seq();
        let draft_id = InterruptId::from(format!("{}:{next}", self.session.id()));
        self.emit(Body::DraftHeld {
            draft_id,
            candidate,
        });
    }

    fn close_draft(&mut self, draft_id: InterruptId, outcome: DraftOutcome) {
        self.emit(Body::DraftDecided { draft_id, outcome });
    }

    /// A person sends a held text, changes it or drops it.
    pub(super) fn decide_draft(
        &mut self,
        id: &InterruptId,
        decision: &DraftDecision,
    ) -> Result<SessionReply, SessionRefusal> {
        let held = self.session.drafts.get(id).cloned();
        let held = held.ok_or(SessionRefusal::DraftNotFound)?;
        let mut candidate = held.candidate;
        let (outcome, author) = match decision {
            DraftDecision::Accept => (DraftOutcome::Accepted, None),
            DraftDecision::Edit(text) => {
                candidate.text.clone_from(text);
                (DraftOutcome::Edited, self.human_author())
            }
            DraftDecision::Reject => (DraftOutcome::Rejected, None),
        };
        // It belongs to the turn that made it, whatever is under way now.
        self.delivered = Some(held.subject);
        self.close_draft(id.clone(), outcome);
        if outcome != DraftOutcome::Rejected && !candidate.text.trim().is_empty() {
            let to = self.session.start.address.clone();
            self.queue_text(&to, candidate, author);
        }
        self.delivered = None;
        Ok(SessionReply::Done)
    }

    /// The acting person as the author of a text.
    pub(super) fn human_author(&self) -> Option<Author> {
        let actor = self.actor.as_ref()?;
        Some(Author {
            kind: "human".to_owned(),
            actor_id: actor.id.clone(),
        })
    }

    pub(super) fn drop_drafts(&mut self) {
        let ids: Vec<InterruptId> = self.session.drafts.keys().cloned().collect();
        for id in ids {
            self.close_draft(id, DraftOutcome::Dropped);
        }
    }
}
