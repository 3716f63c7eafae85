//! An answer posted from the inbox. It uses the same digest check, command and refusals as the API.
//! A refused answer returns the page with the entered values and the errors.

use super::desk_offer::admin_token;
use super::inbox_view;
use super::page::{PageError, chrome, with_status};
use super::session::PostedForm;
use crate::api::SharedState;
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::console_call;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use tandem_access::Scope;
use tandem_app::{AnswerTarget, Idempotency, SubmittedAnswer};
use tandem_console::{inbox_page, question_link, read_answer};
use tandem_record::InterruptId;

pub(super) async fn answer(
    State(api): State<SharedState>,
    PathParams(id): PathParams<String>,
    params: Params,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Response, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsRead)?;
    by.require_scope(Scope::ApprovalsRespond)?;
    let selection = inbox_view::selection(&params)?;
    let Err(problem) = decide(&api, &id, &headers, &posted).await else {
        return Ok(Redirect::to(&question_link(&id, &selection)).into_response());
    };
    if problem.is_server_error() {
        return Err(problem.into());
    }
    let _build = api.pages.begin_build(&by.tenant).await?;
    // The card is loaded again, because it may have been decided or changed in the meantime.
    let mut card = inbox_view::load_card(&api, by, id).await?;
    card.csrf = by.csrf();
    card.selection = selection.clone();
    card.refused = Some(problem.message().to_owned());
    let field_errors = problem.field_errors().into_iter().map(|(path, why)| {
        let inside = path.strip_prefix("/resumeValue").map(str::to_owned);
        (inside.unwrap_or(path), why)
    });
    card.field_errors = field_errors.collect();
    if !card.field_errors.is_empty() {
        // Each field error is shown at its field.
        card.refused = Some("Nothing was decided.".to_owned());
        card.entered = posted.fields().to_vec();
    }
    let view = inbox_view::load_inbox(&api, by, selection, Some(card)).await?;
    Ok(with_status(&problem, inbox_page(&chrome(&api, by), &view)))
}

async fn decide(
    api: &SharedState,
    id: &str,
    headers: &HeaderMap,
    posted: &PostedForm,
) -> Result<(), Problem> {
    let by = &posted.by;
    let admin_token = admin_token(posted);
    let card = inbox_view::load_card(api, by, id.to_owned()).await?;
    if let Some(why) = card.not_shown {
        return Err(Problem::invalid("/digest", why));
    }
    let value = read_answer(&card, posted.fields()).map_err(Problem::validation)?;
    // A form without a digest shows nothing we know of: it fails like any other mismatch.
    let answer = SubmittedAnswer {
        value,
        digest: Some(posted.field("digest").to_owned()),
        acting_for: None,
    };
    let target = AnswerTarget::Interrupt(InterruptId::new(id));
    let call = console_call(by, headers, admin_token);
    if let Some(question) = api.app.conversation_question(&call, &target).await? {
        let none = Idempotency::none();
        let answered = api.app.answer_conversation(&call, question, answer, none);
        answered.await?;
        return Ok(());
    }
    let decided = api.app.decide(by, target, answer, Idempotency::none());
    decided.await?;
    Ok(())
}
