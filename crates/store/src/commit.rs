//! One atomic durable change.

use crate::audit::AuditDraft;
use crate::conversations::ConversationChange;
use crate::fault::Fault;
use crate::keys::KeyRecord;
use crate::lane::Lane;
use crate::lease::{Lease, LeaseId};
use crate::people::PeopleChange;
use crate::read::IdempotencyKey;
use crate::webhooks::WebhookChange;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tandem_record::{
    DefinitionHash, EffectId, InterruptId, NodeId, OrderKey, Partition, QuestionBody, RunId,
    RunStatus, Seq, SessionId, StepId, StreamId, TenantId, TimerName, Timestamp, WebhookId,
    WorkflowId, WorkspaceId,
};

/// All changes of one decision. Several streams may advance together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// The tenant of the commit: a busy store handles tenants in turn. `None` for the host's own
    /// commits.
    pub tenant: Option<TenantId>,
    pub appends: Vec<Append>,
    pub timers: Vec<TimerChange>,
    pub outbox: Vec<OutboxChange>,
    /// Responses to requests and ids of received messages. The commit conflicts if one of their
    /// keys is used.
    pub idempotency: Vec<IdempotencyRecord>,
    pub registry: Vec<RegistryChange>,
    /// Documents that no id stands for, such as the code of flows; runs pin them by their content.
    pub documents: Vec<DocumentRecord>,
    pub guards: Vec<CommitGuard>,
    /// Questions opened, voted on or closed. The identity of a question is fixed by its first row;
    /// later rows change only `deadline`, `closed` and `body`.
    pub interrupts: Vec<InterruptRow>,
    /// Writes to memory scopes, in order.
    pub memory: Vec<MemoryRow>,
    /// Ends of children; from then on their parents see what they wrote.
    pub joins: Vec<MemoryJoin>,
    /// Audit entries of the commit. The store assigns each one its sequence in the chain.
    pub audit: Vec<AuditDraft>,
    /// Groups and delegations.
    pub people: Vec<PeopleChange>,
    /// An API key. It replaces the key with the same id. A secret belongs to one key: the hash of another
    /// key is refused as `invalid`.
    pub key: Option<KeyRecord>,
    /// Applied in order.
    pub webhooks: Vec<WebhookChange>,
    /// Users, sessions, escalations and the logs of agents. Applied in order.
    pub conversations: Vec<ConversationChange>,
}

/// What writing one row beside the events costs, as bytes of text: about the time its indexes take.
const ROW_BYTES: usize = 2 * 1024;

impl Commit {
    /// About how many bytes it writes: the long texts in it, and a share for each row beside the events.
    /// Cheap. Stores use it to share the writer fairly.
    pub fn size(&self) -> usize {
        let rows = self.timers.len() + self.outbox.len() + self.interrupts.len();
        let rows = rows + self.memory.len() + self.joins.len() + self.conversations.len();
        let rows = (rows + self.webhooks.len() + usize::from(self.key.is_some())) * ROW_BYTES;
        let appends = self.appends.iter().map(|append| {
            let events: usize = append.events.iter().map(|event| event.body.len()).sum();
            events + append.snapshot.as_ref().map_or(0, |s| s.body.len())
        });
        let outbox = self.outbox.iter().map(|change| match change {
            OutboxChange::Put(entry) | OutboxChange::Wake(entry) => entry.body.len(),
            OutboxChange::Remove(_) => 0,
        });
        let registry = self.registry.iter().map(|change| match change {
            RegistryChange::Register { definition, .. } => definition.document.len(),
            RegistryChange::Unregister { .. } => 0,
        });
        let documents = self.documents.iter().map(|stored| stored.document.len());
        let memory = self
            .memory
            .iter()
            .map(|row| row.body.as_ref().map_or(0, String::len));
        let questions = self.interrupts.iter().map(|row| row.body.len());
        let published = self.webhooks.iter().map(|change| match change {
            WebhookChange::Publish { body, .. } => body.len(),
            _ => 0,
        });
        let answers = self.idempotency.iter().map(|a| a.response.body.len());
        let conversations = self.conversations.iter().map(ConversationChange::size);
        appends
            .chain(outbox)
            .chain(registry)
            .chain(documents)
            .chain(memory)
            .chain(questions)
            .chain(published)
            .chain(answers)
            .chain(conversations)
            .sum::<usize>()
            + rows
    }

