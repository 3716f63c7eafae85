//! Taking a conversation over from its page: the view of who has it, and the forms that change that.

use super::desk_offer::{admin_token, desk_offer};
use super::page::PageError;
use super::session::PostedForm;
use crate::api::{ApiState, SharedState};
use crate::path_params::PathParams;
use crate::routes::console_call;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Redirect;
use sha2::{Digest, Sha256};
use tandem_access::{Identity, Scope};
use tandem_app::conversation::{AdminCall, DeskRight, SessionLog, TakeoverMessage};
use tandem_app::{AppError, Idempotency};
use tandem_console::{DeskEscalation, TakeoverPanel, conversation_link};
use tandem_record::SessionId;
use tandem_record::conversation::SessionView;

const LIVE_TAKEOVER: &str = "live_takeover";

/// Who has the conversation, and what the reader may do about it.
pub(super) fn takeover_panel(
    api: &ApiState,
    reader: &Identity,
    session: &SessionView,
    escalations: &[DeskEscalation],
    log: &SessionLog,
    csrf: &str,
) -> TakeoverPanel {
    let is_taken_over = session.hitl.mode.as_deref() == Some(LIVE_TAKEOVER);
    let id = session.hitl.escalation_id.as_ref();
    let mut of_takeover = escalations.iter();
    let open = of_takeover.find(|open| Some(open.id.as_str()) == id.map(|id| id.as_str()));
    let claimed = open.filter(|open| is_taken_over && open.claimed_at.is_some());
    let right = match session.ended_at {
        Some(_) => DeskRight::None,
        None => api.app.takeover_right(reader, &session.agent_id),
    };
    TakeoverPanel {
        is_taken_over,
        holder: claimed.and_then(|open| open.assignee.clone()),
        offer: desk_offer(right),
        message_id: next_message_id(log, csrf),
    }
}

/// The identity of the text that this reader sends next. It changes with each text of a person, and is another one in
/// each browser.
fn next_message_id(log: &SessionLog, csrf: &str) -> String {
    let mut newest = log.messages.iter().rev();
    let last = newest.find(|message| message.author.is_some());
    let last = last.map_or("", |message| message.id.as_str());
    let digest = Sha256::digest(format!("{csrf}\0{last}"));
    let hex: String = digest[..12].iter().map(|b| format!("{b:02x}")).collect();
    format!("console-{hex}")
}

/// What a form of the page does, as the admin who sent it. Leads back to the page.
async fn act<T>(
    session: String,
    headers: &HeaderMap,
    posted: &PostedForm,
    action: impl AsyncFnOnce(AdminCall<'_>, SessionId) -> Result<T, AppError>,
) -> Result<Redirect, PageError> {
    posted.by.require_scope(Scope::RunsRead)?;
    let session = SessionId::from(session);
    let back = conversation_link(session.as_str());
    let call = console_call(&posted.by, headers, admin_token(posted));
    action(call, session).await?;
    Ok(Redirect::to(&back))
}

pub(super) async fn take_over(
    State(api): State<SharedState>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    act(session, &headers, &posted, async |call, session| {
        let taken = api.app.take_over(&call, session, Idempotency::none());
        taken.await
    })
    .await
}

pub(super) async fn write(
    State(api): State<SharedState>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let message = TakeoverMessage {
        message_id: posted.field("messageId").to_owned(),
        // Browsers send line ends of their own.
        text: posted.field("text").replace("\r\n", "\n"),
    };
    act(session, &headers, &posted, async |call, session| {
        let idempotency = Idempotency::none();
        let written = api
            .app
            .send_takeover_message(&call, session, message, idempotency);
        written.await
    })
    .await
}

pub(super) async fn hand_back(
    State(api): State<SharedState>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let note = posted.field("note").replace("\r\n", "\n");
    let note = Some(note).filter(|note| !note.trim().is_empty());
    act(session, &headers, &posted, async |call, session| {
        let handed_back = api.app.hand_back(&call, session, note, Idempotency::none());
        handed_back.await
    })
    .await
}
