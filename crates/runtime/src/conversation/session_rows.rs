//! The rows that follow from a decision about a session: its listing, its escalations, the activity of its
//! user, and the log of its agent.

use super::bridges;
use super::session_audit::decided_questions;
use super::session_machine::SessionMachine;
use super::session_questions;
use crate::driven_machine::{ProjectedRows, Projection};
use tandem_engine::machine::{Decision, Machine as _};
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{EscalationPriority, EscalationRecord, SessionEventBody as Body};
use tandem_store::{Commit, ConversationChange, EscalationRow, SessionRow};

pub(super) fn project(
    projection: &Projection<'_>,
    before: Option<&SessionMachine>,
    decision: &Decision<SessionMachine>,
    commit: &mut Commit,
) -> ProjectedRows {
    let Some(after) = decision.after.session() else {
        return ProjectedRows::default();
    };
    let before = before.and_then(SessionMachine::session);
    let rows = &mut commit.conversations;
    let row = session_row(after);
    // Most changes move this time.
    let is_same_time = |before: &&ChatSession| before.last_active_at() == row.last_active_at;
    if before.filter(is_same_time).map(session_row).as_ref() != Some(&row) {
        rows.push(ConversationChange::PutSession(row));
    }
    for escalation in after.escalations() {
        let known = before.and_then(|session| session.escalation(&escalation.id));
        if known != Some(escalation) {
            let row = escalation_row(after, escalation);
            rows.push(ConversationChange::PutEscalation(row));
        }
    }
    rows.extend(bridges::changed_rows(before, after, &decision.events));
    let is_message = |body: &Body| matches!(body, Body::MessageReceived { .. });
    let received = decision.events.iter().rev();
    let mut received = received.filter(|event| is_message(&event.event.body));
    if let Some(message) = received.next() {
        rows.push(ConversationChange::TouchUser {
            user: after.start().user.id.clone(),
            at: message.at,
        });
    }
    if !decision.events.is_empty() {
        rows.push(ConversationChange::LogEvents {
            tenant: after.start().owner.tenant.clone(),
            agent: after.start().agent_id.clone(),
            stream: decision.after.stream(),
        });
    }
    let questions = session_questions::changed_rows(before, after, decision);
    let decided = decided_questions(after, &decision.events).into_iter();
    let of_session = decided.filter(|question| question.run.is_none());
    let caller = projection.runtime.actor();
    commit
        .audit
        .extend(of_session.map(|question| question.entry_of_session(after, &questions, caller)));
    let has_question_changes = !questions.is_empty();
    commit.interrupts.extend(questions);
    ProjectedRows {
        has_question_changes,
        ..ProjectedRows::default()
    }
}

pub(super) fn session_row(session: &ChatSession) -> SessionRow {
    let start = session.start();
    let view = session.view();
    SessionRow {
        session_id: start.session_id.clone(),
        tenant: start.owner.tenant.clone(),
        workspace: start.owner.workspace.clone(),
        agent: start.agent_id.clone(),
        user_id: start.user.id.clone(),
        user_external_id: start.user.external_user_id.clone(),
        started_at: session.started_at(),
        last_active_at: session.last_active_at(),
        ended_at: session.ended().map(|(at, _)| at),
        body: serde_json::to_string(&view).expect("a view is plain data"),
    }
}

pub(super) fn escalation_row(
    session: &ChatSession,
    escalation: &EscalationRecord,
) -> EscalationRow {
    let start = session.start();
    EscalationRow {
        escalation_id: escalation.id.clone(),
        session_id: start.session_id.clone(),
        tenant: start.owner.tenant.clone(),
        workspace: start.owner.workspace.clone(),
        agent: start.agent_id.clone(),
        user_external_id: start.user.external_user_id.clone(),
        status: escalation.status,
        priority: priority(escalation.priority),
        queue: escalation.queue.clone(),
        assignee: escalation.assignee.clone(),
        created_at: escalation.created_at,
        deadline: escalation.deadline,
        body: serde_json::to_string(escalation).expect("an escalation is plain data"),
    }
}

/// Higher is more urgent, as in the inbox; 0 is normal.
pub(super) fn priority(priority: EscalationPriority) -> i32 {
    match priority {
        EscalationPriority::Low => -1,
        EscalationPriority::Normal => 0,
        EscalationPriority::High => 5,
        EscalationPriority::Critical => 9,
    }
}
