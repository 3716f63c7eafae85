//! View models of conversations: rows of the list, the page of one, and what the card of a question shows of it.

use super::conversation_bridge::bridge_parts;
use super::conversation_takeover::takeover_panel;
use super::escalation_view;
use super::shown_bytes::{ShownBytes, line};
use crate::api::ApiState;
use crate::problem::Problem;
use crate::routes::title;
use tandem_access::{Identity, Scope};
use tandem_app::conversation::SessionLog;
use tandem_app::{Fault, InterruptFilter, Page};
use tandem_console::{
    ConversationFlow, ConversationPageView, ConversationRow, DeskQuestion, TranscriptLine,
};
use tandem_record::conversation::{IntentStatus, LedgerMessage, MessageRole, SessionView};
use tandem_record::{StreamId, Timestamp};

/// Messages on the page of a conversation.
pub(super) const SHOWN_MESSAGES: usize = 200;
/// Open questions of one conversation. A flow asks one at a time.
const MAX_QUESTIONS: usize = 10;

/// Whose turn it is, and the colour of that.
fn state(session: &SessionView) -> (&'static str, &'static str) {
    if session.ended_at.is_some() {
        return ("Ended", "quiet");
    }
    match session.hitl.mode.as_deref() {
        Some("live_takeover") => return ("With a colleague", "held"),
        Some("pending_admin_resolution") => return ("Waits for a decision", "held"),
        Some("pending_confirm") => return ("Waits for the user", "active"),
        Some("proxy") => return ("With a desk", "held"),
        _ => {}
    }
    let paused_on = session.flow.as_ref().map(|flow| flow.paused_on.as_deref());
    match paused_on {
        Some(Some("ask" | "confirm" | "confirm_response")) => ("Waits for the user", "active"),
        Some(Some("timeout" | "workflow")) => ("Waits", "quiet"),
        Some(Some(_)) => ("Waits for a decision", "held"),
        Some(None) => ("In a flow", "good"),
        None => ("With the agent", "good"),
    }
}

pub(super) fn row(session: &SessionView) -> ConversationRow {
    let (state, tone) = state(session);
    ConversationRow {
        session_id: session.id.to_string(),
        agent_id: session.agent_id.to_string(),
        user: line(&session.user_external_id),
        state: state.to_owned(),
        tone,
        flow_id: session.flow.as_ref().map(|flow| flow.flow_id.to_string()),
        waiting_since: session.hitl.pending_since.map(Timestamp::rfc3339),
        last_active_at: session.last_active_at.rfc3339(),
        messages: session.message_count,
    }
}

/// A conversation as its page shows it.
pub(super) async fn page(
    api: &ApiState,
    reader: &Identity,
    session: &SessionView,
    log: &SessionLog,
    csrf: String,
) -> Result<ConversationPageView, Problem> {
    let (state, tone) = state(session);
    let mut shown = ShownBytes::page();
    let omitted = log.messages.len().saturating_sub(SHOWN_MESSAGES);
    let flow = session.flow.as_ref().map(|flow| ConversationFlow {
        flow_id: flow.flow_id.to_string(),
        run_id: flow.flow_run_id.to_string(),
        paused_on: flow.paused_on.clone(),
        deadline: flow.deadline.map(Timestamp::rfc3339),
        answers: flow
            .answers
            .iter()
            .map(|(key, answer)| (line(key), shown.text(answer)))
            .collect(),
    });
    let escalations = escalation_view::of_conversation(api, reader, &session.id).await?;
    let transcript = transcript(session, log, SHOWN_MESSAGES, &mut shown);
    let bridges = bridge_parts(api, reader, session, log, &csrf, &mut shown).await?;
    Ok(ConversationPageView {
        takeover: takeover_panel(api, reader, session, &escalations, log, &csrf),
        session_id: session.id.to_string(),
        agent_id: session.agent_id.to_string(),
        user: line(&session.user_external_id),
        state: state.to_owned(),
        tone,
        started_at: session.started_at.rfc3339(),
        last_active_at: session.last_active_at.rfc3339(),
        ended_at: session.ended_at.map(Timestamp::rfc3339),
        waiting_since: session.hitl.pending_since.map(Timestamp::rfc3339),
        flow,
        bridge: bridges.active,
        bridge_messages: bridges.messages,
        bridge_input: bridges.input,
        escalations,
        questions: questions(api, reader, session).await?,
        transcript,
        lines_omitted: u64::try_from(omitted).unwrap_or(u64::MAX),
        can_compare: log.has_answer_of_person() && reader.require_scope(Scope::RunsCreate).is_ok(),
        can_end: reader.require_scope(Scope::RunsCancel).is_ok(),
        csrf,
    })
}

