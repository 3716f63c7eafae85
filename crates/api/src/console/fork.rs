//! A fork created from a history page. A form posts it; the rest is the same as a fork by the API.

use super::page::PageError;
use super::session::PostedForm;
use crate::api::SharedState;
use crate::path_params::PathParams;
use crate::routes::ForkRunRequest;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::response::Redirect;
use serde_json::Value;
use tandem_access::Scope;
use tandem_app::Idempotency;
use tandem_record::RunId;

pub(super) async fn make(
    State(api): State<SharedState>,
    PathParams(run): PathParams<String>,
    Extension(trace): Extension<Trace>,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsCreate)?;
    by.require_scope(Scope::RunsRead)?;
    let from_seq = posted.field("fromSeq").parse::<u64>();
    // A value that is not a number is passed on and refused like in the API.
    let from_seq = from_seq.map_or_else(|_| Value::from(posted.field("fromSeq")), Value::from);
    let requested = ForkRunRequest::without_overlay(posted.field("mode"), from_seq);
    let requested = requested.into_use_case(RunId::from(run), &trace)?;
    let made = api.app.fork_run(by, requested, Idempotency::none());
    let fork = made.await?.done().run;
    Ok(Redirect::to(&format!("/console/runs/{fork}")))
}
