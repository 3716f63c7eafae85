//! The log of an agent: the events of all its streams in the order of their commits.
//!
//! Every event has a position in its agent's log, from 1 without gaps. A purged stream leaves a gap;
//! its positions are not reused. The order among streams is stored only here: a rebuild from the
//! streams has to order their events by time.

use crate::fault::Fault;
use crate::read::{PageLimit, StoredEvent};
use async_trait::async_trait;
use tandem_record::{AgentId, StreamId, TenantId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentLogEvent {
    pub position: u64,
    pub stream: StreamId,
    pub event: StoredEvent,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentLogPage {
    pub events: Vec<AgentLogEvent>,
    /// The last position that was ever used; 0 when there is none. A reader that got no event after
    /// its position may go on from here.
    pub head: u64,
}

#[async_trait]
pub trait ReadAgentLog: Send + Sync {
    /// Events with a position above `after`, ascending, up to the limit. The first one is returned
    /// whatever its length. A position becomes visible only together with or after all smaller ones
    /// of its agent, so a reader that goes on from the last position it got skips no event.
    async fn agent_log(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        after: u64,
        limit: PageLimit,
    ) -> Result<AgentLogPage, Fault>;
}
