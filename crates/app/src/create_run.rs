//! Creating a run.

use crate::admission::callback::is_web_url;
use crate::app::App;
use crate::error::{AppError, ForbiddenReason, InvalidField};
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Scope};
use tandem_record::{Object, RunId, RunOptions, RunRequest, TraceContext, Transport, WorkflowId};
use tandem_runtime::NewRun;

const MAX_ID_CHARS: usize = 128;

/// A run that a caller asks for. The engine validates inputs and options.
pub struct CreateRun {
    pub workflow_id: WorkflowId,
    pub inputs: Object,
    pub options: RunOptions,
    /// The tenant the caller names; it must be its own.
    pub tenant: Option<String>,
    pub scope_id: Option<String>,
    /// Refuse while another run of the same scope has not ended.
    pub exclusive_scope: bool,
    /// Receives every interrupt of the run and of its descendants.
    pub callback_url: Option<String>,
    pub transport: Transport,
    pub trace: Option<TraceContext>,
    /// What the entry point found wrong in its own format. Reported together with what is found here.
    pub invalid_fields: Vec<InvalidField>,
}

impl CreateRun {
    /// A run with inputs only.
    pub fn with_inputs(workflow_id: WorkflowId, inputs: Object, transport: Transport) -> Self {
        Self {
            workflow_id,
            inputs,
            options: RunOptions::default(),
            tenant: None,
            scope_id: None,
            exclusive_scope: false,
            callback_url: None,
            transport,
            trace: None,
            invalid_fields: Vec::new(),
        }
    }

    fn check(&mut self) -> Result<(), AppError> {
        let mut errors = Vec::new();
        let mut wrong = |path: &str, message: &str| errors.push(InvalidField::new(path, message));
        let fits = |id: &str| (1..=MAX_ID_CHARS).contains(&id.chars().count());
        if !fits(self.workflow_id.as_str()) {
            wrong("/workflowId", "must be an id of 1 to 128 characters");
        }
        if self.scope_id.as_deref().is_some_and(|id| !fits(id)) {
            wrong("/scopeId", "must be an id of 1 to 128 characters");
        }
        if self.exclusive_scope && self.scope_id.is_none() {
            wrong("/scopeId", "is needed with X-Dedup: enforce");
        }
        let callback = self.callback_url.as_deref();
        if callback.is_some_and(|url| !is_web_url(url)) {
            wrong("/callbackUrl", "must be an absolute http or https URL");
        }
        errors.append(&mut self.invalid_fields);
        match errors.is_empty() {
            true => Ok(()),
            false => Err(AppError::Invalid(errors)),
        }
    }

    fn into_run(self, caller: &Identity) -> NewRun {
        NewRun {
            workflow_id: self.workflow_id,
            request: RunRequest {
                owner: caller.owner(),
                inputs: self.inputs,
                erased_defaults: Vec::new(),
                untrusted_inputs: Vec::new(),
                sensitive_inputs: Vec::new(),
                options: self.options,
                scope_id: self.scope_id,
                callback_url: self.callback_url,
                callback_may_answer: false,
                parent: None,
                claimed_parent: None,
                waiting_session: None,
                conformance_role: caller.permits_conformance(),
                execution_model: None,
                isolated_memory: false,
                transport: self.transport,
                trace: self.trace,
                memory: None,
                forked_from: None,
                forked_by: Vec::new(),
                levels_above: 0,
            },
            exclusive_scope: self.exclusive_scope,
        }
    }
}

impl App {
    /// Creates a run for a caller. The run is durable when this returns.
    pub async fn create_run(
        &self,
        caller: &Identity,
        mut requested: CreateRun,
        idempotency: Idempotency<RunId>,
    ) -> Result<Completion<RunId>, AppError> {
        caller.require_scope(Scope::RunsCreate)?;
        requested.check()?;
        let other_tenant = |tenant: &String| tenant != caller.tenant.as_str();
        if requested.tenant.as_ref().is_some_and(other_tenant) {
            return Err(ForbiddenReason::OtherTenant.into());
        }
        let mut new = requested.into_run(caller);
        let request = &mut new.request;
        self.admit_mock_provider(caller, request.options.configurable.as_mut())?;
        self.admit_callback(caller, request).await?;
        let metadata = request.options.metadata.as_ref();
        request.claimed_parent = self.read_claimed_parent(caller, metadata).await?;
        let runtime = self.runtime_for(caller);
        let stored = idempotency.for_creation(RunId::clone);
        let created = Box::pin(async move { runtime.create_run(new, stored).await });
        self.execute(idempotency, created).await
    }
}