    /// Refuses invalid commits, so that every implementation refuses the same ones. Each
    /// implementation checks inside its transaction that an append follows the head of its stream;
    /// the sequence of an event is its position, so a log has no gaps.
    pub fn check(&self) -> Result<(), Fault> {
        for append in &self.appends {
            if append.after.is_none() && append.events.is_empty() {
                return Err(Fault::permanent(
                    "invalid",
                    format!("stream {} cannot begin without an event", append.stream),
                ));
            }
            if let Some(row) = &append.run
                && append.stream != StreamId::of_run(&row.run_id)
            {
                return Err(Fault::permanent(
                    "invalid",
                    format!(
                        "run {} is not the run of stream {}",
                        row.run_id, append.stream
                    ),
                ));
            }
            append.check_size()?;
            append.check_snapshot()?;
        }
        for (at, record) in self.idempotency.iter().enumerate() {
            if self.idempotency[..at].iter().any(|r| r.key == record.key) {
                let message = "a commit records an idempotency key twice";
                return Err(Fault::permanent("invalid", message));
            }
        }
        self.check_logged_events()
    }

    fn check_logged_events(&self) -> Result<(), Fault> {
        for change in &self.conversations {
            if let ConversationChange::LogEvents { stream, agent, .. } = change
                && self.appended(stream).next().is_none()
            {
                let message = format!("a commit without events of {stream} logs them for {agent}");
                return Err(Fault::permanent("invalid", message));
            }
        }
        Ok(())
    }

    /// The appends with events to a stream, in their order.
    pub fn appended<'a>(&'a self, stream: &'a StreamId) -> impl Iterator<Item = &'a Append> {
        let of_stream = |append: &&Append| append.stream == *stream && !append.events.is_empty();
        self.appends.iter().filter(of_stream)
    }
}

/// What a commit found in the outbox when it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Entries that were put with a lease although another of their order is before them. They wait without
    /// one.
    pub held: Vec<EffectId>,
    /// Of an order from which an entry was removed, others are left.
    pub has_released: bool,
}

/// Conditions checked inside the transaction, before anything is written.
#[derive(Clone, Debug, PartialEq)]
pub enum CommitGuard {
    /// The outbox still holds this entry under this lease: its result was not recorded before, and
    /// nobody took over. A commit that fails it conflicts with [`crate::Conflict::LeaseLost`].
    HoldsLease { effect: EffectId, lease: LeaseId },
    /// No live run of the partition has this scope.
    ScopeFree { owner: Partition, scope: String },
    /// No delivery of the subscription is due before this time, or none is pending at all: a worker
    /// that waits until then misses no delivery that was added in the meantime.
    NoDeliveryBefore {
        webhook: WebhookId,
        due: Option<Timestamp>,
    },
    /// No row was added to the tenant's feed after this position: a worker that stops there leaves
    /// nothing behind.
    FeedEndsAt { tenant: TenantId, position: u64 },
    /// The subscription is registered with this body: a change that was computed from it
    /// overwrites no other.
    WebhookUnchanged { webhook: WebhookId, body: String },
    /// The id stands for this document of the owner itself (`None`: shared), or for none: a caller
    /// that registers it learns whether it was the first.
    RegisteredAs {
        owner: Option<Partition>,
        workflow: WorkflowId,
        hash: Option<DefinitionHash>,
    },
    /// These keys are in the scope, for every run that starts now.
    MemoryKeysPresent {
        tenant: TenantId,
        scope: String,
        memory_ref: String,
        keys: Vec<String>,
    },
}

