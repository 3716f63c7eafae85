//! What Tandem stores: identifiers, and a run's events, commands and effects. Plain data with
//! serde, no I/O, no clock, and no names of any wire protocol.
//!
//! Invariants:
//! - A stored [`Event`] is never changed once written. New meaning is a new variant or a new field
//!   with a default, so that logs written by an older version still fold.
//! - Everything here can be rebuilt from the events alone; views and effects are derived.

mod actor;
mod agent;
mod chunk;
mod command;
pub mod conversation;
mod decider;
mod effect;
mod event;
mod event_node;
mod id;
mod interrupt;
mod memory;
mod mock;
mod model;
mod nesting;
mod pack;
mod partition;
mod question;
mod run;
mod size;
mod timer;
mod tool;
mod user_data;
mod view;
mod webhook;
mod work;

pub use actor::{Actor, AuthMethod};
pub use agent::{
    AgentEvent, AgentEventKind, EscalationKind, Handoff, HandoffStep, JoinOutcome, LowConfidence,
    VerificationRequest, VerificationSubject, VerifierVerdict,
};
pub use chunk::{ChunkEnd, ChunkPiece, ChunkUsage, FinishReason, OutputChunk};
pub use command::{ChildOutcome, Command, DrainPolicy, EffectOutcome, ExternalEventOutcome, Reply};
pub use decider::{DeciderSnapshot, DecisionAuthorization, DecisionPolicy, Denial};
pub use effect::{Effect, EffectKind, HttpRequest};
pub use event::{Cause, Event, Recorded, RecordedEvent};
pub use id::{
    AgentId, ChatUserId, DefinitionHash, EffectId, EscalationId, FlowId, InterruptId, MediaId,
    MessageId, NodeId, OrderKey, Principal, ProxyId, RunId, ScheduleId, ScheduleRunId, Seq,
    SessionId, StepId, StreamId, TenantId, TimerName, Timestamp, WebhookId, WorkflowId,
    WorkspaceId,
};
pub use interrupt::{ApprovalDecision, Interrupt, LINK_VOTER, Resolution, Vote};
pub use memory::{ForkMode, ForkedFrom, MemoryBase, MemoryEntry, MemoryOrigin};
pub use mock::{MockCall, MockEnding, MockScript};
pub use model::{
    EnvelopeEvent, EnvelopeEventKind, EnvelopeFault, ModelAnswer, ModelAnswered, ModelMessage,
    ModelRefusal, ModelRequest, ModelRetry, ModelRole, ModelStop, ModelUsage, RecoveryPath,
    RefusalDivergence,
};
pub use nesting::{
    MAX_NESTING, MAX_READABLE_NESTING, map_nests_deeper, nests_deeper, value_nests_deeper,
};
pub use pack::{PackAnswer, PackCall, PackLogLine, PackResult, is_reserved_type};
pub use partition::Partition;
pub use question::{QuestionBody, proposed_artifact};
pub use run::{
    ClaimedParent, ErrorInfo, Masking, Owner, ParentCause, ParentLink, RunOptions, RunRequest,
    RunStatus, Sensitivity, TraceContext, Transport,
};
pub use size::Size;
pub use timer::TimerKey;
pub use tool::{ToolOperation, ToolRequest, ToolTransport};
pub use user_data::{UserData, UserDataRefs};
pub use view::{
    ArtifactView, ChildView, ClosedInterrupt, InterruptView, NodeStatus, NodeView, RunView,
};
pub use webhook::{MAX_SIGNING_SECRETS, SecretOverlap, TooManySecrets, Webhook, WebhookHealth};

pub use work::{CapKind, Work};

/// A JSON object, the shape of inputs, outputs, variables and metadata.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Reads an optional value and distinguishes an explicit `null` from absence: a variable set to
/// null must not be read back from the log as unset.
pub(crate) fn present<'de, D>(d: D) -> Result<Option<serde_json::Value>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    serde::Deserialize::deserialize(d).map(Some)
}

pub(crate) fn is_zero_u32(n: &u32) -> bool {
    *n == 0
}
