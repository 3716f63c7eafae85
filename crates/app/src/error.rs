//! Why a use case was not carried out. Entry points translate this to their own codes; HTTP does so in one
//! place.

use tandem_access::{Denied, KeyChangeDenied, KeyError, Scope};
use tandem_record::{Denial, Principal, RunId, Seq, TenantId, Timestamp};
use tandem_runtime::conversation::{AuthzDenial, ScheduleRefusal, SessionRefusal};
use tandem_runtime::{
    Fault, Problem, Refusal, RegisterError, SubmitError, Unforkable, WebhookError,
};

/// The error of every use case.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppError {
    #[error("there is no such {}", .0.as_str())]
    NotFound(ResourceKind),
    #[error(transparent)]
    Forbidden(#[from] ForbiddenReason),
    /// Parts of the request are wrong.
    #[error("the request has {} invalid fields", .0.len())]
    Invalid(Vec<InvalidField>),
    /// A workflow document is wrong: errors first, then warnings.
    #[error("the document has {} problems", .0.len())]
    InvalidDocument(Vec<Problem>),
    #[error("at most {limit} runs can be named at once")]
    TooManyRuns { limit: usize },
    /// Nothing may be sent to this URL.
    #[error("the URL is rejected: {0}")]
    UrlRejected(String),
    #[error("there is no mock provider {0:?}")]
    UnsupportedMockProvider(String),
    #[error("only engine version {served} is served")]
    UnsupportedEngineVersion { served: u32 },
    #[error("this host does not provide {0}")]
    NotProvided(&'static str),
    /// The engine refused the command.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Unforkable(#[from] Unforkable),
    /// Another live run holds the scope.
    #[error("run {active:?} is active in this scope on {host}")]
    ScopeBusy { active: Option<RunId>, host: String },
    /// The caller may not decide this question; it stays open and the attempt is recorded.
    #[error("not allowed to decide: {}", .why.as_str())]
    MayNotDecide { by: Option<Principal>, why: Denial },
    /// The question shows something else than what its decider saw.
    #[error("what was decided on is not what is asked now")]
    ArtifactChanged { digest: String },
    #[error("the question was decided before: {outcome}")]
    AlreadyResolved {
        outcome: String,
        by: Option<String>,
        at: Timestamp,
    },
    #[error("the link has expired")]
    LinkExpired,
    /// The run is known, but its log is past retention.
    #[error("the run's log is not kept any more")]
    RunExpired,
    #[error("the run has no event {seq}; its last one is {last}")]
    BeyondEnd { seq: Seq, last: Seq },
    #[error("the run's log is too large for this")]
    LogTooLarge,
    #[error("the idempotency key was used with a different request")]
    IdempotencyKeyMismatch,
    #[error("another request with this idempotency key is under way")]
    IdempotencyKeyInFlight,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// There is no good version of the agent.
    #[error("the agent cannot be used: its files have errors")]
    AgentInvalid,
    /// The agent's rules do not allow it. The denial is recorded.
    #[error("the agent's rules do not allow this")]
    AdminDenied(AuthzDenial),
    /// The schedule refused the command.
    #[error(transparent)]
    ScheduleRefused(ScheduleRefusal),
    /// The session refused the command.
    #[error(transparent)]
    SessionRefused(SessionRefusal),
    /// A request of a network that its transport does not accept as one.
    #[error("the request is not signed by the network, or is too old")]
    InvalidSignature,
    /// Only the runtime ends this wait.
    #[error("nobody can answer this from outside")]
    NotAnswerable,
    /// The run of a flow, which only its conversation changes.
    #[error("the run belongs to a conversation")]
    FlowRun,
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// One wrong part of a request: a JSON pointer or the name of a parameter, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    pub path: String,
    pub message: String,
}

impl InvalidField {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// What was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    Run,
    Interrupt,
    Workflow,
    Artifact,
    Receipt,
    Key,
    Group,
    Delegation,
    Webhook,
    Delivery,
    /// A run or webhook with parked work.
    ParkedSubject,
    /// A conversational agent.
    Agent,
    Session,
    ChatUser,
    Escalation,
    /// A bridge between a session and a desk.
    Proxy,
    /// A transport of an agent to which messages are delivered.
    Transport,
    /// A recording or file of a session.
    Media,
    Schedule,
    /// An occurrence of a schedule.
    ScheduleRun,
}

impl ResourceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Interrupt => "question",
            Self::Workflow => "workflow",
            Self::Artifact => "artifact",
            Self::Receipt => "receipt",
            Self::Key => "key",
            Self::Group => "group",
            Self::Delegation => "delegation",
            Self::Webhook => "webhook",
            Self::Delivery => "delivery",
            Self::ParkedSubject => "run or webhook",
            Self::Agent => "agent",
            Self::Session => "session",
            Self::ChatUser => "user",
            Self::Escalation => "escalation",
            Self::Proxy => "bridge",
            Self::Transport => "transport",
            Self::Media => "recording",
            Self::Schedule => "schedule",
            Self::ScheduleRun => "occurrence",
        }
    }
}

