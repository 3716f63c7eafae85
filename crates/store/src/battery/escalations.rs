//! Escalations: separate for each tenant, newest first, found by every combination of conditions.

use super::sample::{NOW, conversation_changes, later, must};
use crate::{
    ConversationChange, EscalationAssignee, EscalationFilter, EscalationRow, ListingPage,
    SCANNED_ROWS, Store,
};
use std::sync::Arc;
use tandem_record::EscalationId;
use tandem_record::conversation::EscalationStatus;

use ConversationChange::PutEscalation;

pub(super) fn escalation_row(tenant: &str, session: &str, id: &str) -> EscalationRow {
    EscalationRow {
        escalation_id: EscalationId::new(id),
        session_id: session.into(),
        tenant: tenant.into(),
        workspace: None,
        agent: "desk".into(),
        user_external_id: "ana".into(),
        status: EscalationStatus::Open,
        priority: 1,
        queue: None,
        assignee: None,
        created_at: NOW,
        deadline: Some(later(60)),
        body: format!(r#"{{"id":"{id}"}}"#),
    }
}

/// The ids of all pages with this limit.
async fn ids(store: &Arc<dyn Store>, filter: &EscalationFilter, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = ListingPage { after, limit };
        let found = store.list_escalations(&"t1".into(), filter, &page).await;
        let found = found.unwrap().expect("the cursor is valid");
        assert!(found.rows.len() <= limit);
        ids.extend(found.rows.iter().map(|row| row.escalation_id.to_string()));
        match found.next {
            None => return ids,
            next => after = next,
        }
    }
}

pub async fn escalation_is_bound_to_its_tenant(store: Arc<dyn Store>) {
    let mut row = escalation_row("t1", "s1", "e1");
    row.workspace = Some("red".into());
    row.queue = Some("finance".into());
    row.assignee = Some("eva".into());
    must(&store, conversation_changes([PutEscalation(row.clone())])).await;
    let id = EscalationId::new("e1");
    let found = store.escalation(&"t1".into(), &id).await.unwrap();
    assert_eq!(found, Some(row), "every field");
    assert_eq!(store.escalation(&"t2".into(), &id).await.unwrap(), None);
    for (tenant, workspace, is_known) in [
        ("t1", None, true),
        ("t1", Some("red"), true),
        ("t1", Some("blue"), false),
        ("t2", None, false),
    ] {
        let page = ListingPage {
            after: Some(id.clone()),
            limit: 10,
        };
        let filter = EscalationFilter {
            workspace: workspace.map(Into::into),
            ..EscalationFilter::default()
        };
        let found = store.list_escalations(&tenant.into(), &filter, &page).await;
        let found = found.unwrap();
        assert_eq!(found.is_some(), is_known, "{tenant} {workspace:?}");
    }
}

pub async fn changed_escalation_retains_identity_and_moves_between_lists(store: Arc<dyn Store>) {
    must(
        &store,
        conversation_changes([PutEscalation(escalation_row("t1", "s1", "e1"))]),
    )
    .await;
    let changed = EscalationRow {
        workspace: Some("blue".into()),
        agent: "other".into(),
        user_external_id: "ben".into(),
        status: EscalationStatus::Resolved,
        priority: 3,
        queue: Some("finance".into()),
        assignee: Some("eva".into()),
        created_at: later(9),
        deadline: None,
        body: "{}".into(),
        ..escalation_row("t2", "s2", "e1")
    };
    must(&store, conversation_changes([PutEscalation(changed)])).await;
    let expected = EscalationRow {
        status: EscalationStatus::Resolved,
        priority: 3,
        queue: Some("finance".into()),
        assignee: Some("eva".into()),
        deadline: None,
        body: "{}".into(),
        ..escalation_row("t1", "s1", "e1")
    };
    let stored = store.escalation(&"t1".into(), &"e1".into()).await.unwrap();
    assert_eq!(stored, Some(expected));
    let any = EscalationFilter::default();
    let filters = [
        (
            EscalationFilter {
                status: Some(EscalationStatus::Open),
                ..any.clone()
            },
            0,
        ),
        (
            EscalationFilter {
                status: Some(EscalationStatus::Resolved),
                ..any.clone()
            },
            1,
        ),
        (
            EscalationFilter {
                priority: Some(1),
                ..any.clone()
            },
            0,
        ),
        (
            EscalationFilter {
                priority: Some(3),
                ..any.clone()
            },
            1,
        ),
        (
            EscalationFilter {
                assignee: Some(EscalationAssignee::Nobody),
                ..any.clone()
            },
            0,
        ),
        (
            EscalationFilter {
                queue: Some("finance".into()),
                ..any.clone()
            },
            1,
        ),
        (
            EscalationFilter {
                session: Some("s1".into()),
                ..any.clone()
            },
            1,
        ),
        (
            EscalationFilter {
                session: Some("s2".into()),
                ..any
            },
            0,
        ),
    ];
    for (filter, listed) in filters {
        assert_eq!(ids(&store, &filter, 10).await.len(), listed, "{filter:?}");
    }
}

