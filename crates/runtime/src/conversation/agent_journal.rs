//! The log of an agent itself: what happens to it outside of its sessions. Nothing is decided on it, so no machine
//! folds it.

use crate::codec;
use crate::runtime::Runtime;
use tandem_record::conversation::AgentLevelEvent;
use tandem_record::{AgentId, Recorded, StreamId, TenantId};
use tandem_store::{Append, Commit, Conflict, ConversationChange, Error, Fault};

/// Appends of others that may come in between.
const MAX_ATTEMPTS: usize = 16;

impl Runtime {
    /// Records something that happened to an agent outside of its sessions.
    pub async fn note_agent_event(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        event: AgentLevelEvent,
    ) -> Result<(), Fault> {
        let stream = StreamId::of_agent(tenant, agent);
        for _ in 0..MAX_ATTEMPTS {
            let head = self.store().events(&stream, None, 0).await?.head;
            let recorded = Recorded {
                seq: head.map_or(tandem_record::Seq(0), tandem_record::Seq::next),
                at: self.clock().now(),
                cause: None,
                event: event.clone(),
            };
            let commit = Commit {
                tenant: Some(tenant.clone()),
                appends: vec![Append {
                    stream: stream.clone(),
                    after: head,
                    events: vec![codec::encode_event(&recorded)],
                    run: None,
                    snapshot: None,
                }],
                conversations: vec![ConversationChange::LogEvents {
                    tenant: tenant.clone(),
                    agent: agent.clone(),
                    stream: stream.clone(),
                }],
                ..Commit::default()
            };
            match self.store().commit(commit).await {
                Ok(_) => return Ok(()),
                Err(Error::Conflict(Conflict::Position { .. })) => {}
                Err(Error::Conflict(conflict)) => {
                    return Err(Fault::permanent("internal", conflict.to_string()));
                }
                Err(Error::Fault(fault)) => return Err(fault),
            }
        }
        let message = format!("the log of agent {agent} changes too often");
        Err(Fault::retryable("contended", message))
    }
}
