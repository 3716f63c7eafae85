//! The page of one run, and its buttons.

use super::agents_view::AgentsCollector;
use super::page::{PageError, chrome};
use super::people_view::AnsweredCollector;
use super::run_tree_view::load_run_tree;
use super::run_view;
use super::session::{PostedForm, SignedIn};
use super::shown_bytes::ShownBytes;
use crate::api::SharedState;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::snapshot_extras;
use axum::extract::State;
use axum::response::{Html, Redirect};
use tandem_access::Scope;
use tandem_app::{Idempotency, PageLimit};
use tandem_console::run_page;
use tandem_record::{DrainPolicy, RunId};

/// Events shown at first; the rest of a long log can be downloaded.
const SHOWN_EVENTS: PageLimit = PageLimit {
    events: 500,
    bytes: 4 * 1024 * 1024,
};

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(run): PathParams<String>,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let run = RunId::from(run);
    // The state and its text are copies of the run's values.
    let _build = api.pages.begin_build(&reader.tenant).await?;
    let observed = api.app.observe_run(&reader, &run).await?;
    let extras = snapshot_extras(&api, &reader, &observed).await?;
    let head = observed.view.head;
    let events = api.app.read_newest_events(&run, head, SHOWN_EVENTS).await?;
    let sensitivity = &*observed.sensitivity;
    let rules = (&*observed.definition, sensitivity);
    let (mut shown, csrf) = (ShownBytes::page(), reader.csrf());
    let mut view = run_view::state(&observed.view, rules, &extras, &reader, csrf, &mut shown);
    // The newest events get the room of the page first.
    let rows = events.iter().rev();
    let rows = rows.map(|e| run_view::event(&run, e, sensitivity, &mut shown));
    view.events = rows.collect();
    view.events.reverse();
    view.events_omitted = events.first().map_or(0, |first| first.seq.0);
    if view.supervised {
        let floor = api.app.agent_policy().confidence_floor();
        view.agents = AgentsCollector::collect(floor, &events, sensitivity, &mut shown);
    }
    view.answered = AnsweredCollector::collect(&events, &mut shown);
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
