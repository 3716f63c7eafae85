//! The page of one run, and its buttons.

use super::agents_view::AgentsCollector;
use super::page::{PageError, chrome};
use super::people_view::AnsweredCollector;
use super::run_tree_view::load_run_tree;
use super::run_view;
use super::session::{PostedForm, SignedIn};
use crate::api::SharedState;
use crate::detached_request::run_to_completion;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::{events_up_to, snapshot_extras};
use axum::extract::State;
use axum::response::{Html, Redirect};
use tandem_access::Scope;
use tandem_console::run_page;
use tandem_record::{Command, DrainPolicy, RunId, Seq};

/// Events shown at first; the rest of a long log can be downloaded.
const SHOWN_EVENTS: u64 = 500;

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(run): PathParams<String>,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let run = RunId::from(run);
    api.load_run(&reader, &run).await?;
    let observed = api.runtime.observe(&reader.tenant, &run).await?;
    let observed = observed.ok_or_else(|| Problem::not_found("run"))?;
    let extras = snapshot_extras(&api, &reader, &observed).await?;
    let head = observed.view.head;
    let omitted = (head.0 + 1).saturating_sub(SHOWN_EVENTS);
    let after = omitted.checked_sub(1).map(Seq);
    let events = events_up_to(&api, &run, after, head).await?;
    let sensitivity = &*observed.sensitivity;
    let rules = (&*observed.definition, sensitivity);
    let mut view = run_view::state(&observed.view, rules, &extras, &reader, reader.csrf());
    let rows = events.iter();
    view.events = rows
        .map(|e| run_view::event(&run, e, sensitivity))
        .collect();
    view.events_omitted = omitted;
    if view.supervised {
        let floor = api.runtime.agent_policy().confidence_floor();
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
    let command = match action.as_str() {
        "cancel" => Command::Cancel {
            reason,
            by: Some(by.principal.clone()),
            by_parent: None,
        },
        "pause" => Command::Pause {
            reason,
            policy: DrainPolicy::DrainCurrentNode,
        },
        "resume" => Command::Resume { reason },
        _ => return Err(Problem::not_found("action").into()),
    };
    let run = RunId::from(run);
    api.load_run(by, &run).await?;
    let back = format!("/console/runs/{run}");
    let (runtime, partition) = (api.runtime_of(by), by.partition());
    let outcome =
        run_to_completion(async move { runtime.submit(&partition, &run, command, None).await })
            .await;
    outcome.map_err(Problem::from)?;
    Ok(Redirect::to(&back))
}
