//! Listings of open questions: by age, deadline or priority, filtered by kind or group.

use super::interrupts::{commit, interrupt_row};
use super::sample::{later, must};
use crate::{
    InboxQuery, InboxSort, InterruptFilter, InterruptRow, Page, QUESTION_PAGE_BYTES, Store,
};
use std::sync::Arc;
use tandem_record::{TenantId, WorkspaceId};

async fn page(store: &Arc<dyn Store>, query: InboxQuery) -> Vec<String> {
    let query = InboxQuery { limit: 10, ..query };
    let found = store.inbox(&TenantId::new("t1"), &query).await;
    let rows = found.expect("reading works").rows;
    rows.iter()
        .map(|(_, row)| row.interrupt.to_string())
        .collect()
}

fn by(sort: InboxSort) -> InboxQuery {
    InboxQuery {
        sort,
        ..InboxQuery::default()
    }
}

/// Four questions that are listed differently in every order.
fn four() -> Vec<InterruptRow> {
    let row = |id: &str, kind: &str, deadline: Option<u64>, priority: i32, groups: &[&str]| {
        let mut row = interrupt_row("t1", id, "r1", kind);
        row.deadline = deadline.map(later);
        row.priority = priority;
        row.groups = groups.iter().map(|g| (*g).to_owned()).collect();
        row
    };
    vec![
        row("i1", "approval", None, 0, &[]),
        row("i2", "approval", Some(9), 5, &["finance", "legal"]),
        row("i3", "clarification", Some(2), -1, &["finance"]),
        row("i4", "approval", None, 5, &[]),
    ]
}

pub async fn sorts_by_age_deadline_or_priority(store: Arc<dyn Store>) {
    must(&store, commit(four())).await;
    let newest = page(&store, by(InboxSort::Newest)).await;
    assert_eq!(newest, ["i4", "i3", "i2", "i1"]);
    let deadline = page(&store, by(InboxSort::Deadline)).await;
    assert_eq!(deadline, ["i3", "i2", "i1", "i4"], "no deadline comes last");
    let priority = page(&store, by(InboxSort::Priority)).await;
    assert_eq!(
        priority,
        ["i2", "i4", "i1", "i3"],
        "oldest first among equals"
    );
}

/// The first question is listed whatever its length; the next page continues after the last one.
pub async fn page_of_long_questions_is_bounded_in_bytes(store: Arc<dyn Store>) {
    let mut rows = four();
    rows[3].body = "x".repeat(QUESTION_PAGE_BYTES + 1);
    rows[2].body = "x".repeat(QUESTION_PAGE_BYTES / 2);
    rows[1].body = "x".repeat(QUESTION_PAGE_BYTES / 2 + 1);
    must(&store, commit(rows)).await;
    let tenant = TenantId::new("t1");
    let mut query = InboxQuery {
        limit: 10,
        ..by(InboxSort::Newest)
    };
    let mut pages: Vec<Vec<String>> = Vec::new();
    loop {
        let page = store.inbox(&tenant, &query).await.expect("reading works");
        let ids = page.rows.iter().map(|(_, row)| row.interrupt.to_string());
        pages.push(ids.collect());
        query.after = page.rows.last().map(|(place, _)| *place);
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [vec!["i4"], vec!["i3"], vec!["i2", "i1"]]);
    let first = Page {
        before: None,
        limit: 10,
    };
    for open in [Some(true), None] {
        let filter = InterruptFilter {
            open,
            ..InterruptFilter::default()
        };
        let listed = store.list_interrupts(&tenant, &filter, &first).await;
        let listed = listed.expect("reading works");
        assert_eq!((listed.rows.len(), listed.more), (1, true));
    }
}

pub async fn inbox_filters_combine(store: Arc<dyn Store>) {
    let mut rows = four();
    rows[2].workspace = Some(WorkspaceId::new("w1"));
    rows.push(interrupt_row("t2", "foreign", "r9", "approval"));
    must(&store, commit(rows)).await;
    let wanted = |workspace: Option<&str>, kind: Option<&str>, group: Option<&str>| InboxQuery {
        workspace: workspace.map(WorkspaceId::new),
        kind: kind.map(str::to_owned),
        group: group.map(str::to_owned),
        ..by(InboxSort::Deadline)
    };
    let table: [(InboxQuery, &[&str]); 6] = [
        (wanted(None, Some("approval"), None), &["i2", "i1", "i4"]),
        (wanted(None, None, Some("finance")), &["i3", "i2"]),
        (wanted(None, Some("approval"), Some("finance")), &["i2"]),
        (wanted(Some("w1"), None, None), &["i3"]),
        (wanted(Some("w1"), Some("approval"), None), &[]),
        (wanted(None, None, Some("nobody")), &[]),
    ];
    for (query, expected) in table {
        assert_eq!(page(&store, query.clone()).await, expected, "{query:?}");
    }
    let tenant = TenantId::new("t1");
    let all = store.inbox_choices(&tenant, None).await.unwrap();
    assert_eq!(all.kinds, ["approval", "clarification"]);
    assert_eq!(all.groups, ["finance", "legal"]);
    let workspace = WorkspaceId::new("w1");
    let own = store.inbox_choices(&tenant, Some(&workspace)).await;
    let own = own.unwrap();
    assert_eq!(own.kinds, ["clarification"]);
    assert_eq!(own.groups, ["finance"]);
}

pub async fn inbox_follows_interrupt_changes(store: Arc<dyn Store>) {
    must(&store, commit(four())).await;
    let mut changed = four();
    changed[0].closed = Some("accepted".into());
    changed[1].groups = vec!["board".into()];
    changed[1].deadline = Some(later(1));
    must(&store, commit(changed.into_iter().take(2))).await;
    let open = page(&store, by(InboxSort::Deadline)).await;
    assert_eq!(open, ["i2", "i3", "i4"], "closed ones leave, others move");
    let choices = store.inbox_choices(&TenantId::new("t1"), None).await;
    assert_eq!(choices.unwrap().groups, ["board", "finance"]);
}

pub async fn pages_neither_repeat_nor_skip(store: Arc<dyn Store>) {
    must(&store, commit(four())).await;
    for sort in [InboxSort::Newest, InboxSort::Deadline, InboxSort::Priority] {
        let whole = page(&store, by(sort)).await;
        let mut query = InboxQuery {
            limit: 1,
            ..by(sort)
        };
        let mut seen = Vec::new();
        loop {
            let one = store.inbox(&TenantId::new("t1"), &query).await.unwrap();
            query.after = one.rows.last().map(|(place, _)| *place);
            seen.extend(one.rows.iter().map(|(_, row)| row.interrupt.to_string()));
            if !one.more {
                break;
            }
        }
        assert_eq!(seen, whole, "{sort:?}");
    }
}