/// Open questions of the conversation, as the inbox has them.
async fn questions(
    api: &ApiState,
    reader: &Identity,
    session: &SessionView,
) -> Result<Vec<DeskQuestion>, Problem> {
    let flow = session.flow.as_ref();
    let streams = [
        Some(StreamId::of_session(&session.id)),
        flow.map(|flow| StreamId::of_run(&flow.flow_run_id)),
    ];
    let mut questions = Vec::new();
    for stream in streams.into_iter().flatten() {
        let filter = InterruptFilter {
            open: Some(true),
            stream: Some(stream),
            ..InterruptFilter::default()
        };
        let page = Page {
            before: None,
            limit: MAX_QUESTIONS,
        };
        let listing = api.app.list_interrupts(reader, filter, &page).await?;
        let rows = listing.rows.iter();
        let rows: Result<Vec<_>, Fault> = rows
            .map(|(_, row)| {
                Ok(DeskQuestion {
                    id: row.interrupt.to_string(),
                    kind: row.kind.clone(),
                    title: line(&title(&row.kind, &row.question()?.data)),
                    created_at: row.created_at.rfc3339(),
                    deadline: row.deadline.map(Timestamp::rfc3339),
                    is_for_admins: row.kind == "approval",
                })
            })
            .collect();
        questions.extend(rows?);
    }
    Ok(questions)
}

/// The last messages, oldest first. The newest get the room of the page first.
pub(super) fn transcript(
    session: &SessionView,
    log: &SessionLog,
    count: usize,
    shown: &mut ShownBytes,
) -> Vec<TranscriptLine> {
    let newest = log.messages.iter().rev().take(count);
    let mut lines: Vec<TranscriptLine> = newest
        .map(|message| transcript_line(session, log, message, shown))
        .collect();
    lines.reverse();
    lines
}

pub(super) fn transcript_line(
    session: &SessionView,
    log: &SessionLog,
    message: &LedgerMessage,
    shown: &mut ShownBytes,
) -> TranscriptLine {
    let (by, name) = match (&message.author, message.role) {
        (Some(author), _) => ("human", author.actor_id.clone()),
        (None, MessageRole::User) => ("user", "User".to_owned()),
        (None, MessageRole::Assistant | MessageRole::Note) => {
            ("agent", session.agent_id.to_string())
        }
    };
    let mut outbox = log.outbox.iter().rev();
    let intent = outbox.find(|intent| intent.key.as_str() == message.id);
    let delivery = intent.and_then(|intent| match intent.status {
        IntentStatus::Sent => None,
        IntentStatus::Pending => Some("being sent"),
        IntentStatus::Failed => Some("not delivered"),
        IntentStatus::WindowClosed => Some("not delivered: reply window closed"),
        IntentStatus::Suppressed => Some("suppressed"),
        IntentStatus::Canceled => Some("canceled"),
    });
    TranscriptLine {
        by,
        name: line(&name),
        text: shown.text(&message.text),
        at: message.at.rfc3339(),
        delivery: delivery.map(str::to_owned),
    }
}