/// Events at the end of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    pub stream: StreamId,
    /// The last sequence the decision was made on; `None` starts the stream.
    pub after: Option<Seq>,
    /// May be empty for an existing stream, to replace only its snapshot or projection.
    pub events: Vec<NewEvent>,
    /// The run projection after these events, for streams of runs.
    pub run: Option<RunRow>,
    /// Replaces the stream's snapshot.
    pub snapshot: Option<SnapshotRecord>,
}

/// Size limit of one event or snapshot. Far above what a run may build, far below the row limit of
/// any database.
pub const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

impl Append {
    /// The head of the stream after this append.
    pub fn end(&self) -> Option<Seq> {
        let length = self.after.map_or(0, |seq| seq.next().0) + self.events.len() as u64;
        length.checked_sub(1).map(Seq)
    }

    /// Refuses a snapshot from after the last event of its append: whoever reads it would skip
    /// events that come later.
    fn check_snapshot(&self) -> Result<(), Fault> {
        let end = self.end();
        match &self.snapshot {
            Some(snapshot) if Some(snapshot.seq) > end => {
                let (stream, seq) = (&self.stream, snapshot.seq);
                let message =
                    format!("stream {stream} has a snapshot at {seq:?} and ends at {end:?}");
                Err(Fault::permanent("invalid", message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what is too large to be stored, which no retry can change.
    fn check_size(&self) -> Result<(), Fault> {
        let events = self.events.iter().map(|event| event.body.len());
        let snapshot = self.snapshot.iter().map(|snapshot| snapshot.body.len());
        let Some(longest) = events.chain(snapshot).max().filter(|n| *n > MAX_BODY_BYTES) else {
            return Ok(());
        };
        let stream = &self.stream;
        let message = format!(
            "{longest} bytes for stream {stream} are too many; a row has at most {MAX_BODY_BYTES}"
        );
        Err(Fault::permanent("too_large", message))
    }
}

/// An event to append. Its sequence follows from its position in the append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    pub at: Timestamp,
    /// The whole event as JSON, opaque to the store.
    pub body: String,
}

/// One row of the run listing. The identity of a run (tenant, workspace, workflow, definition,
/// parent, scope, time of creation) is fixed by the first commit that names it. Later commits
/// change only `status`, `ended_at` and `error_code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    pub workflow_id: WorkflowId,
    pub definition: DefinitionHash,
    pub status: RunStatus,
    pub parent: Option<RunId>,
    pub scope: Option<String>,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub error_code: Option<String>,
}

/// One row of the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptRow {
    pub interrupt: InterruptId,
    /// The stream whose machine waits for the answer, and the part of it that does.
    pub stream: StreamId,
    pub step: StepId,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    pub kind: String,
    pub created_at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// Higher is more urgent; 0 is normal.
    pub priority: i32,
    /// Approver groups that may decide it.
    pub groups: Vec<String>,
    /// The outcome; `None` while it is open.
    pub closed: Option<String>,
    /// A [`QuestionBody`] as JSON. Stores do not read it.
    pub body: String,
}

/// One write to a memory scope, or the deletion of one key. Kept as long as any reader may need it;
/// its position in the journal is its order among all writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    pub tenant: TenantId,
    pub scope: String,
    pub memory_ref: String,
    pub key: String,
    pub run: RunId,
    /// The event of that run that recorded the write.
    pub seq: Seq,
    /// The entry as JSON, of which the store reads only `written_at` and `expires_at`; `None`
    /// deletes the key.
    pub body: Option<String>,
}

/// `run` saw at `seq` that `child` had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryJoin {
    pub run: RunId,
    pub seq: Seq,
    pub child: RunId,
}

