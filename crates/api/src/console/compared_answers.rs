//! What the agent would have said where a person answered, side by side.

use super::page::{PageError, chrome};
use super::session::PostedForm;
use super::shown_bytes::{ShownBytes, line};
use crate::api::SharedState;
use crate::path_params::PathParams;
use crate::routes::compared_lines;
use axum::extract::State;
use axum::response::Html;
use tandem_access::Scope;
use tandem_app::conversation::ComparedAnswer;
use tandem_console::{ComparedAnswersView, ComparedPair, TranscriptLine, compared_answers_page};
use tandem_record::SessionId;

/// Bytes of the lines that a page carries for the download.
const MAX_LINES_BYTES: usize = 1024 * 1024;

/// Calls the agent's model, so it is a form and not a link.
pub(super) async fn compare(
    State(api): State<SharedState>,
    PathParams(session): PathParams<String>,
    posted: PostedForm,
) -> Result<Html<String>, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsCreate)?;
    let session = SessionId::from(session);
    let found = api.app.read_chat_session(by, &session).await?;
    let compared = api.app.compare_answers(by, &session).await?;
    let _build = api.pages.begin_build(&by.tenant).await?;
    let mut shown = ShownBytes::page();
    let pairs = compared.iter().map(|found| pair(found, &mut shown));
    let view = ComparedAnswersView {
        pairs: pairs.collect(),
        lines: Some(compared_lines(&session, &compared))
            .filter(|lines| lines.len() <= MAX_LINES_BYTES),
        session_id: session.to_string(),
        agent_id: found.agent_id.to_string(),
        user: line(&found.user_external_id),
    };
    Ok(Html(compared_answers_page(&chrome(&api, by), &view)))
}

fn pair(found: &ComparedAnswer, shown: &mut ShownBytes) -> ComparedPair {
    let user = found.messages.iter().map(|message| TranscriptLine {
        by: "user",
        name: "User".to_owned(),
        text: shown.text(&message.body),
        at: message.received_at.rfc3339(),
        delivery: None,
    });
    let user = user.collect();
    let human = found.human.iter().map(|message| TranscriptLine {
        by: "human",
        name: message
            .author
            .as_ref()
            .map_or_else(String::new, |author| line(&author.actor_id)),
        text: shown.text(&message.text),
        at: message.at.rfc3339(),
        delivery: None,
    });
    let human = human.collect();
    let answer = &found.agent;
    ComparedPair {
        user,
        human,
        agent: answer.texts.iter().map(|text| shown.text(text)).collect(),
        actions: answer.actions.iter().map(|action| line(action)).collect(),
        error: answer.error.as_deref().map(line),
    }
}
