//! The inbox pages: the list alone, and the list with one question. What is asked can be long, so each page
//! is built with a permit.

use super::inbox_view;
use super::page::{PageError, chrome};
use super::session::SignedIn;
use crate::api::SharedState;
use crate::params::Params;
use crate::path_params::PathParams;
use axum::extract::State;
use axum::response::Html;
use tandem_access::Scope;
use tandem_console::inbox_page;

pub(super) async fn list(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let selection = inbox_view::selection(&params)?;
    let _build = api.pages.begin_build(&reader.tenant).await?;
    let view = inbox_view::load_inbox(&api, &reader, selection, None).await?;
    Ok(Html(inbox_page(&chrome(&api, &reader), &view)))
}

pub(super) async fn question(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(id): PathParams<String>,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let selection = inbox_view::selection(&params)?;
    let _build = api.pages.begin_build(&reader.tenant).await?;
    let mut card = inbox_view::load_card(&api, &reader, id).await?;
    card.csrf = reader.csrf();
    card.selection = selection.clone();
    let view = inbox_view::load_inbox(&api, &reader, selection, Some(card)).await?;
    Ok(Html(inbox_page(&chrome(&api, &reader), &view)))
}
