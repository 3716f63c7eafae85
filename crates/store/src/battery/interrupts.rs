//! The inbox: separate for each tenant, newest first; a question is closed in the commit that
//! decides it.

use super::sample::{NOW, later, must};
use crate::{Commit, InterruptFilter, InterruptRow, Page, Store};
use std::sync::Arc;
use tandem_record::{InterruptId, Partition, RunId, StepId, StreamId, TenantId, WorkspaceId};

pub(super) fn interrupt_row(tenant: &str, id: &str, run: &str, kind: &str) -> InterruptRow {
    InterruptRow {
        interrupt: InterruptId::new(id),
        stream: StreamId::of_run(&RunId::new(run)),
        step: StepId::new("gate"),
        tenant: TenantId::new(tenant),
        workspace: None,
        kind: kind.into(),
        created_at: NOW,
        deadline: Some(later(5)),
        priority: 3,
        groups: vec!["finance".into()],
        closed: None,
        body: format!(r#"{{"id":"{id}"}}"#),
    }
}

pub(super) fn commit(rows: impl IntoIterator<Item = InterruptRow>) -> Commit {
    Commit {
        interrupts: rows.into_iter().collect(),
        ..Commit::default()
    }
}

async fn ids(store: &Arc<dyn Store>, tenant: &str, filter: InterruptFilter) -> Vec<String> {
    let page = Page {
        before: None,
        limit: 10,
    };
    let tenant = TenantId::new(tenant);
    let listing = store.list_interrupts(&tenant, &filter, &page).await;
    let rows = listing.expect("listing works").rows;
    rows.iter()
        .map(|(_, row)| row.interrupt.to_string())
        .collect()
}

pub async fn bound_to_their_tenant(store: Arc<dyn Store>) {
    let row = interrupt_row("t1", "i1", "r1", "approval");
    must(&store, commit([row.clone()])).await;
    let id = InterruptId::new("i1");
    let own = store.interrupt(&"t1".into(), &id).await.unwrap();
    assert_eq!(own, Some(row), "every field comes back");
    let mut bound = interrupt_row("t1", "i3", "r1", "approval");
    bound.workspace = Some(WorkspaceId::new("red"));
    must(&store, commit([bound])).await;
    let position = async |tenant: &str, workspace: Option<&str>, id: &str| {
        let of = Partition {
            tenant: tenant.into(),
            workspace: workspace.map(Into::into),
        };
        let found = store.interrupt_position(&of, &InterruptId::new(id)).await;
        found.unwrap()
    };
    let older = position("t1", None, "i1").await.unwrap();
    let newer = position("t1", Some("red"), "i3").await.unwrap();
    assert!(older < newer);
    for (tenant, workspace, id) in [
        ("t2", None, "i1"),
        ("t1", Some("red"), "i1"),
        ("t1", Some("blue"), "i3"),
        ("t1", None, "i2"),
    ] {
        let found = position(tenant, workspace, id).await;
        assert_eq!(found, None, "{tenant} {workspace:?} {id}");
    }
    assert_eq!(store.interrupt(&"t2".into(), &id).await.unwrap(), None);
    assert!(
        ids(&store, "t2", InterruptFilter::default())
            .await
            .is_empty()
    );
}

pub async fn newest_first_and_filtered(store: Arc<dyn Store>) {
    let mut third = interrupt_row("t1", "i3", "r2", "clarification");
    third.workspace = Some(WorkspaceId::new("w1"));
    let rows = [
        interrupt_row("t1", "i1", "r1", "approval"),
        interrupt_row("t1", "i2", "r1", "clarification"),
        third,
    ];
    must(&store, commit(rows)).await;
    let all = InterruptFilter::default();
    assert_eq!(ids(&store, "t1", all.clone()).await, ["i3", "i2", "i1"]);
    let kind = InterruptFilter {
        kind: Some("clarification".into()),
        ..all.clone()
    };
    assert_eq!(ids(&store, "t1", kind).await, ["i3", "i2"]);
    let run = InterruptFilter {
        stream: Some(StreamId::new("run:r1")),
        ..all.clone()
    };
    assert_eq!(ids(&store, "t1", run).await, ["i2", "i1"]);
    let workspace = InterruptFilter {
        workspace: Some(WorkspaceId::new("w1")),
        ..all.clone()
    };
    assert_eq!(ids(&store, "t1", workspace).await, ["i3"]);
    let mut page = Page {
        before: None,
        limit: 2,
    };
    let first = store
        .list_interrupts(&"t1".into(), &all, &page)
        .await
        .unwrap();
    assert!(first.more, "one is left");
    page.before = first.rows.last().map(|(place, _)| *place);
    let second = store
        .list_interrupts(&"t1".into(), &all, &page)
        .await
        .unwrap();
    assert!(!second.more && second.rows.len() == 1, "the rest fits");
}

pub async fn closing_retains_identity(store: Arc<dyn Store>) {
    must(
        &store,
        commit([interrupt_row("t1", "i1", "r1", "approval")]),
    )
    .await;
    let mut closed = interrupt_row("t2", "i1", "r9", "custom");
    closed.closed = Some("accepted".into());
    closed.body = "{}".into();
    closed.deadline = Some(later(9));
    closed.groups = vec!["legal".into()];
    must(&store, commit([closed])).await;
    let stored = store
        .interrupt(&"t1".into(), &"i1".into())
        .await
        .unwrap()
        .unwrap();
    let mut expected = interrupt_row("t1", "i1", "r1", "approval");
    expected.closed = Some("accepted".into());
    expected.body = "{}".into();
    expected.deadline = Some(later(9));
    expected.groups = vec!["legal".into()];
    assert_eq!(stored, expected, "what identifies a question stays");
    let open = InterruptFilter {
        open: Some(true),
        ..InterruptFilter::default()
    };
    assert!(ids(&store, "t1", open.clone()).await.is_empty());
    let done = InterruptFilter {
        open: Some(false),
        ..open
    };
    assert_eq!(ids(&store, "t1", done).await, ["i1"]);
}
