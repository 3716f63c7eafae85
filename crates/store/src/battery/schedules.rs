//! Schedules: separate for each tenant, newest first; their occurrences, the latest first; recipients in
//! order.

use super::sample::{conversation_changes, later, must};
use crate::{
    ConversationChange, ListingPage, ScheduleFilter, ScheduleRecipientRow, ScheduleRow,
    ScheduleRunRow, Store,
};
use std::sync::Arc;
use tandem_record::ScheduleId;
use tandem_record::conversation::ScheduleStatus;

use ConversationChange::{PutSchedule, PutScheduleRecipient, PutScheduleRun};

fn schedule_row(tenant: &str, id: &str) -> ScheduleRow {
    ScheduleRow {
        schedule_id: id.into(),
        tenant: tenant.into(),
        workspace: None,
        agent: Some("desk".into()),
        flow: Some("remind".into()),
        workflow: None,
        status: ScheduleStatus::Active,
        target_kind: "user".to_owned(),
        user_external_id: Some("ana".to_owned()),
        campaign: None,
        body: format!(r#"{{"id":"{id}"}}"#),
    }
}

fn run_row(id: &str, seconds: u64) -> ScheduleRunRow {
    ScheduleRunRow {
        run_id: id.into(),
        schedule_id: "s1".into(),
        tenant: "t1".into(),
        scheduled_for: later(seconds),
        body: format!(r#"{{"id":"{id}"}}"#),
    }
}

/// The ids of all pages with this limit.
async fn ids(store: &Arc<dyn Store>, filter: &ScheduleFilter, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = ListingPage { after, limit };
        let found = store.list_schedules(&"t1".into(), filter, &page).await;
        let found = found.unwrap().expect("the cursor is valid");
        ids.extend(found.rows.iter().map(|row| row.schedule_id.to_string()));
        match found.next {
            None => return ids,
            next => after = next,
        }
    }
}

pub async fn schedule_is_bound_to_its_tenant(store: Arc<dyn Store>) {
    let mut row = schedule_row("t1", "s1");
    row.workspace = Some("red".into());
    row.campaign = Some("spring".to_owned());
    must(&store, conversation_changes([PutSchedule(row.clone())])).await;
    let id = ScheduleId::new("s1");
    let found = store.schedule(&"t1".into(), &id).await.unwrap();
    assert_eq!(found, Some(row), "every field");
    assert_eq!(store.schedule(&"t2".into(), &id).await.unwrap(), None);
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
        let filter = ScheduleFilter {
            workspace: workspace.map(Into::into),
            ..ScheduleFilter::default()
        };
        let found = store.list_schedules(&tenant.into(), &filter, &page).await;
        assert_eq!(found.unwrap().is_some(), is_known, "{tenant} {workspace:?}");
    }
}

pub async fn changed_schedule_retains_its_identity(store: Arc<dyn Store>) {
    let first = schedule_row("t1", "s1");
    must(&store, conversation_changes([PutSchedule(first.clone())])).await;
    let changed = ScheduleRow {
        workspace: Some("blue".into()),
        agent: Some("other".into()),
        flow: Some("call".into()),
        status: ScheduleStatus::Paused,
        target_kind: "segment".to_owned(),
        user_external_id: None,
        campaign: Some("spring".to_owned()),
        body: "{}".to_owned(),
        ..schedule_row("t2", "s1")
    };
    must(&store, conversation_changes([PutSchedule(changed.clone())])).await;
    let expected = ScheduleRow {
        tenant: first.tenant,
        workspace: first.workspace,
        agent: first.agent,
        ..changed
    };
    let stored = store.schedule(&"t1".into(), &"s1".into()).await.unwrap();
    assert_eq!(stored, Some(expected));
}

