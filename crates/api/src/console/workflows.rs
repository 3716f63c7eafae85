//! The workflows a reader may start, and the form to start one.

use super::page::{PageError, chrome};
use super::run_view::{graph, pretty};
use super::session::{PostedForm, SignedIn};
use crate::api::SharedState;
use crate::body;
use crate::detached_request::run_to_completion;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::CreateRunRequest;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::response::{Html, Redirect};
use serde_json::Value;
use tandem_access::Scope;
use tandem_console::{
    WorkflowListView, WorkflowPageView, WorkflowRow, workflow_list_page, workflow_page,
};
use tandem_record::{Transport, WorkflowId};

pub(super) async fn list(
    State(api): State<SharedState>,
    reader: SignedIn,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::ManifestRead)?;
    let registered = api.runtime.workflows(&reader.partition()).await?;
    let rows = registered.iter().map(|registered| {
        let document: Value = serde_json::from_str(&registered.document).unwrap_or_default();
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        WorkflowRow {
            id: registered.workflow.to_string(),
            name: text("name"),
            version: text("version"),
            node_count: document["nodes"].as_array().map_or(0, Vec::len),
        }
    });
    let view = WorkflowListView {
        rows: rows.collect(),
        csrf: reader.csrf(),
    };
    Ok(Html(workflow_list_page(&chrome(&api, &reader), &view)))
}

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(id): PathParams<String>,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::ManifestRead)?;
    let id = WorkflowId::from(id);
    let registered = api.runtime.workflow(&reader.partition(), &id).await?;
    let registered = registered.ok_or_else(Problem::workflow_not_found)?;
    let definition = api
        .runtime
        .current_definition(&reader.partition(), &id)
        .await?;
    let definition = definition.ok_or_else(Problem::workflow_not_found)?;
    let source: Value = serde_json::from_str(&registered.document).unwrap_or_default();
    let view = WorkflowPageView {
        id: id.to_string(),
        name: definition.document.name.clone(),
        version: definition.document.version.clone(),
        graph: graph(&definition, None),
        source_json: pretty(&source),
        csrf: reader.csrf(),
    };
    Ok(Html(workflow_page(&chrome(&api, &reader), &view)))
}

pub(super) async fn start(
    State(api): State<SharedState>,
    PathParams(id): PathParams<String>,
    Extension(trace): Extension<Trace>,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsCreate)?;
    let input = posted.field("input").trim();
    let input = if input.is_empty() { "{}" } else { input };
    let requested = CreateRunRequest::with_inputs(id, body::parse(input.as_bytes())?);
    let new = requested.into_run(by, &trace, false, Transport::Ui)?;
    let runtime = api.runtime_of(by);
    let created = run_to_completion(async move { runtime.create_run(new, None).await }).await;
    let run = created.map_err(Problem::from)?;
    Ok(Redirect::to(&format!("/console/runs/{run}")))
}
