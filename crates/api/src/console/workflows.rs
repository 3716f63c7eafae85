//! The workflows a reader may start, and the form to start one.

use super::page::{PageError, chrome};
use super::run_view::graph;
use super::session::{PostedForm, SignedIn};
use crate::api::SharedState;
use crate::body;
use crate::path_params::PathParams;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::response::{Html, Redirect};
use serde_json::Value;
use tandem_access::Scope;
use tandem_app::{CreateRun, Idempotency};
use tandem_console::{
    WorkflowListView, WorkflowPageView, WorkflowRow, workflow_list_page, workflow_page,
};
use tandem_record::{Transport, WorkflowId};

pub(super) async fn list(
    State(api): State<SharedState>,
    reader: SignedIn,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::ManifestRead)?;
    let registered = api.app.list_runnable_workflows(&reader).await?;
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
    let owner = api.app.workflow_owner(&reader, None)?;
    let registered = api.app.read_workflow(&reader, &owner, &id).await?;
    let definition = api.app.read_definition(&reader, &id).await?;
    let source: Value = serde_json::from_str(&registered.document).unwrap_or_default();
    let view = WorkflowPageView {
        id: id.to_string(),
        name: definition.document.name.clone(),
        version: definition.document.version.clone(),
        graph: graph(&definition, None),
        source_json: serde_json::to_string_pretty(&source).unwrap_or_default(),
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
    let inputs = body::parse(input.as_bytes())?;
    let requested = CreateRun {
        trace: Some(trace.for_run()),
        ..CreateRun::with_inputs(WorkflowId::from(id), inputs, Transport::Ui)
    };
    let created = api.app.create_run(by, requested, Idempotency::none());
    let run = created.await?.done();
    Ok(Redirect::to(&format!("/console/runs/{run}")))
}
