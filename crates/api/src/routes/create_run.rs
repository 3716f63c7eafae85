//! `POST /v1/runs`.

use super::{mock_provider, parent_claim};
use crate::api::SharedState;
use crate::body::present;
use crate::caller::{Caller, RunsCreate};
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::problem::Problem;
use crate::response::ApiResponse;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tandem_access::{Identity, Scope};
use tandem_record::{Object, RunId, RunOptions, RunRequest, Transport, WorkflowId};
use tandem_runtime::{ENGINE_VERSION, NewRun};
use utoipa::ToSchema;

const MAX_ID_CHARS: usize = 128;

/// The body, closed: members of the run and of its options at one level.
#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = CreateRun)]
pub(crate) struct CreateRunRequest {
    #[serde(default, deserialize_with = "present")]
    workflow_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    inputs: Option<Object>,
    #[serde(default, deserialize_with = "present")]
    tenant_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    scope_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    /// Receives every interrupt of the run and of its descendants, with a signed link to answer it.
    /// Must be public and `https`, like the target of a webhook.
    callback_url: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    configurable: Option<Object>,
    #[serde(default, deserialize_with = "present")]
    tags: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    metadata: Option<Object>,
    #[serde(default, deserialize_with = "present")]
    mode: Option<String>,
    #[serde(default, deserialize_with = "present")]
    eval_suite_ref: Option<String>,
    #[serde(default, deserialize_with = "present")]
    agent_id: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/runs", tag = "runs", operation_id = "createRun", request_body = CreateRunRequest,
    params(("Idempotency-Key" = Option<String>, Header),
           ("X-Dedup" = Option<String>, Header, description = "`enforce`: one live run per scopeId")),
    responses((status = 201, description = "The run exists", body = Value))
)]
pub(super) async fn create_run(
    State(api): State<SharedState>,
    caller: Caller<RunsCreate>,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: CreateRunRequest = request.json()?;
    check_engine_version(&caller, &headers)?;
    let exclusive = headers
        .get("x-dedup")
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"enforce"));
    let mut new = requested.into_run(&caller, &trace, exclusive, Transport::Rest)?;
    let configurable = new.request.options.configurable.as_mut();
    mock_provider::admit(&api.runtime, &caller, configurable)?;
    if let (Some(url), Some(webhook_sender)) =
        (&new.request.callback_url, api.runtime.webhook_sender())
    {
        let vetted = webhook_sender.vet(url).await;
        vetted.map_err(|reason| Problem::webhook_url_rejected(&reason))?;
        if !api.runtime.is_free_of_secrets(url) {
            let message = "holds what looks like a secret; it would not be kept";
            return Err(Problem::invalid("/callbackUrl", message));
        }
        new.request.callback_may_answer = caller.require_scope(Scope::ApprovalsRespond).is_ok();
    }
    let metadata = new.request.options.metadata.as_ref();
    new.request.claimed_parent = parent_claim::read(&api, &caller, metadata).await?;
    ticket.create(&api, &caller, new, render_created).await
}

/// The response to a created run.
fn render_created(run: &RunId) -> ApiResponse {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Created<'a> {
        run_id: &'a RunId,
        status: &'static str,
        events_url: &'a str,
        status_url: &'a str,
    }
    let events_url = format!("/v1/runs/{run}/events");
    let status_url = &events_url[..events_url.len() - "/events".len()];
    ApiResponse::created(Created {
        run_id: run,
        status: "pending",
        events_url: &events_url,
        status_url,
    })
    .with_location(status_url)
}

fn check_engine_version(caller: &Identity, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get("x-force-engine-version") else {
        return Ok(());
    };
    if !caller.test_key {
        return Err(Problem::engine_version_forbidden());
    }
    match value.to_str().ok().and_then(|text| text.parse().ok()) {
        Some(ENGINE_VERSION) => Ok(()),
        Some(_) => Err(Problem::unsupported_engine_version(ENGINE_VERSION)),
        None => {
            let message = "must be a whole number of at least 0";
            Err(Problem::invalid("X-Force-Engine-Version", message))
        }
    }
}

impl CreateRunRequest {
    /// A run with inputs only.
    pub(crate) fn with_inputs(workflow_id: String, inputs: Object) -> Self {
        Self {
            workflow_id: Some(workflow_id),
            inputs: Some(inputs),
            ..Self::default()
        }
    }

    /// The run to create, after the checks that concern HTTP. The engine validates inputs and
    /// options.
    pub(crate) fn into_run(
        self,
        caller: &Identity,
        trace: &Trace,
        exclusive_scope: bool,
        transport: Transport,
    ) -> Result<NewRun, Problem> {
        self.check(exclusive_scope)?;
        if self.tenant_id.is_some_and(|t| t != caller.tenant.as_str()) {
            return Err(Problem::forbidden("The key belongs to another tenant."));
        }
        Ok(NewRun {
            workflow_id: WorkflowId::from(self.workflow_id.unwrap_or_default()),
            request: RunRequest {
                owner: caller.owner(),
                inputs: self.inputs.unwrap_or_default(),
                erased_defaults: Vec::new(),
                untrusted_inputs: Vec::new(),
                sensitive_inputs: Vec::new(),
                options: RunOptions {
                    configurable: self.configurable,
                    tags: self.tags,
                    metadata: self.metadata,
                },
                scope_id: self.scope_id,
                callback_url: self.callback_url,
                callback_may_answer: false,
                parent: None,
                claimed_parent: None,
                conformance_role: caller.permits_conformance(),
                execution_model: None,
                isolated_memory: false,
                transport,
                trace: Some(trace.for_run()),
                memory: None,
                forked_from: None,
            },
            exclusive_scope,
        })
    }

    fn check(&self, exclusive_scope: bool) -> Result<(), Problem> {
        match self.mode.as_deref() {
            Some("eval") => return Err(Problem::capability_not_provided("agents.evalSuite")),
            Some(_) => return Err(Problem::invalid("/mode", "can only be \"eval\"")),
            None => {}
        }
        let mut errors = Vec::new();
        let mut wrong = |path: &str, message: &str| {
            errors.push((path.to_owned(), message.to_owned()));
        };
        let named = |id: &Option<String>| {
            id.as_ref()
                .is_some_and(|id| (1..=MAX_ID_CHARS).contains(&id.chars().count()))
        };
        if !named(&self.workflow_id) {
            wrong("/workflowId", "must be an id of 1 to 128 characters");
        }
        if self.scope_id.is_some() && !named(&self.scope_id) {
            wrong("/scopeId", "must be an id of 1 to 128 characters");
        }
        if exclusive_scope && self.scope_id.is_none() {
            wrong("/scopeId", "is needed with X-Dedup: enforce");
        }
        if self
            .callback_url
            .as_deref()
            .is_some_and(|url| !is_web_url(url))
        {
            wrong("/callbackUrl", "must be an absolute http or https URL");
        }
        if self.eval_suite_ref.is_some() {
            wrong("/evalSuiteRef", "belongs to mode \"eval\"");
        }
        if self.agent_id.is_some() {
            wrong("/agentId", "belongs to mode \"eval\"");
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Problem::validation(errors))
        }
    }
}

fn is_web_url(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}