/// Every combination of conditions, with pages of several sizes.
pub async fn escalation_filters_combine(store: Arc<dyn Store>) {
    let mut rows = Vec::new();
    for number in 0..64 {
        let session = if number & 1 > 0 { "s1" } else { "s2" };
        let mut row = escalation_row("t1", session, &format!("e{number:02}"));
        row.agent = if number & 2 > 0 { "desk" } else { "shop" }.into();
        row.priority = if number & 4 > 0 { 3 } else { 1 };
        row.queue = (number & 8 > 0).then(|| "finance".into());
        row.assignee = (number & 16 > 0).then(|| "eva".into());
        row.workspace = (number & 32 > 0).then(|| "red".into());
        if number % 3 == 0 {
            row.status = EscalationStatus::TimedOut;
        }
        rows.push(row);
    }
    must(
        &store,
        conversation_changes(rows.iter().cloned().map(PutEscalation)),
    )
    .await;
    must(
        &store,
        conversation_changes([PutEscalation(escalation_row("t2", "s1", "x"))]),
    )
    .await;
    let assignees = [
        None,
        Some(EscalationAssignee::Nobody),
        Some(EscalationAssignee::Actor("eva".into())),
    ];
    let mut filters = Vec::new();
    for choice in 0..64 {
        for assignee in &assignees {
            filters.push(EscalationFilter {
                workspace: (choice & 1 > 0).then(|| "red".into()),
                status: (choice & 2 > 0).then_some(EscalationStatus::Open),
                priority: (choice & 4 > 0).then_some(3),
                agent: (choice & 8 > 0).then(|| "desk".into()),
                session: (choice & 16 > 0).then(|| "s1".into()),
                queue: (choice & 32 > 0).then(|| "finance".into()),
                assignee: assignee.clone(),
            });
        }
    }
    for filter in filters {
        let expected = rows.iter().rev().filter(|row| filter.matches(row));
        let expected: Vec<_> = expected.map(|row| row.escalation_id.to_string()).collect();
        for limit in [2, 100] {
            assert_eq!(
                ids(&store, &filter, limit).await,
                expected,
                "{filter:?} {limit}"
            );
        }
    }
}

/// A page ends before it has read them all; following it finds every match.
pub async fn rare_escalation_is_found_among_many(store: Arc<dyn Store>) {
    let many = (0..SCANNED_ROWS + 10).map(|number| {
        let mut row = escalation_row("t1", "s1", &format!("e{number:05}"));
        row.priority = if number == 3 { 3 } else { 1 };
        PutEscalation(row)
    });
    must(&store, conversation_changes(many)).await;
    let filter = EscalationFilter {
        agent: Some("desk".into()),
        priority: Some(3),
        ..EscalationFilter::default()
    };
    assert_eq!(ids(&store, &filter, 5).await, ["e00003"]);
}
