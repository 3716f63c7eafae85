//! Questions and inboxes in which every text is hostile.

use super::{HOSTILE, event, hostile};
use crate::*;
use serde_json::json;

pub(super) fn question(kind: &str) -> CardView {
    let data = serde_json::json!({
        "description": HOSTILE, "requiredApprovals": 2, "contextType": HOSTILE,
        "artifactData": {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}], "n": 1, "on": true},
        "artifactSchema": {"title": HOSTILE, "description": HOSTILE},
        "questions": [{"id": HOSTILE, "question": HOSTILE, "schema": {"enum": [HOSTILE, 1]}}],
    });
    CardView {
        id: hostile(),
        kind: kind.to_owned(),
        title: hostile(),
        run_id: hostile(),
        run_status: hostile(),
        workflow_id: hostile(),
        node_id: hostile(),
        created_at: hostile(),
        deadline: Some(hostile()),
        priority: 9,
        groups: vec![hostile()],
        resume_schema: Some(serde_json::json!({"properties": {HOSTILE: {"type": "string"}}})),
        data,
        digest: hostile(),
        actions: ["accept", "reject", "refine", "edit-accept", "ask", HOSTILE]
            .map(str::to_owned)
            .into(),
        votes: vec![VoteView {
            claimed_by: None,
            voter: hostile(),
            delegate: Some(hostile()),
            action: hostile(),
            at: hostile(),
            feedback: Some(hostile()),
        }],
        follow_up_questions: vec![FollowUpQuestion {
            by: Some(hostile()),
            question: hostile(),
            at: hostile(),
        }],
        history: vec![event()],
        next: vec![NextStep {
            action: hostile(),
            text: hostile(),
        }],
        proposed: Some(json!(hostile())),
        edited: Some(json!({"amount": hostile()})),
        own_vote: Some(hostile()),
        csrf: hostile(),
        refused: Some(hostile()),
        field_errors: vec![(hostile(), hostile())],
        entered: vec![("action".to_owned(), "edit-accept".to_owned())],
        ..CardView::default()
    }
}

pub(super) fn inbox(card: Option<CardView>) -> InboxView {
    InboxView {
        rows: vec![InboxRow {
            expired: false,
            id: hostile(),
            kind: hostile(),
            title: hostile(),
            workflow_id: hostile(),
            node_id: hostile(),
            created_at: hostile(),
            deadline: Some(hostile()),
            priority: 9,
            groups: vec![hostile()],
            votes: Some((1, 2)),
        }],
        selection: InboxSelection {
            kind: Some(hostile()),
            group: Some(hostile()),
            sort: Some(hostile()),
            cursor: Some(hostile()),
        },
        kinds: vec![hostile()],
        groups: vec![hostile()],
        next_cursor: Some(hostile()),
        chosen: card.as_ref().map(|card| card.id.clone()),
        card,
    }
}

pub(super) fn decided() -> CardView {
    CardView {
        decided: Some(Decided {
            outcome: hostile(),
            by: Some(hostile()),
            at: Some(hostile()),
        }),
        ..question("approval")
    }
}
