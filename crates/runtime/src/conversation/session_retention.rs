//! How long ended conversations are kept. A session is unreadable as soon as its retention is over; its rows are
//! removed in small batches later. The audit log keeps the hash of the purged log. Flow runs are purged as runs
//! are.

use crate::retention::BATCH;
use crate::runtime::Runtime;
use crate::task_leases::HostTask;
use serde_json::json;
use std::collections::BTreeMap;
use tandem_engine::session::ChatSession;
use tandem_record::{Actor, Object, SessionId, StreamId, Timestamp};
use tandem_store::{AuditDraft, EndedSession, Fault};

/// Action of the audit entry about a purged conversation.
const PURGE: &str = "session.purge";

/// Progress of the scan of each retention period.
pub(crate) type SessionPurgeCursors = BTreeMap<u64, (Timestamp, SessionId)>;

impl Runtime {
    /// Whether the session is past its retention and must not be read any more.
    pub(super) fn is_session_past_retention(&self, session: &ChatSession) -> bool {
        let retention = &self.inner.config.retention;
        let kept_ms = retention.of_sessions(&session.start().owner.tenant);
        let ended = session.ended().map(|(at, _)| at);
        ended.is_some_and(|at| at < self.retained_since(kept_ms))
    }

    pub(crate) async fn purge_expired_sessions(
        &self,
        cursors: &mut SessionPurgeCursors,
    ) -> Result<(), Fault> {
        let retention = self.inner.config.retention.clone();
        for length in retention.session_lengths() {
            while !self.is_stopping() && self.holds_task(HostTask::PurgeRuns).await? {
                let after = cursors.get(&length).cloned();
                let before = self.retained_since(length);
                let ended = self.store().ended_sessions(after, before, BATCH).await?;
                for session in &ended {
                    if retention.of_sessions(&session.tenant) == length {
                        self.purge_session(session).await?;
                    }
                    cursors.insert(length, session.place());
                }
                if ended.len() < BATCH {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn purge_session(&self, session: &EndedSession) -> Result<(), Fault> {
        let id = &session.session_id;
        let stream = StreamId::of_session(id);
        let (events, sha256) = self.log_digest(&stream).await?;
        let log = json!({"events": events, "sha256": sha256});
        let audit = AuditDraft::new(
            self.clock().now(),
            Some(&session.tenant),
            &Actor::host(),
            PURGE,
            id.as_str(),
            Object::from_iter([("log".to_owned(), log)]),
        );
        self.store().purge_session(id, Some(audit)).await?;
        if let Some(conversations) = self.conversations() {
            conversations.sessions.cache.remove(&stream);
        }
        Ok(())
    }
}
