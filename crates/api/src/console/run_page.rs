//! One run: its page, and the buttons on it.

use super::crew_view::Crew;
use super::family_view::family;
use super::page::{Detour, chrome};
use super::people_view::People;
use super::run_view;
use super::session::{Posted, SignedIn};
use crate::api::Shared;
use crate::at::At;
use crate::problem::Problem;
use crate::routes::{events_up_to, snapshot_extras};
use crate::to_the_end::to_the_end;
use axum::extract::State;
use axum::response::{Html, Redirect};
use tandem_access::Scope;
use tandem_console::run_page;
use tandem_record::{Command, DrainPolicy, RunId, Seq};

/// Events on the page at first; the rest of a long log is a download away.
const SHOWN_EVENTS: u64 = 500;

pub(super) async fn show(
    State(doors): State<Shared>,
    reader: SignedIn,
    At(run): At<String>,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::RunsRead)?;
    let run = RunId::from(run);
    doors.visible(&reader, &run).await?;
    let observed = doors.runtime.observe(&reader.tenant, &run).await?;
    let observed = observed.ok_or_else(|| Problem::not_found("run"))?;
    let extras = snapshot_extras(&doors, &reader, &observed).await?;
    let head = observed.view.head;
    let omitted = (head.0 + 1).saturating_sub(SHOWN_EVENTS);
    let after = omitted.checked_sub(1).map(Seq);
    let events = events_up_to(&doors, &run, after, head).await?;
    let sensitivity = &*observed.sensitivity;
    let rules = (&*observed.definition, sensitivity);
    let mut view = run_view::state(&observed.view, rules, &extras, &reader, reader.csrf());
    let rows = events.iter();
    view.events = rows
        .map(|e| run_view::event(&run, e, sensitivity))
        .collect();
    view.events_omitted = omitted;
    if view.supervised {
        view.crew = Crew::of(doors.runtime.agent_policy().floor(), &events);
    }
    view.answered = People::of(&events);
    view.family = family(&doors, &reader, &run).await?;
    Ok(Html(run_page(&chrome(&doors, &reader), &view)))
}

pub(super) async fn act(
    State(doors): State<Shared>,
    At((run, action)): At<(String, String)>,
    posted: Posted,
) -> Result<Redirect, Detour> {
    let by = &posted.by;
    by.may(Scope::RunsCancel)?;
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
    doors.visible(by, &run).await?;
    let back = format!("/console/runs/{run}");
    let (runtime, partition) = (doors.runtime_of(by), by.partition());
    let outcome =
        to_the_end(async move { runtime.submit(&partition, &run, command, None).await }).await;
    outcome.map_err(Problem::from)?;
    Ok(Redirect::to(&back))
}
