//! The inbox rows of questions that a session asks without a waiting flow: escalations that no flow waits for,
//! and texts of the agent that a person has to approve.

use super::session_machine::SessionMachine;
use crate::questions::digest;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tandem_engine::machine::Decision;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    ApprovalAsked, DraftOutcome, EscalationMode, EscalationRecord, EscalationStatus, SessionEvent,
    SessionEventBody as Body,
};
use tandem_record::{InterruptId, QuestionBody, Recorded, StepId, StreamId, Timestamp};
use tandem_store::InterruptRow;

const APPROVAL: &str = "approval";
const CLARIFICATION: &str = "clarification";
const ACTIONS: [&str; 3] = ["accept", "reject", "edit-accept"];

/// A question while it is open.
#[derive(PartialEq)]
struct OpenQuestion {
    kind: &'static str,
    data: Value,
    approvers: Vec<String>,
    created_at: Timestamp,
    deadline: Option<Timestamp>,
    priority: i32,
}

/// How a question ended.
struct Closing {
    outcome: String,
    by: Option<String>,
    at: Timestamp,
}

/// Rows that the decision changes.
pub(super) fn changed_rows(
    before: Option<&ChatSession>,
    after: &ChatSession,
    decision: &Decision<SessionMachine>,
) -> Vec<InterruptRow> {
    let was_open = before.map(open_questions).unwrap_or_default();
    let is_open = open_questions(after);
    let mut rows = Vec::new();
    for (id, question) in &is_open {
        if was_open.get(id) != Some(question) {
            rows.push(row(after, id, question, None));
        }
    }
    for (id, question) in &was_open {
        if !is_open.contains_key(id) {
            let closing = closing(after, id, &decision.events);
            rows.push(row(after, id, question, Some(closing)));
        }
    }
    rows
}

/// Rows of all questions that are open.
pub(super) fn open_rows(session: &ChatSession) -> Vec<InterruptRow> {
    let open = open_questions(session);
    open.iter()
        .map(|(id, question)| row(session, id, question, None))
        .collect()
}

fn open_questions(session: &ChatSession) -> BTreeMap<InterruptId, OpenQuestion> {
    let drafts = session.drafts().map(|(id, draft)| {
        let data = json!({
            "artifactId": id,
            "artifactType": "draft",
            "title": "Send this text?",
            "artifactData": {"text": draft.candidate.text},
            "actions": ACTIONS,
        });
        let question = OpenQuestion {
            kind: APPROVAL,
            data,
            approvers: Vec::new(),
            created_at: draft.created_at,
            deadline: None,
            priority: 0,
        };
        (id.clone(), question)
    });
    let escalations = session.escalations().filter(|e| is_question_of_session(e));
    let escalations = escalations.map(|escalation| {
        let id = InterruptId::new(escalation.id.as_str());
        (id, question_of(escalation))
    });
    let consent = session.user_approval().and_then(|request| {
        let ApprovalAsked::User {
            question, deadline, ..
        } = &request.asked
        else {
            return None;
        };
        let schema = json!({"type": "boolean"});
        let question = OpenQuestion {
            kind: CLARIFICATION,
            data: json!({"questions": [{"id": "confirm", "question": question, "schema": schema}]}),
            approvers: Vec::new(),
            created_at: session.approval_asked_at().unwrap_or(session.started_at()),
            deadline: Some(*deadline),
            priority: 0,
        };
        Some((request.interrupt_id.clone(), question))
    });
    drafts.chain(escalations).chain(consent).collect()
}

/// What a question of the session shows while it is open.
pub(super) fn shown_data(session: &ChatSession, id: &InterruptId) -> Option<Value> {
    open_questions(session)
        .remove(id)
        .map(|question| question.data)
}

/// A flow that waits for an escalation asks the question itself.
fn is_question_of_session(escalation: &EscalationRecord) -> bool {
    // Nobody decides a takeover: it is handed back.
    escalation.mode == EscalationMode::AsyncResolution
        && escalation.is_open()
        && (escalation.flow_id.is_none() || escalation.detached)
}

