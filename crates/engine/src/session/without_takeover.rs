//! The session as it would be if no person had taken it over: where an answer begins that is shown beside what the
//! person said, and is never kept.

use super::state::ChatSession;

impl ChatSession {
    /// The agent answers, and nothing is under way or waits. A paused flow stays where it is.
    pub fn without_takeover(&self) -> Self {
        let mut session = self.clone();
        if let Some(takeover) = session.takeover.take() {
            session.escalations.remove(&takeover.escalation);
            session
                .attached
                .take_if(|attached| *attached == takeover.escalation);
        }
        session.turn = None;
        session.aside = None;
        session.burst = None;
        session.approval = None;
        session.waiting.clear();
        session.held.clear();
        session.unsent.clear();
        session.reports.clear();
        session.reporting = None;
        session
    }
}
