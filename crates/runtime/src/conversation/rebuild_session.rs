//! Replays the log of a session from its first event and compares the result with what is stored beside the log:
//! the snapshot and cache that commands start from, and the rows that lists and the inbox read.

use super::session_machine::SessionMachine;
use super::{session_questions, session_rows};
use crate::fold_stream::FoldedStream;
use crate::runtime::Runtime;
use std::sync::Arc;
use tandem_engine::session::ChatSession;
use tandem_record::{Seq, SessionId, StreamId, TenantId};
use tandem_store::{Fault, PageLimit};

/// A session that gets messages all the time is compared after one of them.
const MAX_ATTEMPTS: usize = 5;
const ONE_EVENT: PageLimit = PageLimit {
    events: 1,
    bytes: 1024 * 1024,
};

/// How a replayed session compares with what is stored.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionComparison {
    /// The last event that was replayed.
    pub head: Seq,
    pub differences: Vec<SessionDifference>,
}

/// Something stored that does not follow from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDifference {
    /// `state`, `session`, `escalation` or `question`.
    pub projection: &'static str,
    pub id: String,
}

impl Runtime {
    /// `None` for a session without events.
    pub async fn compare_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<SessionComparison>, Fault> {
        let Some(conversations) = self.conversations() else {
            return Ok(None);
        };
        let stream = StreamId::of_session(session);
        for _ in 0..MAX_ATTEMPTS {
            let used = self.read_machine(&conversations.sessions, &stream).await?;
            let Some(used) = used.as_ref().and_then(SessionMachine::shared_session) else {
                return Ok(None);
            };
            let head = used.head();
            let fresh = SessionMachine::unstarted(&stream);
            // Without a snapshot the fold begins with the first event.
            let FoldedStream { machine, .. } = self
                .fold_stream(&stream, fresh, |_| None, Some(head))
                .await?;
            let Some(replayed) = machine.shared_session() else {
                return Ok(None);
            };
            let differences = self.differences(tenant, &replayed, &used).await?;
            // Rows that are newer than what was replayed are no difference.
            let page = self.session_events(session, Some(head), ONE_EVENT).await?;
            if page.head == Some(head) {
                return Ok(Some(SessionComparison { head, differences }));
            }
        }
        let message = format!("session {session} has changed each time it was compared");
        Err(Fault::retryable("contended", message))
    }

    async fn differences(
        &self,
        tenant: &TenantId,
        replayed: &Arc<ChatSession>,
        used: &Arc<ChatSession>,
    ) -> Result<Vec<SessionDifference>, Fault> {
        let mut differences = Vec::new();
        let mut differs = |projection: &'static str, id: &str| {
            differences.push(SessionDifference {
                projection,
                id: id.to_owned(),
            });
        };
        let json = |session: &Arc<ChatSession>| {
            let state = serde_json::to_value(session);
            state.map_err(|error| Fault::permanent("corrupt", error.to_string()))
        };
        let id = replayed.id();
        if json(replayed)? != json(used)? {
            differs("state", id.as_str());
        }
        let row = self.store().session(tenant, id).await?;
        if row.as_ref() != Some(&session_rows::session_row(replayed)) {
            differs("session", id.as_str());
        }
        for escalation in replayed.escalations() {
            let row = self.store().escalation(tenant, &escalation.id).await?;
            if row.as_ref() != Some(&session_rows::escalation_row(replayed, escalation)) {
                differs("escalation", escalation.id.as_str());
            }
        }
        for question in session_questions::open_rows(replayed) {
            let row = self.store().interrupt(tenant, &question.interrupt).await?;
            if row.as_ref() != Some(&question) {
                differs("question", question.interrupt.as_str());
            }
        }
        Ok(differences)
    }
}
