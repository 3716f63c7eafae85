//! One idempotency key means one execution. Every use case that changes something takes an [`Idempotency`].
//!
//! An earlier response is looked up before the use case is called. The response is stored in the commit of
//! the mutation. Responses are opaque here: the entry point renders them, once, and the rendered response is
//! both stored and sent. Refusals that a retry may change are never stored.

use crate::app::App;
use crate::detached_request::run_to_completion;
use crate::error::AppError;
use crate::request_key::{self, KeyGuard};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{Partition, Principal, Reply, RunId};
use tandem_runtime::{
    CommandOutcome, IdempotencyKey, IdempotencyRecord, IdempotencyRequest, Refusal, StoredResponse,
    SubmitError,
};

/// How long a request waits for another one with the same key before it is refused.
const DUPLICATE_WAIT: Duration = Duration::from_secs(10);

/// A request with an idempotency key, as an entry point received it.
pub struct KeyedRequest<'a> {
    /// The caller's own text; never logged, never stored.
    pub key: &'a str,
    /// A key is valid for one operation, for example a method with its route.
    pub operation: &'a str,
    /// What is asked: for example the path with its parameters, and the body.
    pub target: &'a str,
    pub body: &'a [u8],
    /// Set where the answer depends on who asks. Another principal's request under the same key is then
    /// another request.
    pub principal: Option<&'a Principal>,
}

/// Whether a request is to be executed.
pub enum IdempotencyCheck {
    New(Ticket),
    /// The response to an earlier request with the same key.
    Replay(StoredResponse),
}

/// The right to execute a request once.
pub struct Ticket(Option<IdempotencyClaim>);

struct IdempotencyClaim {
    key: IdempotencyKey,
    digest: String,
    /// Requests with the same key wait until this is dropped.
    held: Arc<KeyGuard>,
}

/// A claimed key whose refusal may be stored later, when the response leaves.
pub struct PendingRefusal {
    key: IdempotencyKey,
    digest: String,
    /// Requests with the same key wait until the refusal is stored.
    _held: Arc<KeyGuard>,
}

/// Renders what came of a use case, for storage. `None` for what must not be repeated.
type Render<T> = Arc<dyn Fn(Result<&T, &Refusal>) -> Option<StoredResponse> + Send + Sync>;

/// The ticket of a request, and how its response is rendered for storage.
pub struct Idempotency<T> {
    ticket: Ticket,
    render: Option<Render<T>>,
}

/// What came of a use case that is executed once per key.
pub enum Completion<T> {
    Done(T),
    /// Another process executed the request under the same key first; this is its response.
    Replayed(StoredResponse),
}

/// Whether a mutation and its response were stored.
pub(crate) enum Committed {
    Done,
    /// Another request committed first with the same key.
    KeyUsed,
}

impl<T> Completion<T> {
    /// The outcome of a request without a key: it is never replayed.
    pub fn done(self) -> T {
        match self {
            Self::Done(value) => value,
            Self::Replayed(_) => unreachable!("a request without a key is not replayed"),
        }
    }
}

impl Ticket {
    /// For a request without a key: the mutation itself detects a repetition.
    pub fn without_key() -> Self {
        Self(None)
    }

    pub fn storing<T>(
        self,
        render: impl Fn(Result<&T, &Refusal>) -> Option<StoredResponse> + Send + Sync + 'static,
    ) -> Idempotency<T> {
        Idempotency {
            ticket: self,
            render: Some(Arc::new(render)),
        }
    }

    /// For a refusal that happens before there is a commit which could store it. `None` without a key.
    pub fn pending_refusal(&self) -> Option<PendingRefusal> {
        self.0.as_ref().map(|claim| PendingRefusal {
            key: claim.key.clone(),
            digest: claim.digest.clone(),
            _held: Arc::clone(&claim.held),
        })
    }
}

impl<T: 'static> Idempotency<T> {
    /// Without a key nothing is stored.
    pub fn none() -> Self {
        Self {
            ticket: Ticket::without_key(),
            render: None,
        }
    }

    /// The part of a command's commit that stores the response. `convert` reads what the command led to;
    /// `None` where its response is not stored.
    pub(crate) fn for_command(
        &self,
        convert: impl Fn(&CommandOutcome<'_>) -> Option<Result<T, Refusal>> + Send + Sync + 'static,
    ) -> Option<IdempotencyRequest> {
        let (claim, render) = (self.ticket.0.as_ref()?, self.render.clone()?);
        Some(IdempotencyRequest {
            key: claim.key.clone(),
            digest: claim.digest.clone(),
            render: Arc::new(move |outcome| {
                let outcome = convert(outcome)?;
                render(outcome.as_ref())
            }),
        })
    }

    /// The same for a run that is created: the outcome is its id.
    pub(crate) fn for_creation(
        &self,
        convert: impl Fn(&RunId) -> T + Send + Sync + 'static,
    ) -> Option<IdempotencyRequest> {
        self.for_command(move |outcome| match outcome {
            CommandOutcome::Created(run) => Some(Ok(convert(run))),
            CommandOutcome::Refused(refusal) => Some(Err((*refusal).clone())),
            CommandOutcome::Replied(..) => None,
        })
    }

    /// The same for a command to a run.
    pub(crate) fn for_reply(
        &self,
        convert: impl Fn(&RunId, &Reply) -> T + Send + Sync + 'static,
    ) -> Option<IdempotencyRequest> {
        self.for_command(move |outcome| match outcome {
            CommandOutcome::Replied(run, reply) => Some(Ok(convert(run, reply))),
            CommandOutcome::Refused(refusal) => Some(Err((*refusal).clone())),
            CommandOutcome::Created(_) => None,
        })
    }

    /// The record of a response that is known before its commit.
    fn record(&self, app: &App, value: &T) -> Option<IdempotencyRecord> {
        let (claim, render) = (self.ticket.0.as_ref()?, self.render.as_ref()?);
        Some(IdempotencyRecord {
            key: claim.key.clone(),
            digest: claim.digest.clone(),
            response: render(Ok(value))?,
            recorded_at: app.now(),
            session: None,
        })
    }

    /// The key and the digest, to find the response of whoever committed first.
    fn named(&self) -> Option<(IdempotencyKey, String)> {
        let claim = self.ticket.0.as_ref()?;
        Some((claim.key.clone(), claim.digest.clone()))
    }
}