pub async fn schedule_filters_combine(store: Arc<dyn Store>) {
    let second = ScheduleRow {
        user_external_id: None,
        target_kind: "segment".to_owned(),
        campaign: Some("spring".to_owned()),
        ..schedule_row("t1", "s2")
    };
    let third = ScheduleRow {
        status: ScheduleStatus::Canceled,
        agent: Some("other".into()),
        ..schedule_row("t1", "s3")
    };
    let rows = [
        schedule_row("t1", "s1"),
        second,
        third,
        schedule_row("t2", "s4"),
    ];
    must(&store, conversation_changes(rows.map(PutSchedule))).await;
    must(
        &store,
        conversation_changes([PutSchedule(schedule_row("t1", "cfg:desk:a"))]),
    )
    .await;
    let of_workflow = ScheduleRow {
        agent: None,
        flow: None,
        workflow: Some("remind".into()),
        target_kind: "workflow".to_owned(),
        user_external_id: None,
        ..schedule_row("t1", "w1")
    };
    must(
        &store,
        conversation_changes([PutSchedule(of_workflow.clone())]),
    )
    .await;
    let stored = store.schedule(&"t1".into(), &"w1".into()).await.unwrap();
    assert_eq!(stored, Some(of_workflow), "a workflow is no flow");
    let workflows = ScheduleFilter {
        workflow: Some("remind".into()),
        ..ScheduleFilter::default()
    };
    assert_eq!(ids(&store, &workflows, 1).await, ["w1"]);
    let configured = ScheduleFilter {
        is_configured: true,
        ..ScheduleFilter::default()
    };
    assert_eq!(ids(&store, &configured, 1).await, ["cfg:desk:a"]);
    let any = ScheduleFilter {
        flow: Some("remind".into()),
        ..ScheduleFilter::default()
    };
    let cases: [(ScheduleFilter, &[&str]); 6] = [
        (any.clone(), &["cfg:desk:a", "s3", "s2", "s1"]),
        (
            ScheduleFilter {
                agent: Some("desk".into()),
                ..any.clone()
            },
            &["cfg:desk:a", "s2", "s1"],
        ),
        (
            ScheduleFilter {
                user_external_id: Some("ana".to_owned()),
                ..any.clone()
            },
            &["cfg:desk:a", "s3", "s1"],
        ),
        (
            ScheduleFilter {
                user_external_id: Some("ana".to_owned()),
                status: Some(ScheduleStatus::Active),
                ..any.clone()
            },
            &["cfg:desk:a", "s1"],
        ),
        (
            ScheduleFilter {
                campaign: Some("spring".to_owned()),
                target_kind: Some("segment".to_owned()),
                ..any.clone()
            },
            &["s2"],
        ),
        (
            ScheduleFilter {
                flow: Some("unknown".into()),
                ..any
            },
            &[],
        ),
    ];
    for (filter, expected) in cases {
        for limit in [1, 10] {
            assert_eq!(ids(&store, &filter, limit).await, expected, "{filter:?}");
        }
    }
}

pub async fn runs_are_listed_latest_first(store: Arc<dyn Store>) {
    let rows = [run_row("r1", 60), run_row("r3", 180), run_row("r2", 120)];
    must(&store, conversation_changes(rows.map(PutScheduleRun))).await;
    let changed = ScheduleRunRow {
        body: "{}".to_owned(),
        ..run_row("r2", 120)
    };
    must(
        &store,
        conversation_changes([PutScheduleRun(changed.clone())]),
    )
    .await;
    let (schedule, mut after, mut found) = (ScheduleId::new("s1"), None, Vec::new());
    loop {
        let page = ListingPage { after, limit: 1 };
        let listing = store.list_schedule_runs(&schedule, &page).await.unwrap();
        let listing = listing.expect("the cursor is valid");
        found.extend(listing.rows);
        match listing.next {
            None => break,
            next => after = next,
        }
    }
    assert_eq!(
        found,
        [run_row("r3", 180), changed.clone(), run_row("r1", 60)]
    );
    let one = store
        .schedule_run(&"t1".into(), &"r2".into())
        .await
        .unwrap();
    assert_eq!(one, Some(changed));
    let foreign = store
        .schedule_run(&"t2".into(), &"r2".into())
        .await
        .unwrap();
    assert_eq!(foreign, None);
    let page = ListingPage {
        after: Some("r9".into()),
        limit: 1,
    };
    let unknown = store.list_schedule_runs(&schedule, &page).await.unwrap();
    assert_eq!(unknown, None);
}

pub async fn recipients_are_listed_in_order(store: Arc<dyn Store>) {
    let row = |run: &str, ordinal: u32| ScheduleRecipientRow {
        run_id: run.into(),
        ordinal,
        body: format!("{ordinal}"),
    };
    let rows = [row("r1", 2), row("r1", 0), row("r2", 0), row("r1", 1)];
    must(&store, conversation_changes(rows.map(PutScheduleRecipient))).await;
    let page = |after| ListingPage { after, limit: 2 };
    let run = "r1".into();
    let first = store.list_schedule_recipients(&run, &page(None)).await;
    let first = first.unwrap();
    assert_eq!(
        (first.rows, first.next),
        (vec![row("r1", 0), row("r1", 1)], Some(1))
    );
    let second = store.list_schedule_recipients(&run, &page(Some(1))).await;
    let second = second.unwrap();
    assert_eq!((second.rows, second.next), (vec![row("r1", 2)], None));
}
