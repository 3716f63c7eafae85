//! A fork made from a moment's page: the way of the API's forks, asked for by a form.

use super::page::Detour;
use super::session::Posted;
use crate::api::Shared;
use crate::at::At;
use crate::problem::Problem;
use crate::routes::AskedFork;
use crate::to_the_end::to_the_end;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::response::Redirect;
use serde_json::Value;
use tandem_access::Scope;
use tandem_record::RunId;

pub(super) async fn make(
    State(doors): State<Shared>,
    At(run): At<String>,
    Extension(trace): Extension<Trace>,
    posted: Posted,
) -> Result<Redirect, Detour> {
    let by = &posted.by;
    by.may(Scope::RunsCreate)?;
    by.may(Scope::RunsRead)?;
    let from_seq = posted.field("fromSeq").parse::<u64>();
    // Whatever is no number is refused as the API refuses it.
    let from_seq = from_seq.map_or_else(|_| Value::from(posted.field("fromSeq")), Value::from);
    let asked = AskedFork::plain(posted.field("mode"), from_seq).into_request(by, &trace)?;
    let source = doors.known(by, &RunId::from(run)).await?;
    let runtime = doors.runtime_of(by);
    let made = to_the_end(async move { runtime.fork_run(&source, asked, None).await }).await;
    let fork = made.map_err(Problem::from)?;
    Ok(Redirect::to(&format!("/console/runs/{fork}")))
}