impl App {
    /// Looks up an earlier response. If a request with the same key is in progress, waits for its
    /// response.
    pub async fn begin(
        &self,
        caller: &Partition,
        request: &KeyedRequest<'_>,
    ) -> Result<IdempotencyCheck, AppError> {
        let key = request_key::storage_key(caller, request.operation, request.key);
        let digest = request_key::digest(request.principal, request.target, request.body);
        let held = tokio::time::timeout(DUPLICATE_WAIT, self.inner.in_flight.hold(&key))
            .await
            .map_err(|_| AppError::IdempotencyKeyInFlight)?;
        if let Some(before) = self.find_stored_response(&key, &digest).await? {
            return Ok(IdempotencyCheck::Replay(before));
        }
        Ok(IdempotencyCheck::New(Ticket(Some(IdempotencyClaim {
            key,
            digest,
            held: Arc::new(held),
        }))))
    }

    /// Stores a final refusal that no commit stored. An existing response is never replaced. A failure
    /// is logged: a repeated request gets the same refusal again.
    pub async fn store_refusal(&self, pending: PendingRefusal, refused: StoredResponse) {
        // It may quote the request, and it is stored outside of any run.
        let response = StoredResponse {
            body: self.runtime().redacted_json(refused.body),
            ..refused
        };
        let record = IdempotencyRecord {
            key: pending.key.clone(),
            digest: pending.digest.clone(),
            response,
            recorded_at: self.now(),
            session: None,
        };
        if let Err(fault) = self.runtime().store_idempotency_record(record).await {
            tracing::warn!(error = %fault, "the refusal was not stored under its idempotency key");
        }
    }

    async fn find_stored_response(
        &self,
        key: &IdempotencyKey,
        digest: &str,
    ) -> Result<Option<StoredResponse>, AppError> {
        match self.runtime().find_idempotency_record(key).await? {
            Some(record) if record.digest == digest => Ok(Some(record.response)),
            Some(_) => Err(AppError::IdempotencyKeyMismatch),
            None => Ok(None),
        }
    }

    /// Executes a command whose commit stores the response. It completes even if the caller
    /// disconnects. The mutation is boxed because it is large and would otherwise be copied at every
    /// step.
    pub(crate) async fn execute<T: Send + 'static>(
        &self,
        idempotency: Idempotency<T>,
        mutation: Pin<Box<dyn Future<Output = Result<T, SubmitError>> + Send>>,
    ) -> Result<Completion<T>, AppError> {
        let named = idempotency.named();
        let outcome = run_to_completion(async move {
            let outcome = mutation.await;
            // From here on a request with the same key can find the response, whether or not the
            // caller still waits.
            drop(idempotency);
            outcome
        });
        match outcome.await {
            Ok(value) => Ok(Completion::Done(value)),
            // Another process committed first with the same key.
            Err(SubmitError::IdempotencyKeyUsed) => self.replay_of(named).await,
            Err(other) => Err(AppError::from_submit(other, &self.inner.host_id)),
        }
    }

    /// Executes a mutation of one commit, whose response is known before it and stored in it.
    pub(crate) async fn execute_with_response<T, F>(
        &self,
        idempotency: Idempotency<T>,
        value: T,
        mutation: impl FnOnce(Option<IdempotencyRecord>) -> F,
    ) -> Result<Completion<T>, AppError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Committed, AppError>> + Send + 'static,
    {
        let named = idempotency.named();
        let mutation = mutation(idempotency.record(self, &value));
        let outcome = run_to_completion(async move {
            let outcome = mutation.await;
            drop(idempotency);
            outcome
        });
        match outcome.await? {
            Committed::Done => Ok(Completion::Done(value)),
            Committed::KeyUsed => self.replay_of(named).await,
        }
    }

    /// Stores the response of a mutation that is already done. Only for mutations that may be
    /// repeated: after a crash right before this call the response is lost, and a retry executes
    /// the mutation again.
    pub(crate) async fn complete<T: 'static>(
        &self,
        idempotency: Idempotency<T>,
        value: T,
    ) -> Result<Completion<T>, AppError> {
        if let Some(mut record) = idempotency.record(self, &value) {
            // It may quote the request, and it is stored outside of any run.
            record.response.body = self.runtime().redacted_json(record.response.body);
            self.runtime().store_idempotency_record(record).await?;
        }
        Ok(Completion::Done(value))
    }

    async fn replay_of<T>(
        &self,
        named: Option<(IdempotencyKey, String)>,
    ) -> Result<Completion<T>, AppError> {
        let before = match named {
            Some((key, digest)) => self.find_stored_response(&key, &digest).await?,
            None => None,
        };
        let before = before.ok_or(AppError::IdempotencyKeyInFlight)?;
        Ok(Completion::Replayed(before))
    }
}