/// Why the caller may not do this.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ForbiddenReason {
    #[error("the key lacks the scope {0}")]
    Scope(Scope),
    /// Whoever receives deliveries reads runs.
    #[error("webhooks also take the scope {0}")]
    WebhookReader(Scope),
    #[error("the run belongs to another workspace")]
    OtherWorkspace,
    /// The record belongs to the other kind of key, test or live, of the caller's own tenant.
    #[error("the run was made with the other kind of key")]
    OtherKeyKind {
        test_key: bool,
        key_tenant: TenantId,
        acts_in: TenantId,
        run_in: TenantId,
    },
    #[error("the key belongs to another tenant")]
    OtherTenant,
    #[error("the key does not belong to this tenant or workspace")]
    NotMember,
    #[error("the key is bound to another workspace")]
    BoundToOtherWorkspace,
    /// The resource concerns every workspace, and the key is bound to one.
    #[error("the key is bound to a workspace")]
    BoundToWorkspace(TenantResource),
    /// The key is good for the conversations of one agent, and nothing else.
    #[error("the key is good for one agent only")]
    BoundToAgent,
    #[error("the workflow belongs to the whole tenant")]
    WorkflowOfTenant,
    #[error("only test keys may force an engine version")]
    EngineVersion,
    #[error("only test keys may name a mock provider")]
    MockProvider { requested: Option<String> },
    #[error("the link may show, but not decide")]
    LinkOnlyShows,
    #[error("the principal of the link has no good key for it")]
    LinkRevoked,
    #[error(transparent)]
    KeyChange(#[from] KeyChangeDenied),
}

/// What keys bound to a workspace cannot reach, because it concerns every workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantResource {
    People,
    ParkedWork,
    Storage,
    AuditLog,
}

impl AppError {
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![InvalidField::new(path, message)])
    }

    /// Whether the host is at fault, and not the request.
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Fault(_) | Self::Key(KeyError::Fault(_)) | Self::Webhook(WebhookError::Fault(_))
        )
    }
}

impl From<SessionRefusal> for AppError {
    fn from(refusal: SessionRefusal) -> Self {
        match refusal {
            SessionRefusal::Unknown => Self::NotFound(ResourceKind::Session),
            SessionRefusal::EscalationNotFound => Self::NotFound(ResourceKind::Escalation),
            SessionRefusal::InvalidInput(message) => Self::invalid("/input", message),
            refusal => Self::SessionRefused(refusal),
        }
    }
}

impl From<Denied> for AppError {
    fn from(denied: Denied) -> Self {
        ForbiddenReason::Scope(denied.scope).into()
    }
}

impl From<KeyChangeDenied> for AppError {
    fn from(denied: KeyChangeDenied) -> Self {
        ForbiddenReason::KeyChange(denied).into()
    }
}

impl From<RegisterError> for AppError {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Invalid(problems) => Self::InvalidDocument(problems),
            RegisterError::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl AppError {
    /// The error of a command. `host` is the name of this host, for whoever waits for a scope.
    pub(crate) fn from_submit(error: SubmitError, host: &str) -> Self {
        match error {
            SubmitError::NotFound => Self::NotFound(ResourceKind::Run),
            SubmitError::WorkflowNotFound => Self::NotFound(ResourceKind::Workflow),
            SubmitError::Refused(refusal) => Self::Refused(refusal),
            SubmitError::IdempotencyKeyUsed => Self::IdempotencyKeyInFlight,
            SubmitError::Unforkable(why) => Self::Unforkable(why),
            SubmitError::ScopeBusy(active) => Self::ScopeBusy {
                active,
                host: host.to_owned(),
            },
            SubmitError::Denied { by, why } => Self::MayNotDecide { by, why },
            SubmitError::ArtifactChanged { digest } => Self::ArtifactChanged { digest },
            SubmitError::FlowRun => Self::FlowRun,
            // Only the runtime itself submits results of effects.
            SubmitError::LeaseLost => Fault::retryable("contended", error.to_string()).into(),
            SubmitError::Fault(fault) => Self::Fault(fault),
        }
    }
}
