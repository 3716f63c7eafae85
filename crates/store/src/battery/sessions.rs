//! Sessions: separate for each tenant, newest first, found by every combination of conditions.

use super::sample::{conversation_changes, later, must, session_row};
use crate::{ConversationChange, ListingPage, SessionFilter, SessionRow, Store};
use std::sync::Arc;
use tandem_record::SessionId;

use ConversationChange::PutSession;

/// The ids of all pages with this limit.
pub(super) async fn ids(
    store: &Arc<dyn Store>,
    tenant: &str,
    filter: &SessionFilter,
    limit: usize,
) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = ListingPage { after, limit };
        let found = store.list_sessions(&tenant.into(), filter, &page).await;
        let found = found.unwrap().expect("the cursor is valid");
        assert!(found.next.is_none() || found.rows.len() == limit);
        ids.extend(found.rows.iter().map(|row| row.session_id.to_string()));
        match found.next {
            None => return ids,
            next => after = next,
        }
    }
}

pub async fn session_is_bound_to_its_tenant(store: Arc<dyn Store>) {
    let mut row = session_row("t1", "s1");
    row.workspace = Some("red".into());
    must(&store, conversation_changes([PutSession(row.clone())])).await;
    let id = SessionId::new("s1");
    let found = store.session(&"t1".into(), &id).await.unwrap();
    assert_eq!(found, Some(row.clone()), "every field");
    assert_eq!(store.session(&"t2".into(), &id).await.unwrap(), None);
    let found = store.session_of_any_tenant(&id).await.unwrap();
    assert_eq!(found, Some(row));
    let absent = store.session_of_any_tenant(&"s2".into()).await.unwrap();
    assert_eq!(absent, None);
}

pub async fn changed_session_retains_identity(store: Arc<dyn Store>) {
    must(
        &store,
        conversation_changes([PutSession(session_row("t1", "s1"))]),
    )
    .await;
    let changed = SessionRow {
        workspace: Some("blue".into()),
        agent: "other".into(),
        user_id: "usr-9".into(),
        user_external_id: "u9".into(),
        started_at: later(9),
        last_active_at: later(9),
        ended_at: Some(later(9)),
        body: "{}".into(),
        ..session_row("t2", "s1")
    };
    must(&store, conversation_changes([PutSession(changed)])).await;
    let mut expected = session_row("t1", "s1");
    expected.last_active_at = later(9);
    expected.ended_at = Some(later(9));
    expected.body = "{}".into();
    let stored = store.session(&"t1".into(), &"s1".into()).await.unwrap();
    assert_eq!(stored, Some(expected));
}

/// Every combination of conditions, with pages of several sizes.
pub async fn session_filters_combine(store: Arc<dyn Store>) {
    let mut rows = Vec::new();
    for number in 0..32 {
        let mut row = session_row("t1", &format!("s{number:02}"));
        row.workspace = (number & 1 > 0).then(|| "red".into());
        row.agent = if number & 2 > 0 { "desk" } else { "shop" }.into();
        row.user_external_id = if number & 4 > 0 { "ana" } else { "ben" }.into();
        row.ended_at = (number & 8 > 0).then(|| later(number));
        rows.push(row);
    }
    must(
        &store,
        conversation_changes(rows.iter().cloned().map(PutSession)),
    )
    .await;
    must(
        &store,
        conversation_changes([PutSession(session_row("t2", "x"))]),
    )
    .await;
    // Later changes do not move a session, and an end moves it between the lists.
    for row in &mut rows {
        row.last_active_at = later(99);
        if row.session_id.as_str() < "s08" {
            row.ended_at = Some(later(99));
        }
        must(&store, conversation_changes([PutSession(row.clone())])).await;
    }
    for workspace in [None, Some("red"), Some("blue")] {
        for agent in [None, Some("desk"), Some("nobody")] {
            for user in [None, Some("ana")] {
                for active in [None, Some(true), Some(false)] {
                    let filter = SessionFilter {
                        workspace: workspace.map(Into::into),
                        agent: agent.map(Into::into),
                        user_external_id: user.map(Into::into),
                        active,
                    };
                    let expected = rows.iter().rev().filter(|row| filter.matches(row));
                    let expected: Vec<_> = expected.map(|row| row.session_id.to_string()).collect();
                    for limit in [1, 3, 100] {
                        let found = ids(&store, "t1", &filter, limit).await;
                        assert_eq!(found, expected, "{filter:?} {limit}");
                    }
                }
            }
        }
    }
}

pub async fn page_after_an_unknown_session_is_refused(store: Arc<dyn Store>) {
    let rows = [session_row("t1", "s1"), session_row("t2", "s2")];
    must(&store, conversation_changes(rows.map(PutSession))).await;
    let filter = SessionFilter::default();
    for (after, is_known) in [("s1", true), ("s2", false), ("s3", false)] {
        let page = ListingPage {
            after: Some(after.into()),
            limit: 10,
        };
        let found = store.list_sessions(&"t1".into(), &filter, &page).await;
        assert_eq!(found.unwrap().is_some(), is_known, "{after}");
    }
    let bound = SessionFilter {
        workspace: Some("red".into()),
        ..filter
    };
    let page = ListingPage {
        after: Some("s1".into()),
        limit: 10,
    };
    let found = store.list_sessions(&"t1".into(), &bound, &page).await;
    assert_eq!(found.unwrap(), None, "a session of no workspace");
}

pub async fn pages_of_sessions_stay_stable_while_sessions_start(store: Arc<dyn Store>) {
    let rows = ["s1", "s2", "s3"].map(|id| PutSession(session_row("t1", id)));
    must(&store, conversation_changes(rows)).await;
    let filter = SessionFilter::default();
    let first = ListingPage {
        after: None,
        limit: 2,
    };
    let first = store.list_sessions(&"t1".into(), &filter, &first).await;
    let after = first.unwrap().unwrap().next;
    assert_eq!(after, Some("s2".into()));
    must(
        &store,
        conversation_changes([PutSession(session_row("t1", "s4"))]),
    )
    .await;
    let second = ListingPage { after, limit: 2 };
    let second = store.list_sessions(&"t1".into(), &filter, &second).await;
    let second = second.unwrap().unwrap();
    assert_eq!(
        (second.rows, second.next),
        (vec![session_row("t1", "s1")], None)
    );
}
