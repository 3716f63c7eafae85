//! The card of a question that a conversation asks: what is proposed, the last messages, and who may answer.

use super::conversation_view::transcript;
use super::escalation_view;
use super::shown_bytes::{ShownBytes, line};
use crate::api::ApiState;
use crate::problem::Problem;
use crate::routes::{actions, title};
use serde_json::Value;
use std::borrow::Cow;
use tandem_access::{Identity, Scope};
use tandem_app::{AppError, InterruptRow};
use tandem_console::{CardConversation, CardView, Decided};
use tandem_record::{QuestionBody, SessionId, Timestamp};

/// Messages before the question.
const SHOWN_MESSAGES: usize = 8;

/// `decided` is how the question ended, if it did.
pub(super) async fn conversation_card(
    api: &ApiState,
    reader: &Identity,
    row: InterruptRow,
    question: QuestionBody<'static>,
    session: &SessionId,
    decided: Option<Decided>,
) -> Result<CardView, Problem> {
    let run_id = row.run().or(question.run_id.map(Cow::into_owned));
    let run_status = match &run_id {
        Some(run) => match api.app.read_run(reader, run).await {
            Ok(run) => run.row.status.as_str().to_owned(),
            Err(AppError::NotFound(_)) => String::new(),
            Err(error) => return Err(error.into()),
        },
        None => String::new(),
    };
    let data = question.data.into_owned();
    let is_open = decided.is_none();
    // A question to the user may be answered for them, by a right of its own.
    let may_decide = matches!(row.kind.as_str(), "approval" | "clarification");
    let denied_reason = match may_decide {
        _ if !is_open => None,
        false => Some("Nobody answers this: the flow goes on by itself.".to_owned()),
        true if reader.require_scope(Scope::ApprovalsRespond).is_err() => Some(
            "Your key may look but not answer: it lacks the scope approvals:respond.".to_owned(),
        ),
        true => None,
    };
    Ok(CardView {
        id: row.interrupt.to_string(),
        title: line(&title(&row.kind, &data)),
        run_id: run_id.map(|run| run.to_string()).unwrap_or_default(),
        run_status,
        workflow_id: question
            .workflow_id
            .map(|workflow| workflow.to_string())
            .unwrap_or_default(),
        node_id: row.step.to_string(),
        created_at: row.created_at.rfc3339(),
        deadline: row.deadline.map(Timestamp::rfc3339),
        priority: row.priority,
        digest: question.digest.into_owned(),
        edited: question.edited.map(Cow::into_owned),
        actions: match is_open && may_decide {
            true => offered(&row.kind, &data),
            false => Vec::new(),
        },
        denied_reason,
        decided,
        conversation: conversation(api, reader, session).await?,
        escalation: match is_open {
            true => escalation_view::of_question(api, reader, &data).await?,
            false => None,
        },
        kind: row.kind,
        data,
        ..CardView::default()
    })
}

fn offered(kind: &str, data: &Value) -> Vec<String> {
    let offered = actions(kind, data);
    let offered = offered.as_array().into_iter().flatten();
    let texts = offered.filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// `None` when the conversation was purged meanwhile.
async fn conversation(
    api: &ApiState,
    reader: &Identity,
    session: &SessionId,
) -> Result<Option<CardConversation>, Problem> {
    let found = match api.app.read_chat_session(reader, session).await {
        Ok(found) => found,
        Err(AppError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let log = api.app.read_session_log(reader, session).await?;
    Ok(Some(CardConversation {
        session_id: found.id.to_string(),
        agent_id: found.agent_id.to_string(),
        user: line(&found.user_external_id),
        transcript: transcript(&found, &log, SHOWN_MESSAGES, &mut ShownBytes::page()),
    }))
}
