//! The log of an agent itself: what happens to it outside of its sessions. Nothing is decided on it, so no machine
//! folds it.
//!
//! Events that arrive while a commit to the same log is under way are written together by the next one. Callers of
//! this process therefore never conflict with each other, however many there are.

use crate::codec;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::HashMap;
use tandem_record::conversation::AgentLevelEvent;
use tandem_record::{AgentId, Recorded, Seq, StreamId, TenantId};
use tandem_store::{Append, Commit, Conflict, ConversationChange, Error, Fault};
use tokio::sync::oneshot;

/// Appends of other processes that may come in between.
const MAX_ATTEMPTS: usize = 16;
/// Events of one commit.
const MAX_BATCH: usize = 256;

/// Events that wait for the commit of those before them, by log. A log that is not in it has no writer.
#[derive(Default)]
pub(crate) struct AgentLogs(Mutex<HashMap<StreamId, Vec<WaitingEvent>>>);

struct WaitingEvent {
    event: AgentLevelEvent,
    written: oneshot::Sender<Result<(), Fault>>,
}

impl AgentLogs {
    /// Whether the caller has to write the log.
    fn push(&self, stream: &StreamId, event: WaitingEvent) -> bool {
        let mut logs = self.0.lock();
        if let Some(waiting) = logs.get_mut(stream) {
            waiting.push(event);
            return false;
        }
        logs.insert(stream.clone(), vec![event]);
        true
    }

    /// The next events to write; none when the log has no writer any more.
    fn take(&self, stream: &StreamId) -> Vec<WaitingEvent> {
        let mut logs = self.0.lock();
        let Some(waiting) = logs.get_mut(stream) else {
            return Vec::new();
        };
        let batch: Vec<_> = waiting.drain(..waiting.len().min(MAX_BATCH)).collect();
        if batch.is_empty() {
            logs.remove(stream);
        }
        batch
    }
}

impl Runtime {
    /// Records something that happened to an agent outside of its sessions. Returns when it is durable.
    pub async fn note_agent_event(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        event: AgentLevelEvent,
    ) -> Result<(), Fault> {
        let stream = StreamId::of_agent(tenant, agent);
        let (written, answer) = oneshot::channel();
        if self
            .inner
            .agent_logs
            .push(&stream, WaitingEvent { event, written })
        {
            // A task of its own: a caller that goes away must not leave the others waiting.
            let (runtime, tenant, agent) = (self.clone(), tenant.clone(), agent.clone());
            drop(tokio::spawn(async move {
                runtime.write_agent_log(&tenant, &agent, &stream).await;
            }));
        }
        let lost = || Err(Fault::retryable("stopped", "the event was not written"));
        answer.await.unwrap_or_else(|_| lost())
    }

    async fn write_agent_log(&self, tenant: &TenantId, agent: &AgentId, stream: &StreamId) {
        loop {
            let batch = self.inner.agent_logs.take(stream);
            if batch.is_empty() {
                return;
            }
            let events: Vec<_> = batch.iter().map(|waiting| &waiting.event).collect();
            let result = self
                .append_agent_events(tenant, agent, stream, &events)
                .await;
            for waiting in batch {
                // A caller that went away needs no answer.
                let _ = waiting.written.send(result.clone());
            }
        }
    }

    async fn append_agent_events(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        stream: &StreamId,
        events: &[&AgentLevelEvent],
    ) -> Result<(), Fault> {
        for _ in 0..MAX_ATTEMPTS {
            let head = self.store().events(stream, None, 0).await?.head;
            let at = self.clock().now();
            let mut seq = head.map_or(Seq(0), Seq::next);
            let mut encoded = Vec::with_capacity(events.len());
            for event in events {
                encoded.push(codec::encode_event(&Recorded {
                    seq,
                    at,
                    cause: None,
                    event: (*event).clone(),
                }));
                seq = seq.next();
            }
            let commit = Commit {
                tenant: Some(tenant.clone()),
                appends: vec![Append {
                    stream: stream.clone(),
                    after: head,
                    events: encoded,
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
