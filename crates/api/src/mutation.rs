//! Requests that change something: their body, their permit, and the guarantee that one idempotency
//! key means one mutation.
//!
//! Order: the caller is authenticated and authorized before the body is read; an earlier response
//! is looked up before the body is validated; the response is stored in the commit of the mutation.
//! Refusals before a commit are stored when the response leaves (`stored_response.rs`); refusals
//! that a retry may change are never stored.

use crate::api::{ApiState, SharedState};
use crate::body;
use crate::detached_request::run_to_completion;
use crate::idempotency::{self, KeyGuard};
use crate::problem::Problem;
use crate::request_permits::RequestPermit;
use crate::resolve_interrupt;
use crate::response::{ApiResponse, replay};
use crate::stored_response::RefusalRecorder;
use crate::verb;
use axum::extract::{FromRequest, MatchedPath, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tandem_access::Identity;
use tandem_record::{Command, Partition, Principal, Reply, RunId};
use tandem_runtime::{
    AccessCheck, CommandOutcome, ForkRequest, IdempotencyKey, IdempotencyRecord,
    IdempotencyRequest, NewRun, ProposedAnswer, Refusal, Runtime, StoredResponse, StoredRun,
    SubmitError,
};

const MAX_KEY_CHARS: usize = 255;
/// How long a request waits for another one with the same key before it gets `Retry-After`.
const DUPLICATE_WAIT: Duration = Duration::from_secs(10);

/// How a route renders the reply to an accepted command.
pub(crate) type RenderReply = fn(&RunId, &Reply) -> ApiResponse;

pub(crate) struct Mutation {
    body: Bytes,
    key: Option<IdempotencyHeader>,
    /// Acquired once the tenant is known, and held as long as the request.
    permit: OnceLock<RequestPermit>,
}

/// An idempotency key, with the request it was sent for.
struct IdempotencyHeader {
    /// The caller's own text; never logged, never stored.
    text: String,
    /// Method and route template: a key is valid for one operation.
    operation: String,
    /// The request path, including parameters.
    path: String,
    refusal_recorder: Option<RefusalRecorder>,
}

impl IdempotencyHeader {
    fn from_parts(parts: &Parts) -> Result<Option<Self>, Problem> {
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(None);
        };
        let text = value.to_str().unwrap_or_default();
        if !(1..=MAX_KEY_CHARS).contains(&text.chars().count()) {
            let message = format!("must have 1 to {MAX_KEY_CHARS} visible characters");
            return Err(Problem::invalid("Idempotency-Key", message));
        }
        let template = parts.extensions.get::<MatchedPath>();
        let template =
            template.map_or_else(String::new, |path| verb::public_template(path.as_str()));
        Ok(Some(Self {
            text: text.to_owned(),
            operation: format!("{} {template}", parts.method),
            path: parts.uri.path().to_owned(),
            refusal_recorder: parts.extensions.get().cloned(),
        }))
    }
}

impl FromRequest<SharedState> for Mutation {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &SharedState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, &api.settings).await?;
        Ok(Self {
            body,
            key: IdempotencyHeader::from_parts(&parts)?,
            permit: OnceLock::new(),
        })
    }
}

/// Whether a request is to be executed.
pub(crate) enum IdempotencyCheck {
    New(Ticket),
    /// The response to an earlier request with the same key.
    Replay(Response),
}

/// The result of a mutation that stores its own response.
pub(crate) enum MutationOutcome {
    Done,
    /// Another request with the same key committed first; its response is used.
    IdempotencyKeyUsed,
}

/// The right to execute a request once.
pub(crate) struct Ticket(Option<IdempotencyClaim>);

struct IdempotencyClaim {
    key: IdempotencyKey,
    digest: String,
    /// Requests with the same key wait until this is dropped.
    _held: Arc<KeyGuard>,
}

