//! Reading sessions: the list, one session, its keys, messages, outbox and journals.

use crate::app::App;
use crate::error::{AppError, ResourceKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{FlowRecord, SessionLedger, SessionView};
use tandem_record::{MediaId, Recorded, RunId, Seq, SessionId};
use tandem_runtime::conversation::{ChatSession, MediaContent};
use tandem_runtime::{ListingPage, SessionFilter};

/// A page of sessions.
pub struct ListedSession {
    pub sessions: Vec<SessionView>,
    /// Where the next page starts, if there is one.
    pub next: Option<SessionId>,
}

/// Everything that was said in a session.
pub type SessionLog = SessionLedger;

/// One record of the journal of a flow run.
pub struct JournalEntry {
    pub run: RunId,
    pub record: Recorded<FlowRecord>,
}

impl App {
    /// Sessions the caller may see, newest first. The filter's workspace is the caller's, as is its agent if the
    /// caller is bound to one.
    pub async fn list_sessions(
        &self,
        caller: &Identity,
        filter: SessionFilter,
        page: &ListingPage<SessionId>,
    ) -> Result<ListedSession, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let named = filter.agent.as_ref();
        if named.is_some_and(|agent| !caller.reaches_agent(agent)) {
            return Ok(ListedSession {
                sessions: Vec::new(),
                next: None,
            });
        }
        let filter = SessionFilter {
            workspace: caller.workspace.clone(),
            agent: filter.agent.or_else(|| caller.agent.clone()),
            ..filter
        };
        let store = self.runtime().store();
        let listing = store.list_sessions(&caller.tenant, &filter, page).await?;
        let listing = listing.ok_or_else(|| AppError::invalid("cursor", "is not known"))?;
        let mut sessions = Vec::new();
        for row in listing.rows {
            sessions.extend(serde_json::from_str::<SessionView>(&row.body).ok());
        }
        Ok(ListedSession {
            sessions,
            next: listing.next,
        })
    }

    pub async fn read_chat_session(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<SessionView, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        Ok(self.find_session(caller, session).await?.view())
    }

    /// A recording or file of a session the caller may see.
    pub async fn read_session_media(
        &self,
        caller: &Identity,
        session: &SessionId,
        media: &MediaId,
    ) -> Result<MediaContent, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_session(caller, session).await?;
        let found = self.runtime().read_media(session, media).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Media))
    }

    /// The run of the session's active flow. A session the caller may not see has none.
    pub async fn active_flow_run(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<Option<RunId>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        match self.find_session(caller, session).await {
            Ok(found) => Ok(found.flow().map(|flow| flow.run_id().clone())),
            Err(AppError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All keys of a session, those of the host included.
    pub async fn read_session_keys(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<BTreeMap<String, Value>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        Ok(self.find_session(caller, session).await?.all_keys())
    }

    pub async fn read_session_log(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<SessionLog, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_session(caller, session).await?;
        let runtime = self.runtime();
        let mut log = SessionLog::default();
        for event in runtime.session_events_from(session, Seq(0)).await? {
            log.evolve(&event);
        }
        Ok(log)
    }

    /// A session the caller may see.
    pub(super) async fn find_session(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<Arc<ChatSession>, AppError> {
        let found = self.runtime().read_session(session).await?;
        let partition = caller.partition();
        let visible = found.filter(|found| {
            let owner = &found.start().owner;
            partition.covers_parts(&owner.tenant, owner.workspace.as_ref())
                && caller.reaches_agent(&found.start().agent_id)
        });
        visible.ok_or(AppError::NotFound(ResourceKind::Session))
    }
}
