//! An answer sent from the inbox. Goes the way the API's answers go: same guard on what was shown,
//! same command, same refusals. What is refused comes back as the page, with what was typed and
//! what is wrong beside it.

use super::inbox_view;
use super::page::{Detour, chrome, with_status};
use super::session::Posted;
use crate::api::Shared;
use crate::at::At;
use crate::deciding;
use crate::mutation::Ticket;
use crate::params::Params;
use crate::problem::Problem;
use crate::routes::{answering, find_question};
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use tandem_access::Scope;
use tandem_console::{inbox_page, question_link, read_answer};

pub(super) async fn answer(
    State(doors): State<Shared>,
    At(id): At<String>,
    params: Params,
    posted: Posted,
) -> Result<Response, Detour> {
    let by = &posted.by;
    by.may(Scope::RunsRead)?;
    by.may(Scope::ApprovalsRespond)?;
    let selection = inbox_view::selection(&params)?;
    let Err(problem) = decide(&doors, &id, &posted).await else {
        return Ok(Redirect::to(&question_link(&id, &selection)).into_response());
    };
    if problem.is_of_the_host() {
        return Err(problem.into());
    }
    // Read afresh: who was quicker, or what it is now, is what the decider wants to see.
    let mut card = inbox_view::card(&doors, by, id).await?;
    card.csrf = by.csrf();
    card.selection = selection.clone();
    card.refused = Some(problem.message().to_owned());
    let complaints = problem.complaints().into_iter().map(|(path, why)| {
        let inside = path.strip_prefix("/resumeValue").map(str::to_owned);
        (inside.unwrap_or(path), why)
    });
    card.complaints = complaints.collect();
    if !card.complaints.is_empty() {
        // Each says its place itself.
        card.refused = Some("Nothing was decided.".to_owned());
        card.entered = posted.fields().to_vec();
    }
    let view = inbox_view::whole(&doors, by, selection, Some(card)).await?;
    Ok(with_status(
        &problem,
        inbox_page(&chrome(&doors, by), &view),
    ))
}

async fn decide(doors: &Shared, id: &str, posted: &Posted) -> Result<(), Problem> {
    let by = &posted.by;
    let row = find_question(doors, by, id.to_owned()).await?;
    let card = inbox_view::card(doors, by, id.to_owned()).await?;
    let value = read_answer(&card, posted.fields()).map_err(Problem::validation)?;
    // A form without a digest shows nothing we know of: it fails like any other mismatch.
    let (run, given) = answering(row, Some(posted.field("digest")), value, None)?;
    let ticket = Ticket::without_key();
    let taken = deciding::decide(doors, ticket, by, run, given).await;
    taken.map(|_| ())
}