impl Mutation {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        body::parse(&self.body)
    }

    pub(crate) fn optional_json<T: DeserializeOwned + Default>(&self) -> Result<T, Problem> {
        body::parse_optional(&self.body)
    }

    /// Looks up an earlier response. If a request with the same key is in progress, waits for its
    /// response.
    pub(crate) async fn begin(
        &self,
        api: &ApiState,
        caller: &Identity,
    ) -> Result<IdempotencyCheck, Problem> {
        self.begin_for(api, &caller.partition()).await
    }

    /// The same for what depends on who asks: a decision counts for its principal, and a secret is
    /// shown to whom it was made for. Another principal's request under the same key is another request.
    pub(crate) async fn begin_for_principal(
        &self,
        api: &ApiState,
        caller: &Identity,
    ) -> Result<IdempotencyCheck, Problem> {
        let principal = Some(&caller.principal);
        self.begin_with(api, &caller.partition(), principal).await
    }

    /// The same for whoever has no identity beyond whose data they act on.
    pub(crate) async fn begin_for(
        &self,
        api: &ApiState,
        caller: &Partition,
    ) -> Result<IdempotencyCheck, Problem> {
        self.begin_with(api, caller, None).await
    }

    async fn begin_with(
        &self,
        api: &ApiState,
        caller: &Partition,
        principal: Option<&Principal>,
    ) -> Result<IdempotencyCheck, Problem> {
        // Only now: a caller who sends slowly must not keep others out.
        let permit = api
            .request_permits
            .acquire(&caller.tenant, self.body.len())
            .await?;
        self.permit.get_or_init(|| permit);
        let Some(sent) = &self.key else {
            return Ok(IdempotencyCheck::New(Ticket(None)));
        };
        let key = idempotency::storage_key(caller, &sent.operation, &sent.text);
        let digest = idempotency::digest(principal, &sent.path, &self.body);
        let held = tokio::time::timeout(DUPLICATE_WAIT, api.in_flight.hold(&key))
            .await
            .map_err(|_| Problem::key_in_flight())?;
        if let Some(before) = find_stored_response(api, &key, &digest).await? {
            return Ok(IdempotencyCheck::Replay(before));
        }
        let held = Arc::new(held);
        if let Some(refusal_recorder) = &sent.refusal_recorder {
            refusal_recorder.set_request(&key, &digest, &held);
        }
        Ok(IdempotencyCheck::New(Ticket(Some(IdempotencyClaim {
            key,
            digest,
            _held: held,
        }))))
    }
}

async fn find_stored_response(
    api: &ApiState,
    key: &IdempotencyKey,
    digest: &str,
) -> Result<Option<Response>, Problem> {
    match api.runtime.find_idempotency_record(key).await? {
        Some(record) if record.digest == digest => Ok(Some(replay(record.response))),
        Some(_) => Err(Problem::key_mismatch()),
        None => Ok(None),
    }
}

impl Ticket {
    /// For a mutation without a key: a form, where the mutation itself detects a repetition.
    pub(crate) fn without_key() -> Self {
        Self(None)
    }

    /// Submits a command to a run and renders the response.
    pub(crate) async fn submit(
        self,
        api: &SharedState,
        caller: &Identity,
        run: RunId,
        command: Command,
        render_reply: RenderReply,
    ) -> Result<Response, Problem> {
        let answering = self.stored_reply(move |answer| match answer {
            CommandOutcome::Replied(run, reply) => Some(render_reply(run, reply).stored()),
            CommandOutcome::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            CommandOutcome::Created(_) => None,
        });
        let (runtime, partition) = (api.runtime_of(caller), caller.partition());
        let named = run.clone();
        let outcome = self
            .execute(
                api,
                Box::pin(async move {
                    let reply = runtime.submit(&partition, &run, command, answering).await?;
                    Ok(render_reply(&run, &reply).into_response())
                }),
            )
            .await;
        match outcome {
            // The runtime reports a missing run and a run of another owner in the same way.
            Err(problem) if problem.code() == "not_found" => {
                api.load_run_or_expired(caller, &named).await?;
                Err(problem)
            }
            outcome => outcome,
        }
    }

    /// Resolves an interrupt, if `access` permits it for the runtime's caller.
    pub(crate) async fn decide(
        self,
        api: &SharedState,
        runtime: Runtime,
        caller: Partition,
        run: RunId,
        proposal: ProposedAnswer,
        authorize: AccessCheck,
    ) -> Result<Response, Problem> {
        let answering = self.stored_reply(move |answer| match answer {
            // Not stored: the caller may be permitted later.
            CommandOutcome::Replied(_, Reply::Denied { .. }) => None,
            CommandOutcome::Replied(run, reply) => {
                Some(resolve_interrupt::render_resolved(run, reply).stored())
            }
            // The route renders this refusal differently, and it stays true without being stored.
            CommandOutcome::Refused(Refusal::InterruptGone) => None,
            CommandOutcome::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            CommandOutcome::Created(_) => None,
        });
        self.execute(
            api,
            Box::pin(async move {
                let reply = runtime
                    .decide(&caller, &run, proposal, authorize, answering)
                    .await?;
                Ok(resolve_interrupt::render_resolved(&run, &reply).into_response())
            }),
        )
        .await
    }

    /// Creates a run and renders the response.
    pub(crate) async fn create(
        self,
        api: &SharedState,
        caller: &Identity,
        new: NewRun,
        render_reply: fn(&RunId) -> ApiResponse,
    ) -> Result<Response, Problem> {
        let answering = self.stored_reply(move |answer| match answer {
            CommandOutcome::Created(run) => Some(render_reply(run).stored()),
            CommandOutcome::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            CommandOutcome::Replied(..) => None,
        });
        let runtime = api.runtime_of(caller);
        self.execute(
            api,
            Box::pin(async move {
                let run = runtime.create_run(new, answering).await?;
                Ok(render_reply(&run).into_response())
            }),
        )
        .await
    }

