//! Bridges: separate for each tenant, newest first, found by every filter, by their desk, and by what they sent.

use super::sample::{NOW, conversation_changes, later, must};
use crate::{ConversationChange, Desk, DeskSelection, ListingPage, ProxyFilter, ProxyRow, Store};
use std::sync::Arc;
use tandem_record::ProxyId;
use tandem_record::conversation::ProxyStatus;

use ConversationChange::{AddProxyMessage, PutProxy};

pub(super) fn proxy_row(tenant: &str, session: &str, id: &str) -> ProxyRow {
    ProxyRow {
        proxy_id: ProxyId::new(id),
        session_id: session.into(),
        tenant: tenant.into(),
        workspace: None,
        agent: "desk".into(),
        user_external_id: "ana".into(),
        transport: "loopback".into(),
        address: "finance".into(),
        status: ProxyStatus::Active,
        started_at: NOW,
        body: format!(r#"{{"id":"{id}"}}"#),
    }
}

pub(super) fn desk(tenant: &str) -> Desk {
    Desk {
        tenant: tenant.into(),
        workspace: None,
        agent: "desk".into(),
        transport: "loopback".into(),
        address: "finance".into(),
    }
}

async fn ids(store: &Arc<dyn Store>, filter: &ProxyFilter, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = ListingPage { after, limit };
        let found = store.list_proxies(&"t1".into(), filter, &page).await;
        let found = found.unwrap().expect("the cursor is valid");
        assert!(found.rows.len() <= limit);
        ids.extend(found.rows.iter().map(|row| row.proxy_id.to_string()));
        match found.next {
            None => return ids,
            next => after = next,
        }
    }
}

async fn of_desk(store: &Arc<dyn Store>, desk: &Desk, selection: DeskSelection) -> Vec<String> {
    let found = store.proxies_of_desk(desk, &selection, 2).await.unwrap();
    let ids = found.into_iter().map(|row| row.proxy_id.to_string());
    ids.collect()
}

/// Z-188 (half: rows of bridges)
pub async fn bridge_is_bound_to_its_tenant_and_keeps_its_desk(store: Arc<dyn Store>) {
    let row = proxy_row("t1", "s1", "pxy-1");
    must(&store, conversation_changes([PutProxy(row.clone())])).await;
    let changed = ProxyRow {
        agent: "other".into(),
        address: "other".into(),
        status: ProxyStatus::Stopped,
        started_at: later(9),
        body: "{}".into(),
        ..proxy_row("t2", "s2", "pxy-1")
    };
    must(&store, conversation_changes([PutProxy(changed)])).await;
    let expected = ProxyRow {
        status: ProxyStatus::Stopped,
        body: "{}".into(),
        ..row
    };
    let id = ProxyId::new("pxy-1");
    let found = store.proxy(&"t1".into(), &id).await.unwrap();
    assert_eq!(found, Some(expected), "every field");
    assert_eq!(store.proxy(&"t2".into(), &id).await.unwrap(), None);
    for (tenant, workspace, is_known) in [
        ("t1", None, true),
        ("t1", Some("blue"), false),
        ("t2", None, false),
    ] {
        let page = ListingPage {
            after: Some(id.clone()),
            limit: 10,
        };
        let filter = ProxyFilter {
            workspace: workspace.map(Into::into),
            ..ProxyFilter::default()
        };
        let found = store.list_proxies(&tenant.into(), &filter, &page).await;
        assert_eq!(found.unwrap().is_some(), is_known, "{tenant} {workspace:?}");
    }
}

pub async fn bridges_are_listed_by_filter(store: Arc<dyn Store>) {
    let mut second = proxy_row("t1", "s2", "pxy-2");
    second.workspace = Some("red".into());
    let mut third = proxy_row("t1", "s1", "pxy-3");
    third.status = ProxyStatus::Stopped;
    third.agent = "other".into();
    let rows = [
        proxy_row("t1", "s1", "pxy-1"),
        second,
        third,
        proxy_row("t2", "s1", "pxy-4"),
    ];
    must(&store, conversation_changes(rows.map(PutProxy))).await;
    let any = ProxyFilter::default();
    let filters = [
        (any.clone(), vec!["pxy-3", "pxy-2", "pxy-1"]),
        (
            ProxyFilter {
                status: Some(ProxyStatus::Active),
                ..any.clone()
            },
            vec!["pxy-2", "pxy-1"],
        ),
        (
            ProxyFilter {
                session: Some("s1".into()),
                ..any.clone()
            },
            vec!["pxy-3", "pxy-1"],
        ),
        (
            ProxyFilter {
                agent: Some("other".into()),
                status: Some(ProxyStatus::Stopped),
                ..any.clone()
            },
            vec!["pxy-3"],
        ),
        (
            ProxyFilter {
                workspace: Some("red".into()),
                ..any
            },
            vec!["pxy-2"],
        ),
    ];
    for (filter, expected) in filters {
        for limit in [1, 10] {
            assert_eq!(ids(&store, &filter, limit).await, expected, "{filter:?}");
        }
    }
}

/// Z-110 (half: bridges of a desk are found by number, by a message they sent, and by being the only ones)
pub async fn bridges_of_a_desk_are_found(store: Arc<dyn Store>) {
    let mut elsewhere = proxy_row("t1", "s3", "pxy-cccccc1");
    elsewhere.address = "legal".into();
    let mut ended = proxy_row("t1", "s4", "pxy-dddddd1");
    ended.status = ProxyStatus::Stopped;
    let mut red = proxy_row("t1", "s2", "pxy-bbbbbb1");
    red.workspace = Some("red".into());
    let rows = [proxy_row("t1", "s1", "pxy-aaaaaa1"), red, elsewhere, ended];
    must(&store, conversation_changes(rows.map(PutProxy))).await;
    let sent = [
        ("pxy-aaaaaa1", "m1"),
        ("pxy-aaaaaa1", "m1"),
        ("pxy-cccccc1", "m3"),
    ];
    let sent = sent.map(|(proxy, message)| AddProxyMessage {
        proxy: ProxyId::new(proxy),
        message: message.to_owned(),
    });
    must(&store, conversation_changes(sent)).await;
    let finance = desk("t1");
    let in_red = Desk {
        workspace: Some("red".into()),
        ..finance.clone()
    };
    let cases = [
        (
            &finance,
            DeskSelection::Active,
            vec!["pxy-bbbbbb1", "pxy-aaaaaa1"],
        ),
        (&in_red, DeskSelection::Active, vec!["pxy-bbbbbb1"]),
        (
            &finance,
            DeskSelection::Short("dddddd".into()),
            vec!["pxy-dddddd1"],
        ),
        (&finance, DeskSelection::Short("cccccc".into()), vec![]),
        (&in_red, DeskSelection::Short("aaaaaa".into()), vec![]),
        (
            &finance,
            DeskSelection::Message("m1".into()),
            vec!["pxy-aaaaaa1"],
        ),
        (&finance, DeskSelection::Message("m3".into()), vec![]),
        (&finance, DeskSelection::Message("m4".into()), vec![]),
    ];
    for (of, selection, expected) in cases {
        let found = of_desk(&store, of, selection.clone()).await;
        assert_eq!(found, expected, "{selection:?}");
    }
    let other = of_desk(&store, &desk("t2"), DeskSelection::Active).await;
    assert_eq!(other, Vec::<String>::new());
}
