//! The workflows a reader may start, and starting one.

use super::page::{Detour, chrome};
use super::run_view::{graph, pretty};
use super::session::{Posted, SignedIn};
use crate::api::Shared;
use crate::at::At;
use crate::body;
use crate::problem::Problem;
use crate::routes::Asked;
use crate::to_the_end::to_the_end;
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
    State(doors): State<Shared>,
    reader: SignedIn,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::ManifestRead)?;
    let registered = doors.runtime.workflows(&reader.partition()).await?;
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
    Ok(Html(workflow_list_page(&chrome(&doors, &reader), &view)))
}

pub(super) async fn show(
    State(doors): State<Shared>,
    reader: SignedIn,
    At(id): At<String>,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::ManifestRead)?;
    let id = WorkflowId::from(id);
    let registered = doors.runtime.workflow(&reader.partition(), &id).await?;
    let registered = registered.ok_or_else(Problem::workflow_not_found)?;
    let definition = doors
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
    Ok(Html(workflow_page(&chrome(&doors, &reader), &view)))
}

pub(super) async fn start(
    State(doors): State<Shared>,
    At(id): At<String>,
    Extension(trace): Extension<Trace>,
    posted: Posted,
) -> Result<Redirect, Detour> {
    let by = &posted.by;
    by.may(Scope::RunsCreate)?;
    let input = posted.field("input").trim();
    let input = if input.is_empty() { "{}" } else { input };
    let asked = Asked::plain(id, body::parse(input.as_bytes())?);
    let new = asked.into_run(by, &trace, false, Transport::Ui)?;
    let runtime = doors.runtime_of(by);
    let created = to_the_end(async move { runtime.create_run(new, None).await }).await;
    let run = created.map_err(Problem::from)?;
    Ok(Redirect::to(&format!("/console/runs/{run}")))
}
