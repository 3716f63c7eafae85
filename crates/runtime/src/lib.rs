//! The only driver: takes commands, calls the engine, makes its decisions durable, and performs
//! their effects.
//!
//! Commands enter only through [`Runtime::submit`] and [`Runtime::create_run`]. There is one clock,
//! one id source and one redactor. The crate owns the outbox workers, the timer loop and the bell.
//! It does not depend on HTTP, wire formats or concrete databases.
//!
//! Invariants:
//! - Nothing is announced (bell, response, effect) before its commit returned.
//! - An effect is attempted only after its identity is in the store.
//! - State in memory is a cache of the log; losing it costs a read, nothing else.

mod audit_actions;
mod bell;
mod byte_cache;
mod cache_epochs;
mod clock;
mod codec;
mod config;
pub mod conversation;
mod crash;
mod decide;
mod decision_input;
mod definitions;
mod driven_machine;
mod effect_results;
mod effects;
mod ended_machines;
mod fold_stream;
mod fork;
mod idempotency;
mod jitter;
mod leases;
mod machine_driver;
mod memory_access;
mod metrics;
mod mock_models;
mod offload;
mod outbox_dispatch;
mod people;
mod query;
mod questions;
mod readiness;
mod redact;
mod redact_decision;
mod registry;
mod retention;
mod run_effects;
mod run_machine;
mod run_trees;
mod runtime;
mod start_run;
mod stored_head;
mod stream_cache;
mod submit;
mod submit_stream;
mod task_leases;
mod test_clock;
mod timer_bell;
mod timers;
mod transact;
mod transaction;
mod webhooks;
mod work_failures;
mod worker_slots;

pub use audit_actions::AuditAction;
pub use bell::Bell;
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use codec::encode_event;
pub use config::{Perform, RuntimeConfig};
pub use crash::CrashPoints;
pub use decide::{AccessCheck, ProposedAnswer};
pub use driven_machine::{DrivenMachine, ProjectedRows, Projection};
pub use fold_stream::FoldedStream;
pub use fork::{ForkRequest, Unforkable};
pub use leases::LeasedEffect;
pub use machine_driver::{MachineDriver, Machines};
pub use memory_access::{RunMemory, origin_in_event, origin_in_tombstone};
pub use metrics::{KindLabel, Metrics};
pub use offload::in_place;
pub use query::{EventPage, NextStepsPreview, ObservedRun, RunFold};
pub use questions::{accepted_edit, digest};
pub use redact::Redactor;
pub use registry::{RegisterError, Registration, RegistrationReport};
pub use retention::Retention;
pub use runtime::Runtime;
pub use submit::{CommandOutcome, IdempotencyRequest, NewRun, RenderResponse, SubmitError};
pub use submit_stream::{CommitRecord, RecordsFn};
pub use task_leases::HostTask;
pub use test_clock::CLOCK_OFFSET;
pub use transact::TransactionParts;
pub use transaction::{Companion, Transaction};
pub use webhooks::{
    Announcement, MAX_WEBHOOKS, StarterAccess, Subscription, WebhookDelivery, WebhookError,
    WebhookSender, WebhookStatus, webhook_status,
};

// Re-exports of the engine and the store, so that callers need not depend on both.
pub use tandem_engine::definition::{
    ChildReference, ConformanceTypes, Permissions, child_references, document, nearest,
};
pub use tandem_engine::model::{
    BUDGET_MULTIPLIER, CLARIFICATION_ROUNDS, ENVELOPES_PER_TURN, MAX_ATTEMPTS, MOCK_PROVIDER,
    MOCK_PROVIDER_KEY, MOCK_PROVIDERS, NODE_TYPES as MODEL_NODE_TYPES, Provider, Providers,
    content_key,
};
pub use tandem_engine::pack::{AllowedPackTypes, PackType, PackTypes};
pub use tandem_engine::run::{
    AgentPolicy, Limits, MAX_ENTRY_BYTES, MAX_EVENT_ID_CHARS, NextSteps, NoticeRule,
    REASONING_TOKEN_LIMIT, Refusal, Run, SIBLING_WRITES, compaction_batch_size, count_vote,
};
pub use tandem_engine::tool::{NODE_TYPES as TOOL_NODE_TYPES, ToolServers};
pub use tandem_engine::{
    APPROVAL_ACTIONS, ASK_USER_ROUTINGS, Availability, Definition, ENGINE_VERSION,
    FAN_OUT_POLICIES, JOIN_MODES, MAX_FAN_OUT, Problem, advertised_types, node_type,
};
pub use tandem_nodes::{MAX_PROGRAM, MockEntry, MockProgram};
pub use tandem_store::audit;
pub use tandem_store::{
    AuditDraft, ChatUserFilter, ChatUserRow, DelegationRecord, DeliveryListing, DeliveryRow,
    DeliveryState, EscalationAssignee, EscalationFilter, EscalationRow, Fault, GroupRecord,
    IdempotencyKey, IdempotencyRecord, InboxChoices, InboxCursor, InboxPage, InboxQuery, InboxSort,
    InterruptFilter, InterruptListing, InterruptRow, ListedRun, ListingPage, Page, PageLimit,
    ParkedWork, ProxyFilter, ProxyRow, RegisteredWorkflow, RunFilter, RunListing, RunPosition,
    RunRow, ScheduleFilter, ScheduleRow, ScheduleRunRow, SessionFilter, StorageUsage,
    StoredResponse, StoredRun,
};
