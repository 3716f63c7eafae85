//! What the earlier sessions of a user were about (Z-36): read once, when a session begins.

use super::receive::SessionBeginning;
use crate::runtime::Runtime;
use tandem_engine::agent::AgentSpec;
use tandem_record::Timestamp;
use tandem_record::conversation::{EarlierSession, SessionView};
use tandem_store::{Fault, ListingPage, SessionFilter};

/// Sessions that are looked at for the user's last message: one that began without the user has none.
const LOOKED_BACK: usize = 5;

/// The summaries of the last `maxEpisodicMemory` sessions that ended, the oldest first.
pub(super) async fn earlier_sessions(
    runtime: &Runtime,
    agent: &AgentSpec,
    beginning: &SessionBeginning<'_>,
) -> Result<Vec<EarlierSession>, Fault> {
    let limit = agent.limits.max_episodic_memory;
    if limit == 0 || !beginning.is_known {
        return Ok(Vec::new());
    }
    let ended = ended_sessions(runtime, beginning, limit).await?;
    let ended = ended.into_iter().filter_map(|view| {
        Some(EarlierSession {
            id: view.id,
            started_at: view.started_at,
            ended_at: view.ended_at?,
            summary: view.summary?,
        })
    });
    let mut sessions: Vec<_> = ended.collect();
    sessions.reverse();
    Ok(sessions)
}

/// When the user last wrote before this session, for transports that an agent's file describes: their networks may
/// let nobody write to a user who has not written for long (Z-240).
pub(super) async fn last_received_at(
    runtime: &Runtime,
    agent: &AgentSpec,
    beginning: &SessionBeginning<'_>,
) -> Result<Option<Timestamp>, Fault> {
    if !beginning.is_known || !agent.transports.contains_key(&beginning.transport) {
        return Ok(None);
    }
    let newest = ended_sessions(runtime, beginning, LOOKED_BACK).await?;
    Ok(newest.iter().find_map(|view| view.last_received_at))
}

/// The last sessions of the user that ended, the newest first.
async fn ended_sessions(
    runtime: &Runtime,
    beginning: &SessionBeginning<'_>,
    limit: usize,
) -> Result<Vec<SessionView>, Fault> {
    let owner = beginning.owner;
    let filter = SessionFilter {
        workspace: owner.workspace.clone(),
        agent: Some(beginning.agent_id.clone()),
        user_external_id: Some(beginning.user.external_user_id.clone()),
        active: Some(false),
    };
    let page = ListingPage { after: None, limit };
    let listing = runtime
        .store()
        .list_sessions(&owner.tenant, &filter, &page)
        .await?;
    let rows = listing.map(|listing| listing.rows).unwrap_or_default();
    // Without a workspace, the filter shows sessions of all of them.
    let own = rows
        .into_iter()
        .filter(|row| row.user_id == beginning.user.id);
    Ok(own
        .filter_map(|row| serde_json::from_str(&row.body).ok())
        .collect())
}
