//! Announcements of open interrupts to the run's `callbackUrl`.
//!
//! A run with a callback announces each interrupt once. The effect is added in the commit that
//! opens the interrupt and dropped in the commit that closes it, however it is closed. Whether it
//! was delivered is not part of the state. An outbox rebuilt from the log announces the open
//! interrupts again, under the same id.
//!
//! A wait that only mirrors a child's is not announced here. The child has its parent's callback
//! and announces all its own interrupts, also while other branches of it are running.

use super::notices::is_notice_of;
use super::state::Suspension;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::state::Run;
use serde_json::json;
use tandem_record::{Effect, EffectId, EffectKind, ErrorInfo, Event, InterruptId, Object, Reply};

/// Announcements of the interrupts that are open now.
pub fn required_announcements(run: &Run) -> Vec<Effect> {
    let open = run.announceable();
    open.map(|(_, open)| Effect {
        id: announcement_id(&open.interrupt.id),
        kind: EffectKind::NotifyCallback {
            interrupt: open.interrupt.id.clone(),
            tries: 0,
        },
    })
    .collect()
}

/// The id is the same for every attempt, so that the receiver can recognise a repetition.
fn announcement_id(interrupt: &InterruptId) -> EffectId {
    EffectId::from(format!("announce:{interrupt}"))
}

impl Run {
    /// Open interrupts of this run's own nodes, if it has a callback.
    fn announceable(&self) -> impl Iterator<Item = (usize, &Suspension)> {
        let request = self.started_request();
        let has_callback = request.is_some_and(|r| r.callback_url.is_some());
        self.questions_for_people().filter(move |_| has_callback)
    }

    /// Open interrupts of this run's own nodes.
    pub(super) fn questions_for_people(&self) -> impl Iterator<Item = (usize, &Suspension)> {
        let live = match self.phase() {
            Phase::Running | Phase::Paused => true,
            Phase::Pending
            | Phase::Cancelling
            | Phase::Completed
            | Phase::Failed
            | Phase::Cancelled => false,
        };
        self.shown_interrupts()
            .filter(move |_| live)
            .filter(|(_, open)| open.mirrors.is_none())
    }
}

impl DecisionDraft<'_> {
    /// Records that an open interrupt could not be announced, or that somebody could not be told of it. The run keeps waiting. Returns `None`
    /// when the effect belongs to no open interrupt.
    pub(in crate::run) fn record_failed_announcement(
        &mut self,
        effect: &EffectId,
        error: &ErrorInfo,
    ) -> Option<Reply> {
        let is_meant = |open: &Suspension| {
            announcement_id(&open.interrupt.id) == *effect || is_notice_of(open, effect)
        };
        let (ix, open) = {
            let mut open = self.run.questions_for_people();
            open.find(|(_, open)| is_meant(open))?
        };
        let cause = open.since;
        let event = Event::LogAppended {
            level: "warn".to_owned(),
            message: format!("The question was not announced: {}", error.message),
            node: Some(self.run.def.nodes[ix].id.clone()),
            // The cause names the interrupt: a fork has another id for it.
            fields: Some(Object::from_iter([("code".to_owned(), json!(error.code))])),
        };
        self.emit(event, Some(cause));
        Some(Reply::Accepted)
    }
}
