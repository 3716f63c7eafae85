//! The application layer: the use cases of this host as functions over plain types, between the entry points
//! (HTTP, the console, and every later protocol) and the runtime.
//!
//! Owns what every entry point must do alike: which records a caller may see, admission rules, idempotency
//! keys, and in whose name something is recorded. A use case takes the caller and plain parameters. A use
//! case that changes something also takes an [`Idempotency`] and returns a [`Completion`].
//!
//! It parses and renders nothing: no type of HTTP or of a protocol version appears in its signatures. It does
//! not decide about runs either; that is the engine's.
//!
//! Invariants:
//! - A use case checks the scope it takes, whatever the entry point checked before.
//! - A record of another tenant is reported like one that does not exist.
//! - A mutation is completed even when its caller disconnects.
//! - Under one idempotency key a mutation is executed once. The response that is stored is the one that is sent.

mod admission;
mod app;
mod audit;
mod bulk_cancel;
mod caller_shares;
mod control;
pub mod conversation;
mod create_run;
mod decide;
mod delegations;
mod detached_request;
mod error;
mod fair_shares;
mod fixtures;
mod follow;
mod fork;
mod groups;
mod host_state;
mod idempotency;
mod inbox;
mod key_use;
mod keys;
mod links;
mod list_runs;
mod operations;
mod read_run;
mod reader_memory;
mod registry;
mod request_key;
mod revocations;
mod rfc3339;
mod test_hooks;
mod visibility;
mod webhooks;

pub use app::{App, AppConfig};
pub use bulk_cancel::BulkCancelResult;
pub use caller_shares::{CallerShares, ShareLimits, ShareRefused, ShareScope};
pub use control::{CancelledRun, DeliveredEvent, ExternalEvent, PausedRun, ResumedRun};
pub use create_run::CreateRun;
pub use decide::{AcceptedAnswer, AnswerTarget, AskedBy, SubmittedAnswer};
pub use delegations::Delegate;
pub use error::{AppError, ForbiddenReason, InvalidField, ResourceKind, TenantResource};
pub use fair_shares::{FairShares, HeldShare};
pub use fixtures::runnable_fixtures;
pub use follow::{FollowUpdate, Follower, wait_until_stopping};
pub use fork::{ForkRun, ForkedRun};
pub use groups::SavedGroup;
pub use host_state::WaitingWork;
pub use idempotency::{
    Completion, Idempotency, IdempotencyCheck, KeyedRequest, PendingRefusal, Ticket,
};
pub use keys::{CreateKey, IssuedKey};
pub use links::{DecidingLink, IssuedLink, LinkedInterrupt};
pub use operations::RetriedWork;
pub use read_run::LogPage;
pub use reader_memory::{MAX_WAIT, SMALL_PAGE_BYTES};
pub use registry::{RegisteredDocument, WorkflowOwner};
pub use webhooks::{
    QueuedDelivery, RegisterWebhook, RegisteredWebhook, RotatedWebhook, WebhookSenderView,
};

// Re-exports of the runtime: what use cases take and return, and what entry points tell about the host.
// Entry points need not depend on the runtime, and cannot call it.
pub use tandem_runtime::audit::{CHECKPOINT_ENTRIES, CHECKPOINT_SECONDS};
pub use tandem_runtime::conversation::{AuthzDenial, ScheduleRefusal, SessionRefusal};
pub use tandem_runtime::{
    APPROVAL_ACTIONS, ASK_USER_ROUTINGS, BUDGET_MULTIPLIER, CLARIFICATION_ROUNDS, ChatUserFilter,
    Definition, DelegationRecord, DeliveryRow, DeliveryState, ENGINE_VERSION, ENVELOPES_PER_TURN,
    EscalationAssignee, FAN_OUT_POLICIES, Fault, GroupRecord, HORIZON_EXCEEDED, InboxCursor,
    InboxQuery, InboxSort, InterruptFilter, InterruptRow, JOIN_MODES, ListedRun, ListingPage,
    MAX_ATTEMPTS, MAX_ENTRY_BYTES, MAX_FAN_OUT, MAX_FUTURE_HORIZON, MOCK_PROVIDERS,
    MODEL_NODE_TYPES, Metrics, MockEntry, NextSteps, ObservedRun, Page, PageLimit, ParkedWork,
    Problem as DocumentProblem, REASONING_TOKEN_LIMIT, Refusal, RegisteredWorkflow, Registration,
    RunFilter, RunFold, RunPosition, RunRow, SIBLING_WRITES, SessionFilter, StoredResponse,
    StoredRun, Subscription, TOOL_NODE_TYPES, Unforkable, WebhookError, accepted_edit,
    advertised_types, compaction_batch_size, count_vote, in_place, webhook_status,
};