    /// Forks a run and renders the response.
    pub(crate) async fn fork(
        self,
        api: &SharedState,
        caller: &Identity,
        source: StoredRun,
        requested: ForkRequest,
    ) -> Result<Response, Problem> {
        let (source_run, from_seq, mode) = (
            source.row.run_id.clone(),
            requested.from_seq,
            requested.mode,
        );
        let render_reply = move |run: &RunId| {
            ApiResponse::created(json!({
                "runId": run,
                "sourceRunId": source_run,
                "fromSeq": from_seq,
                "mode": mode.as_str(),
                "status": "pending",
                "eventsUrl": format!("/v1/runs/{run}/events"),
            }))
        };
        let stored = render_reply.clone();
        let answering = self.stored_reply(move |answer| match answer {
            CommandOutcome::Created(run) => Some(stored(run).stored()),
            CommandOutcome::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            CommandOutcome::Replied(..) => None,
        });
        let runtime = api.runtime_of(caller);
        self.execute(
            api,
            Box::pin(async move {
                let run = runtime.fork_run(&source, requested, answering).await?;
                Ok(render_reply(&run).into_response())
            }),
        )
        .await
    }

    /// Executes a mutation of one commit, which also stores the response.
    pub(crate) async fn commit_with_response<F>(
        self,
        api: &SharedState,
        response: ApiResponse,
        mutation: impl FnOnce(Option<IdempotencyRecord>) -> F,
    ) -> Result<Response, Problem>
    where
        F: Future<Output = Result<MutationOutcome, Problem>> + Send + 'static,
    {
        let stored = response.stored();
        self.commit_storing(api, response, stored, mutation).await
    }

    /// The same where a repetition gets another answer than the first request.
    pub(crate) async fn commit_storing<F>(
        self,
        api: &SharedState,
        response: ApiResponse,
        stored: StoredResponse,
        mutation: impl FnOnce(Option<IdempotencyRecord>) -> F,
    ) -> Result<Response, Problem>
    where
        F: Future<Output = Result<MutationOutcome, Problem>> + Send + 'static,
    {
        let named = self.0.as_ref().map(|k| (k.key.clone(), k.digest.clone()));
        let record = named.clone().map(|(key, digest)| IdempotencyRecord {
            key,
            digest,
            response: stored,
            recorded_at: api.now(),
        });
        let mutation = mutation(record);
        let outcome = run_to_completion(async move {
            let outcome = mutation.await;
            drop(self);
            outcome
        });
        match (outcome.await?, named) {
            (MutationOutcome::Done, _) => Ok(response.into_response()),
            (MutationOutcome::IdempotencyKeyUsed, Some((key, digest))) => {
                let before = find_stored_response(api, &key, &digest).await?;
                before.ok_or_else(Problem::key_in_flight)
            }
            (MutationOutcome::IdempotencyKeyUsed, None) => Err(Problem::key_in_flight()),
        }
    }

    /// Stores the response of a mutation that is already done. Only for mutations that may be
    /// repeated: after a crash right before this call the response is lost, and a retry executes
    /// the mutation again.
    pub(crate) async fn complete(
        self,
        api: &ApiState,
        response: ApiResponse,
    ) -> Result<Response, Problem> {
        if let Some(claim) = self.0 {
            let record = IdempotencyRecord {
                key: claim.key,
                digest: claim.digest,
                response: response.stored(),
                recorded_at: api.now(),
            };
            api.runtime.store_idempotency_record(record).await?;
        }
        Ok(response.into_response())
    }

    fn stored_reply(
        &self,
        render: impl Fn(&CommandOutcome<'_>) -> Option<StoredResponse> + Send + Sync + 'static,
    ) -> Option<IdempotencyRequest> {
        self.0.as_ref().map(|claim| IdempotencyRequest {
            key: claim.key.clone(),
            digest: claim.digest.clone(),
            render: Arc::new(render),
        })
    }

    /// The mutation is boxed because it is large and would otherwise be copied at every step.
    async fn execute(
        self,
        api: &SharedState,
        mutation: Pin<Box<dyn Future<Output = Result<Response, SubmitError>> + Send>>,
    ) -> Result<Response, Problem> {
        let named = self.0.as_ref().map(|k| (k.key.clone(), k.digest.clone()));
        let outcome = run_to_completion(async move {
            let outcome = mutation.await;
            // From here on a request with the same key can find the response, whether or not the
            // caller still waits.
            drop(self);
            outcome
        });
        match (outcome.await, named) {
            (Ok(response), _) => Ok(response),
            // Another process committed first with the same key.
            (Err(SubmitError::IdempotencyKeyUsed), Some((key, digest))) => {
                let before = find_stored_response(api, &key, &digest).await?;
                before.ok_or_else(Problem::key_in_flight)
            }
            (Err(SubmitError::ScopeBusy(active)), _) => {
                Err(Problem::scope_busy(active.as_ref(), &api.host.host_id))
            }
            (Err(other), _) => Err(other.into()),
        }
    }
}
