//! The only driver: takes commands, asks the engine, makes its decisions durable, and carries out
//! what they ask of the world.
//!
//! One way in ([`Runtime::submit`] and [`Runtime::create_run`]), one clock, one id source, one
//! redactor. Owns the outbox workers, the timer loop and the bell. Refuses to know HTTP, wire
//! shapes and databases.
//!
//! Invariants:
//! - Nothing is announced (bell, answer, effect) before its commit returned.
//! - An effect is attempted only after its identity is in the store.
//! - The state kept in memory is a cache of the log; losing it costs a read, nothing else.

mod answers;
mod bell;
mod byte_cache;
mod clock;
mod codec;
mod config;
mod crash;
mod deciding;
mod decision_input;
mod deeds;
mod definitions;
mod durable;
mod effects;
mod fork;
mod found;
mod live;
mod metrics;
mod mock_models;
mod offload;
mod people;
mod pick_up;
mod query;
mod questions;
mod readiness;
mod redact;
mod registry;
mod remember;
mod retention;
mod runtime;
mod scrub;
mod setbacks;
mod settle;
mod slots;
mod submit;
mod timers;
mod webhooks;

pub use bell::Bell;
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use config::{Perform, RuntimeConfig};
pub use crash::CrashPoints;
pub use deciding::{Judge, Proposal};
pub use fork::{ForkRequest, Unforkable};
pub use metrics::{KindLabel, Metrics};
pub use query::{EventPage, Foreseen, Observed, Unfolded};
pub use questions::{accepted_edit, digest};
pub use redact::Redactor;
pub use registry::{RegisterError, Registration, Told};
pub use remember::{Remembered, origin_in_event, origin_in_tombstone};
pub use retention::Retention;
pub use runtime::Runtime;
pub use settle::CLOCK_OFFSET;
pub use submit::{Answer, Answering, NewRun, Render, SubmitError};
pub use webhooks::{
    Announcement, Courier, MAX_WEBHOOKS, Parcel, Standing, Subscription, WebhookError, standing,
};

// What callers of the runtime need of the engine and the store, so that they need not name both.
pub use tandem_engine::definition::{
    ChildReference, ConformanceTypes, Permissions, child_references, document, nearest,
};
pub use tandem_engine::model::{
    BUDGET_MULTIPLIER, CLARIFICATION_ROUNDS, ENVELOPES_PER_TURN, MAX_ATTEMPTS, MOCK_PROVIDER,
    MOCK_PROVIDER_KEY, MOCK_PROVIDERS, NODE_TYPES as MODEL_NODE_TYPES, Provider, Providers,
    content_key,
};
pub use tandem_engine::pack::{Brought, PackType, PackTypes};
pub use tandem_engine::run::{
    AgentPolicy, Ahead, Limits, MAX_ENTRY_BYTES, MAX_EVENT_ID_CHARS, REASONING_TOKEN_LIMIT,
    Refusal, Run, SIBLING_WRITES, count_vote, sources_at_once,
};
pub use tandem_engine::tool::{NODE_TYPES as TOOL_NODE_TYPES, ToolServers};
pub use tandem_engine::{
    APPROVAL_ACTIONS, ASK_USER_ROUTINGS, Availability, Definition, ENGINE_VERSION,
    FAN_OUT_POLICIES, JOIN_MODES, MAX_FAN_OUT, Problem, advertised_types, node_type,
};
pub use tandem_nodes::{MAX_PROGRAM, MockEntry, MockProgram};
pub use tandem_store::audit;
pub use tandem_store::{
    AuditDraft, DelegationRecord, DeliveryListing, DeliveryRow, DeliveryState, Fault, GroupRecord,
    IdempotencyKey, IdempotencyRecord, InboxChoices, InboxPage, InboxPlace, InboxQuery, InboxSort,
    InterruptFilter, InterruptListing, InterruptRow, ListedRun, Listing, Page, PageLimit,
    ParkedWork, Registered, RunFilter, RunPosition, RunRow, StoredResponse, StoredRun,
};
