//! View models of escalations: whose work they are, and what this reader may do about it.

use super::desk_offer::desk_offer;
use super::shown_bytes::line;
use crate::api::ApiState;
use crate::problem::Problem;
use serde_json::Value;
use tandem_access::Identity;
use tandem_app::ListingPage;
use tandem_app::conversation::{EscalationFound, EscalationQuery};
use tandem_console::{DeskEscalation, DeskOffer};
use tandem_record::conversation::EscalationPriority;
use tandem_record::{EscalationId, SessionId, Timestamp};

/// Open escalations on the page of one conversation. All but one have lost their flow.
const MAX_OF_CONVERSATION: usize = 5;

pub(super) fn escalation(
    api: &ApiState,
    reader: &Identity,
    found: &EscalationFound,
) -> DeskEscalation {
    let record = &found.record;
    let shown = |text: &Option<String>| text.as_deref().map(line);
    DeskEscalation {
        id: record.id.to_string(),
        reason: line(&record.reason),
        priority: match record.priority {
            EscalationPriority::Low | EscalationPriority::Normal => None,
            EscalationPriority::High => Some("high".to_owned()),
            EscalationPriority::Critical => Some("critical".to_owned()),
        },
        queue: shown(&record.queue),
        assignee: shown(&record.assignee),
        claimed_at: record.claimed_at.map(Timestamp::rfc3339),
        created_at: record.created_at.rfc3339(),
        deadline: record.deadline.map(Timestamp::rfc3339),
        is_stopped: record.stopped.is_some(),
        offer: match record.is_open() {
            true => desk_offer(api.app.desk_right(reader, &found.agent)),
            false => DeskOffer::Nothing,
        },
    }
}

/// The open escalations of a conversation.
pub(super) async fn of_conversation(
    api: &ApiState,
    reader: &Identity,
    session: &SessionId,
) -> Result<Vec<DeskEscalation>, Problem> {
    let query = EscalationQuery {
        session: Some(session.clone()),
        ..EscalationQuery::default()
    };
    let page = ListingPage {
        after: None,
        limit: MAX_OF_CONVERSATION,
    };
    let (found, _) = api.app.list_desk(reader, query, &page).await?;
    Ok(found
        .iter()
        .map(|found| escalation(api, reader, found))
        .collect())
}

/// The escalation that a question asks to decide, while it is open.
pub(super) async fn of_question(
    api: &ApiState,
    reader: &Identity,
    data: &Value,
) -> Result<Option<DeskEscalation>, Problem> {
    let id = data["artifactId"].as_str();
    let Some(id) = id.filter(|_| data["artifactType"] == "escalation") else {
        return Ok(None);
    };
    let id = EscalationId::from(id);
    let found = api.app.read_desk_escalation(reader, &id).await?;
    let found = found.filter(|found| found.record.is_open());
    Ok(found.map(|found| escalation(api, reader, &found)))
}