impl InterruptRow {
    /// What the question shows.
    pub fn question(&self) -> Result<QuestionBody<'static>, Fault> {
        QuestionBody::from_json(&self.body).map_err(|error| {
            let message = format!("question {} is unreadable: {error}", self.interrupt);
            Fault::permanent("corrupt", message)
        })
    }

    /// The run that waits, if it is one.
    pub fn run(&self) -> Option<RunId> {
        self.stream.run()
    }

    /// The run that waits, and the node of it that does. The steps of a run are its nodes.
    pub fn run_and_node(&self) -> Option<(RunId, NodeId)> {
        Some((self.run()?, NodeId::new(self.step.as_str())))
    }

    /// Sort key by deadline; rows without one come last.
    pub fn due(&self) -> i64 {
        self.deadline.map_or(i64::MAX, |at| at.0)
    }

    /// Sort key, most urgent first.
    pub fn urgency(&self) -> i64 {
        -i64::from(self.priority)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// The last event folded into it.
    pub seq: Seq,
    /// Readers ignore snapshots of another format.
    pub format: u32,
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerChange {
    /// Sets or moves the timer.
    Set {
        stream: StreamId,
        name: TimerName,
        due: Timestamp,
        /// Whose stream it is.
        tenant: TenantId,
    },
    Clear {
        stream: StreamId,
        name: TimerName,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxChange {
    /// Adds an entry, or replaces the one with the same id (a new attempt of the same effect). A
    /// replaced entry keeps its order key and its place in that order.
    Put(OutboxEntry),
    /// Adds an entry, or makes the one with this id due at its `available_at` if that is earlier. A
    /// lease on it stays.
    Wake(OutboxEntry),
    /// Removes it, leased or not: performed, or no longer needed.
    Remove(EffectId),
}

/// An effect that waits to be performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    pub effect: EffectId,
    pub stream: StreamId,
    pub kind: String,
    /// The effect as JSON, opaque to the store.
    pub body: String,
    pub available_at: Timestamp,
    /// The lane whose workers it uses.
    pub lane: Lane,
    /// Entries of one tenant with the same key are leased one at a time, in the order they were put:
    /// one is held back until all before it are removed. A failed or parked one is not removed, so it
    /// holds back those after it. Such an entry is never put with a lease.
    pub order_key: Option<OrderKey>,
    /// How often it was leased.
    pub attempts: u32,
    /// Failed attempts since it was put; only the store changes it.
    pub failures: u32,
    /// Set when the committing process performs it immediately.
    pub lease: Option<Lease>,
}

/// The response to a request, stored in the commit of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    pub key: IdempotencyKey,
    /// Hash of the canonical request; a different one under the same key is a mismatch.
    pub digest: String,
    pub response: StoredResponse,
    pub recorded_at: Timestamp,
    /// The session that took the message of this id ([`IdempotencyKey::of_message`]). Such a record
    /// does not expire: it is kept until the session is purged, so that a transport may deliver the
    /// message again at any time.
    pub session: Option<SessionId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    pub status: u16,
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryChange {
    /// Stores the document (once per content) and registers it under the id. `owner: None` makes it
    /// visible to every tenant.
    Register {
        owner: Option<Partition>,
        definition: DefinitionRecord,
        at: Timestamp,
    },
    /// Unregisters the id; pinned documents stay readable.
    Unregister {
        owner: Option<Partition>,
        workflow: WorkflowId,
    },
}

/// A text by its content. Stored once; another commit of the same content changes nothing. Read by
/// [`crate::ReadDefinitions::definition`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRecord {
    pub hash: DefinitionHash,
    pub document: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionRecord {
    pub hash: DefinitionHash,
    pub workflow: WorkflowId,
    pub document: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_rows_count_in_the_size_of_a_commit() {
        let deliver = |webhook: u64| WebhookChange::Deliver {
            webhook: WebhookId::new(webhook.to_string()),
            run_id: RunId::new("r"),
            seq: Seq(0),
            event_type: "run.completed".to_owned(),
            at: Timestamp(0),
        };
        let commit = Commit {
            webhooks: (0..100).map(deliver).collect(),
            ..Commit::default()
        };
        assert!(commit.size() >= 100 * ROW_BYTES, "{}", commit.size());
    }
}
