//! Requests that change something: their body, their permit, and the guarantee that one idempotency
//! key means one mutation.
//!
//! The application layer executes a request once per key; here its responses are rendered.
//!
//! Order: the caller is authenticated and authorized before the body is read; an earlier response
//! is looked up before the body is validated; the response is stored in the commit of the mutation.
//! Refusals before a commit are stored when the response leaves (`stored_response.rs`); refusals
//! that a retry may change are never stored.

use crate::api::{ApiState, SharedState};
use crate::body;
use crate::problem::Problem;
use crate::request_permits::RequestPermit;
use crate::response::{ApiResponse, replay};
use crate::stored_response::RefusalRecorder;
use crate::verb;
use axum::extract::{FromRequest, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::sync::{Arc, OnceLock};
use tandem_access::Identity;
use tandem_app::{AppError, Completion, Idempotency, KeyedRequest, Ticket};
use tandem_record::{AgentId, Partition, Principal};

const MAX_KEY_CHARS: usize = 255;

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

impl Mutation {
    /// The `Idempotency-Key` of the request.
    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        self.key.as_ref().map(|sent| sent.text.as_str())
    }

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
        self.begin_with(api, &caller.partition(), None, caller.agent.as_ref())
            .await
    }

    /// The same for what depends on who asks: a decision counts for its principal, and a secret is
    /// shown to whom it was made for. Another principal's request under the same key is another request.
    pub(crate) async fn begin_for_principal(
        &self,
        api: &ApiState,
        caller: &Identity,
    ) -> Result<IdempotencyCheck, Problem> {
        let principal = Some(&caller.principal);
        self.begin_with(api, &caller.partition(), principal, caller.agent.as_ref())
            .await
    }

    /// The same for what depends on the admin who asks: many admins may use one key. Another admin's request
    /// under the same idempotency key is another request.
    pub(crate) async fn begin_for_admin(
        &self,
        api: &ApiState,
        caller: &Identity,
        headers: &HeaderMap,
    ) -> Result<IdempotencyCheck, Problem> {
        let credentials = ["x-admin-token", "cookie"];
        let credentials = credentials.map(|name| {
            let value = headers.get(name).map(HeaderValue::as_bytes);
            String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
        });
        if credentials.iter().all(String::is_empty) {
            return self.begin_for_principal(api, caller).await;
        }
        let admin = format!("{}\0{}", caller.principal, credentials.join("\0"));
        let admin = Principal::from(admin);
        let agent = caller.agent.as_ref();
        self.begin_with(api, &caller.partition(), Some(&admin), agent)
            .await
    }

    /// The same for whoever has no identity beyond whose data they act on.
    pub(crate) async fn begin_for(
        &self,
        api: &ApiState,
        caller: &Partition,
    ) -> Result<IdempotencyCheck, Problem> {
        self.begin_with(api, caller, None, None).await
    }

    async fn begin_with(
        &self,
        api: &ApiState,
        caller: &Partition,
        principal: Option<&Principal>,
        agent: Option<&AgentId>,
    ) -> Result<IdempotencyCheck, Problem> {
        let Some(sent) = &self.key else {
            self.take_permit(api, caller).await?;
            return Ok(IdempotencyCheck::New(Ticket::without_key()));
        };
        // A key that is good for one agent only is not answered with what another caller was.
        let operation = match agent {
            Some(agent) => format!("agent {agent}: {}", sent.operation),
            None => sent.operation.clone(),
        };
        let request = KeyedRequest {
            key: &sent.text,
            operation: &operation,
            target: &sent.path,
            body: &self.body,
            principal,
        };
        match api.app.begin(caller, &request).await? {
            tandem_app::IdempotencyCheck::Replay(before) => {
                Ok(IdempotencyCheck::Replay(replay(before)))
            }
            tandem_app::IdempotencyCheck::New(ticket) => {
                self.take_permit(api, caller).await?;
                if let Some(refusal_recorder) = &sent.refusal_recorder {
                    refusal_recorder.set_ticket(&ticket);
                }
                Ok(IdempotencyCheck::New(ticket))
            }
        }
    }

    /// Only when the request is about to be executed: a caller who sends slowly, or waits for another
    /// request with the same key, must not keep others out. Who holds a permit never waits for a key.
    async fn take_permit(&self, api: &ApiState, caller: &Partition) -> Result<(), Problem> {
        let permits = &api.request_permits;
        let permit = permits.acquire(&caller.tenant, self.body.len()).await?;
        self.permit.get_or_init(|| permit);
        Ok(())
    }
}

/// Executes a use case and renders what came of it. The response that is stored is the one that is sent.
pub(crate) async fn respond<T, F>(
    ticket: Ticket,
    render: impl Fn(&T) -> ApiResponse + Send + Sync + 'static,
    use_case: impl FnOnce(Idempotency<T>) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<Completion<T>, AppError>>,
{
    let render = Arc::new(render);
    // What was rendered for the commit, to be sent after it.
    let rendered = Arc::new(Mutex::new(None));
    let idempotency = ticket.storing({
        let (render, rendered) = (Arc::clone(&render), Arc::clone(&rendered));
        move |outcome: Result<&T, _>| match outcome {
            Ok(value) => {
                let response = render(value);
                let stored = response.stored();
                *rendered.lock() = Some(response);
                Some(stored)
            }
            Err(refusal) => Problem::from(refusal.clone()).stored(),
        }
    });
    match use_case(idempotency).await? {
        Completion::Done(value) => {
            let response = rendered.lock().take();
            Ok(response.unwrap_or_else(|| render(&value)).into_response())
        }
        Completion::Replayed(before) => Ok(replay(before)),
    }
}

/// The same where a repeated request gets another response than the first one.
pub(crate) async fn respond_storing<T, F>(
    ticket: Ticket,
    render: impl FnOnce(&T) -> ApiResponse,
    render_stored: impl Fn(&T) -> ApiResponse + Send + Sync + 'static,
    use_case: impl FnOnce(Idempotency<T>) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<Completion<T>, AppError>>,
{
    let idempotency = ticket.storing(move |outcome: Result<&T, _>| match outcome {
        Ok(value) => Some(render_stored(value).stored()),
        Err(refusal) => Problem::from(refusal.clone()).stored(),
    });
    match use_case(idempotency).await? {
        Completion::Done(value) => Ok(render(&value).into_response()),
        Completion::Replayed(before) => Ok(replay(before)),
    }
}
