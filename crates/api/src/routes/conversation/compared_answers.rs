//! What people said during takeovers, beside what the agent would have said.

use crate::api::SharedState;
use crate::caller::{Caller, OfConversations, RunsCreate};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tandem_app::conversation::ComparedAnswer;
use tandem_record::SessionId;
use tandem_record::conversation::{InboundMessage, LedgerMessage};

const LINES: &str = "application/x-ndjson";

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/compare-answers", tag = "conversations",
    operation_id = "compareAnswers", params(("sessionId" = String, Path)),
    description = "For each answer of a person during a takeover: the session as it was before the takeover goes on in \
                   memory with the user's messages, one after the other, by the agent as it is now, with its model, its \
                   functions, its flows, and what tools answered in this session. Nothing of it is stored or sent. With \
                   `Accept: application/x-ndjson` one line for each.",
    responses((status = 200, description = "The last 20 answers, oldest first", body = Value))
)]
pub(super) async fn compare_answers(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = SessionId::from(session);
    let compared = api.app.compare_answers(&caller, &session).await?;
    let accepted = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
    if accepted.is_some_and(|accepted| accepted.contains(LINES)) {
        let lines = compared_lines(&session, &compared);
        return Ok(([(header::CONTENT_TYPE, LINES)], lines).into_response());
    }
    let pairs: Vec<Value> = compared.iter().map(|pair| shown(&session, pair)).collect();
    Ok(Json(json!({"sessionId": session, "pairs": pairs})).into_response())
}

/// One line of JSON for each.
pub(crate) fn compared_lines(session: &SessionId, compared: &[ComparedAnswer]) -> String {
    let pairs = compared.iter().map(|pair| shown(session, pair));
    pairs.map(|pair| format!("{pair}\n")).collect()
}

fn shown(session: &SessionId, pair: &ComparedAnswer) -> Value {
    let asked = |message: &InboundMessage| {
        json!({"messageId": message.message_id, "text": message.body,
            "at": message.received_at.rfc3339()})
    };
    let said = |message: &LedgerMessage| {
        let by = message.author.as_ref().map(|author| &author.actor_id);
        json!({"text": message.text, "by": by, "at": message.at.rfc3339()})
    };
    let mut agent = json!({"texts": pair.agent.texts, "actions": pair.agent.actions});
    if let Some(error) = &pair.agent.error {
        agent["error"] = json!(error);
    }
    json!({
        "sessionId": session,
        "escalationId": pair.escalation,
        "user": pair.messages.iter().map(asked).collect::<Vec<_>>(),
        "human": pair.human.iter().map(said).collect::<Vec<_>>(),
        "agent": agent,
    })
}
