//! The page of one run, and its buttons.

use super::agents_view::AgentsCollector;
use super::page::{PageError, chrome};
use super::people_view::AnsweredCollector;
use super::run_tree_view::load_run_tree;
use super::run_view;
use super::session::{PostedForm, SignedIn};
use crate::api::SharedState;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::snapshot_extras;
use axum::extract::State;
use axum::response::{Html, Redirect};
use tandem_access::Scope;
use tandem_app::Idempotency;
use tandem_console::run_page;
use tandem_record::{DrainPolicy, RunId, Seq};

/// Events shown at first; the rest of a long log can be downloaded.
const SHOWN_EVENTS: u64 = 500;

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(run): PathParams<String>,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let run = RunId::from(run);
    let observed = api.app.observe_run(&reader, &run).await?;
    let extras = snapshot_extras(&api, &reader, &observed).await?;
    let head = observed.view.head;
    let omitted = (head.0 + 1).saturating_sub(SHOWN_EVENTS);
    let after = omitted.checked_sub(1).map(Seq);
    let events = api.app.read_log(&run, after, head).await?;
    let sensitivity = &*observed.sensitivity;
    let rules = (&*observed.definition, sensitivity);
    let mut view = run_view::state(&observed.view, rules, &extras, &reader, reader.csrf());
    let rows = events.iter();
    view.events = rows
        .map(|e| run_view::event(&run, e, sensitivity))
        .collect();
    view.events_omitted = omitted;
    if view.supervised {
        let floor = api.app.agent_policy().confidence_floor();
        view.agents = AgentsCollector::collect(floor, &events, sensitivity);
    }
    view.answered = AnsweredCollector::collect(&events);
    view.run_tree = load_run_tree(&api, &reader, &run).await?;
    Ok(Html(run_page(&chrome(&api, &reader), &view)))
}

pub(super) async fn act(
    State(api): State<SharedState>,
    PathParams((run, action)): PathParams<(String, String)>,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsCancel)?;
    let reason = Some("from the console".to_owned());
    let run = RunId::from(run);
    let back = format!("/console/runs/{run}");
    match action.as_str() {
        "cancel" => {
            let cancelled = api.app.cancel_run(by, run, reason, Idempotency::none());
            cancelled.await?;
        }
        "pause" => {
            let policy = DrainPolicy::DrainCurrentNode;
            let paused = api
                .app
                .pause_run(by, run, reason, policy, Idempotency::none());
            paused.await?;
        }
        "resume" => {
            let resumed = api.app.resume_run(by, run, reason, Idempotency::none());
            resumed.await?;
        }
        _ => return Err(Problem::not_found("action").into()),
    }
    Ok(Redirect::to(&back))
}
