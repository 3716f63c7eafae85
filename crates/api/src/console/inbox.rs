//! The inbox's pages: the list alone, and with one question beside it.

use super::inbox_view;
use super::page::{Detour, chrome};
use super::session::SignedIn;
use crate::api::Shared;
use crate::at::At;
use crate::params::Params;
use axum::extract::State;
use axum::response::Html;
use tandem_access::Scope;
use tandem_console::inbox_page;

pub(super) async fn list(
    State(doors): State<Shared>,
    reader: SignedIn,
    params: Params,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::RunsRead)?;
    let selection = inbox_view::selection(&params)?;
    let view = inbox_view::whole(&doors, &reader, selection, None).await?;
    Ok(Html(inbox_page(&chrome(&doors, &reader), &view)))
}

pub(super) async fn question(
    State(doors): State<Shared>,
    reader: SignedIn,
    At(id): At<String>,
    params: Params,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::RunsRead)?;
    let selection = inbox_view::selection(&params)?;
    let mut card = inbox_view::card(&doors, &reader, id).await?;
    card.csrf = reader.csrf();
    card.selection = selection.clone();
    let view = inbox_view::whole(&doors, &reader, selection, Some(card)).await?;
    Ok(Html(inbox_page(&chrome(&doors, &reader), &view)))
}