/// What is shown of an escalation that no flow waits for.
pub(super) fn escalation_data(escalation: &EscalationRecord) -> Value {
    json!({
        "artifactId": escalation.id,
        "artifactType": "escalation",
        "title": escalation.reason,
        "artifactData": {"metadata": escalation.metadata, "context": escalation.context},
        "actions": ACTIONS,
    })
}

fn question_of(escalation: &EscalationRecord) -> OpenQuestion {
    OpenQuestion {
        kind: APPROVAL,
        data: escalation_data(escalation),
        approvers: escalation.approvers.clone(),
        created_at: escalation.created_at,
        deadline: escalation.deadline,
        priority: super::session_rows::priority(escalation.priority),
    }
}

fn closing(session: &ChatSession, id: &InterruptId, events: &[Recorded<SessionEvent>]) -> Closing {
    let last = events.last().map_or(Timestamp(0), |event| event.at);
    for recorded in events {
        let by = recorded.event.actor.as_ref().map(|actor| actor.id.clone());
        let at = recorded.at;
        match &recorded.event.body {
            Body::DraftDecided { draft_id, outcome } if draft_id == id => {
                let outcome = match outcome {
                    DraftOutcome::Accepted | DraftOutcome::Edited => "accepted",
                    DraftOutcome::Rejected => "rejected",
                    DraftOutcome::Dropped => "cancelled",
                };
                let outcome = outcome.to_owned();
                return Closing { outcome, by, at };
            }
            Body::ConfirmResolved { interrupt_id, .. } if interrupt_id == id => {
                let outcome = "answered".to_owned();
                return Closing { outcome, by, at };
            }
            Body::ConfirmTimedOut { interrupt_id, .. } if interrupt_id == id => {
                let outcome = "timeout".to_owned();
                return Closing { outcome, by, at };
            }
            _ => {}
        }
    }
    let escalation = session.escalation(&id.as_str().into());
    let resolution = escalation.and_then(|escalation| escalation.resolution.as_ref());
    let outcome = match (escalation.map(|e| e.status), resolution) {
        (_, Some(resolution)) if resolution.approved => "accepted",
        (_, Some(_)) => "rejected",
        (Some(EscalationStatus::TimedOut), None) => "timeout",
        _ => "cancelled",
    };
    Closing {
        outcome: outcome.to_owned(),
        by: resolution.map(|resolution| resolution.resolved_by.clone()),
        at: resolution.map_or(last, |resolution| resolution.resolved_at),
    }
}

fn row(
    session: &ChatSession,
    id: &InterruptId,
    question: &OpenQuestion,
    closing: Option<Closing>,
) -> InterruptRow {
    let owner = &session.start().owner;
    let closed = closing.as_ref();
    let by = closed.and_then(|closing| closing.by.as_deref());
    let body = QuestionBody {
        key: Cow::Borrowed(id.as_str()),
        data: Cow::Borrowed(&question.data),
        digest: Cow::Owned(digest(&question.data)),
        approvers: Cow::Borrowed(&question.approvers),
        session_id: Some(Cow::Borrowed(session.id())),
        outcome: closed.map(|closing| Cow::Borrowed(&*closing.outcome)),
        decided_by: by.map(Cow::Borrowed),
        decided_at: closed.map(|closing| closing.at),
        ..QuestionBody::default()
    };
    InterruptRow {
        interrupt: id.clone(),
        stream: StreamId::of_session(session.id()),
        step: StepId::new(id.as_str()),
        tenant: owner.tenant.clone(),
        workspace: owner.workspace.clone(),
        kind: question.kind.to_owned(),
        created_at: question.created_at,
        deadline: question.deadline,
        priority: question.priority,
        groups: Vec::new(),
        body: body.to_json(),
        closed: closing.map(|closing| closing.outcome),
    }
}
