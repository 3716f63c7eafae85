//! Questions as the run's `callbackUrl` hears of them.
//!
//! While a question of a run with a callback is open, that it be told is wanted: told once, in the
//! commit that asks, and taken back in the commit that closes it, however it is closed. Whether it
//! was has_callback is not part of the state. An outbox rebuilt from the log would tell what is open again,
//! under the same id.
//!
//! A wait that only mirrors a child's is not told here. The child has its parent's callback and tells
//! its own questions, all of them, also while other branches of it are busy.

use super::draft::DecisionDraft;
use super::state::{Phase, Run, Suspension};
use serde_json::json;
use tandem_record::{
    Effect, EffectId, EffectKind, ErrorInfo, Event, InterruptId, NodeStatus, Object, Reply,
};

/// Announcements of the questions that are open now.
pub fn required_announcements(run: &Run) -> Vec<Effect> {
    let open = run.announceable();
    open.map(|(_, open)| Effect {
        id: announcement_id(&open.interrupt.id),
        run_id: run.state.run_id.clone(),
        kind: EffectKind::NotifyCallback {
            interrupt: open.interrupt.id.clone(),
            tries: 0,
        },
    })
    .collect()
}

/// The same for every attempt, so that whoever hears twice knows.
fn announcement_id(interrupt: &InterruptId) -> EffectId {
    EffectId::from(format!("announce:{interrupt}"))
}

impl Run {
    /// Open questions of this run's own nodes, if it has a callback to be told of them.
    fn announceable(&self) -> impl Iterator<Item = (usize, &Suspension)> {
        let live = match self.state.phase {
            Phase::Running | Phase::Paused => true,
            Phase::Pending
            | Phase::Cancelling
            | Phase::Completed
            | Phase::Failed
            | Phase::Cancelled => false,
        };
        let request = self.state.request.as_ref();
        let has_callback = live && request.is_some_and(|r| r.callback_url.is_some());
        // Nearly every run has none, and is not searched.
        let nodes = if has_callback {
            &self.state.nodes[..]
        } else {
            &[]
        };
        nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.status == NodeStatus::Suspended)
            .filter_map(|(ix, node)| Some((ix, node.suspended.as_ref()?)))
            .filter(|(_, open)| open.mirrors.is_none())
    }
}

impl DecisionDraft<'_> {
    /// Nobody could be told of an open question. The run waits on, and its log says why nobody came.
    /// `None` when the effect announces no question that is open.
    pub(super) fn record_failed_announcement(
        &mut self,
        effect: &EffectId,
        error: &ErrorInfo,
    ) -> Option<Reply> {
        let meant = |open: &Suspension| announcement_id(&open.interrupt.id) == *effect;
        let (ix, open) = self
            .run
            .announceable()
            .find_map(|(ix, open)| meant(open).then_some((ix, open)))?;
        let cause = open.since;
        let told = Event::LogAppended {
            level: "warn".to_owned(),
            message: format!("The question was not announced: {}", error.message),
            node: Some(self.run.def.nodes[ix].id.clone()),
            // The question is named by the cause: a fork calls it by another id.
            fields: Some(Object::from_iter([("code".to_owned(), json!(error.code))])),
        };
        self.emit(told, Some(cause));
        Some(Reply::Accepted)
    }
}
