//! The pages of schedules, in which every text is hostile.

use super::{chrome, hostile};
use crate::*;

fn moment() -> LocalMoment {
    LocalMoment {
        at: hostile(),
        local: hostile(),
    }
}

fn run() -> ScheduleRunListRow {
    ScheduleRunListRow {
        id: hostile(),
        scheduled_for: moment(),
        started_at: hostile(),
        finished_at: Some(hostile()),
        outcome: Some(hostile()),
        partial: true,
        reason: Some(hostile()),
        attempt: 2,
        session_id: Some(hostile()),
        workflow_run_id: Some(hostile()),
        recipients: Some(3),
        counts: vec![("success", 2), ("failed", 1)],
        is_campaign: true,
    }
}

fn row(trigger: ScheduleTriggerView) -> ScheduleListRow {
    ScheduleListRow {
        id: hostile(),
        agent_id: Some(hostile()),
        starts: ScheduledStartView::Flow(hostile()),
        status: "active".to_owned(),
        trigger,
        timezone: hostile(),
        target: hostile(),
        campaign: Some(hostile()),
        next: Some(moment()),
        last_run: Some(run()),
    }
}

fn row_of_workflow() -> ScheduleListRow {
    ScheduleListRow {
        agent_id: None,
        starts: ScheduledStartView::Workflow(hostile()),
        campaign: None,
        ..row(ScheduleTriggerView::Cron(hostile()))
    }
}

/// A run that a trigger of a workflow started.
fn run_of_workflow() -> ScheduleRunListRow {
    ScheduleRunListRow {
        session_id: None,
        recipients: None,
        counts: Vec::new(),
        is_campaign: false,
        ..run()
    }
}

fn schedule_of_workflow() -> SchedulePageView {
    SchedulePageView {
        schedule: row_of_workflow(),
        session_id: None,
        runs: vec![run_of_workflow()],
        ..schedule("active", &DeskOffer::As(hostile()))
    }
}

fn list() -> ScheduleListView {
    ScheduleListView {
        rows: vec![
            row(ScheduleTriggerView::Cron("0 9 * * mon-fri".to_owned())),
            row(ScheduleTriggerView::Cron(hostile())),
            row(ScheduleTriggerView::Once(moment())),
            row_of_workflow(),
            ScheduleListRow::default(),
        ],
        selection: ScheduleSelection {
            agent: Some(hostile()),
            status: Some("active".to_owned()),
        },
        agents: vec![hostile()],
        statuses: vec!["active", "paused"],
        next_cursor: Some(hostile()),
        live: true,
    }
}

fn schedule(status: &str, offer: &DeskOffer) -> SchedulePageView {
    let alone = ScheduleRunListRow {
        is_campaign: false,
        ..run()
    };
    SchedulePageView {
        schedule: ScheduleListRow {
            status: status.to_owned(),
            ..row(ScheduleTriggerView::Cron(hostile()))
        },
        session_id: Some(hostile()),
        version: 3,
        created_by: hostile(),
        created_at: hostile(),
        on_missed: hostile(),
        on_active_flow: hostile(),
        starts_sessions: true,
        next: vec![moment(), moment()],
        runs: vec![run(), alone, ScheduleRunListRow::default()],
        next_cursor: Some(hostile()),
        live: true,
        offer_pause: offer.clone(),
        offer_cancel: offer.clone(),
        csrf: hostile(),
    }
}

fn recipients() -> ScheduleRunPageView {
    ScheduleRunPageView {
        schedule_id: hostile(),
        starts: ScheduledStartView::Flow(hostile()),
        target: hostile(),
        run: run(),
        recipients: vec![
            RecipientListRow {
                user: hostile(),
                outcome: Some(hostile()),
                reason: Some(hostile()),
                session_id: Some(hostile()),
            },
            RecipientListRow::default(),
        ],
        next_cursor: Some(hostile()),
    }
}

pub(super) fn pages(chrome: &Chrome) -> Vec<(&'static str, String)> {
    let paused = schedule("paused", &DeskOffer::As(hostile()));
    let active = schedule("active", &DeskOffer::WithToken);
    vec![
        ("schedules", schedule_list_page(chrome, &list())),
        (
            "no schedules",
            schedule_list_page(chrome, &ScheduleListView::default()),
        ),
        ("schedule", schedule_page(chrome, &active)),
        ("paused schedule", schedule_page(chrome, &paused)),
        (
            "bare schedule",
            schedule_page(chrome, &SchedulePageView::default()),
        ),
        (
            "schedule of a workflow",
            schedule_page(chrome, &schedule_of_workflow()),
        ),
        (
            "run of a workflow",
            schedule_run_page(
                chrome,
                &ScheduleRunPageView {
                    starts: ScheduledStartView::Workflow(hostile()),
                    run: run_of_workflow(),
                    recipients: Vec::new(),
                    ..recipients()
                },
            ),
        ),
        ("recipients", schedule_run_page(chrome, &recipients())),
        (
            "no recipients",
            schedule_run_page(chrome, &ScheduleRunPageView::default()),
        ),
    ]
}

pub(super) fn fragments() -> Vec<(&'static str, String)> {
    let schedule = schedule("active", &DeskOffer::WithToken);
    vec![
        ("schedule rows", schedule_rows(&list())),
        ("schedule parts", schedule_parts(&schedule)),
    ]
}

#[test]
fn buttons_of_a_schedule_follow_its_status_and_the_reader() {
    let shown = |status, offer| {
        let html = schedule_page(&chrome(), &schedule(status, &offer));
        let verbs = ["pause", "resume", "cancel"];
        verbs.map(|verb| html.contains(&format!("id=\"action-{verb}\"")))
    };
    let able = DeskOffer::As("ana".to_owned());
    assert_eq!(shown("active", able.clone()), [true, false, true]);
    assert_eq!(shown("paused", able.clone()), [false, true, true]);
    assert_eq!(shown("canceled", able.clone()), [false; 3]);
    assert_eq!(shown("completed", able), [false; 3]);
    assert_eq!(shown("active", DeskOffer::Nothing), [false; 3]);
}

#[test]
fn trigger_is_shown_in_words_and_as_written() {
    let html = schedule_list_page(&chrome(), &list());
    assert!(html.contains("At 09:00, Monday to Friday"), "{html}");
    assert!(html.contains("<code>0 9 * * mon-fri</code>"), "{html}");
}

#[test]
fn schedule_of_a_workflow_leads_to_its_runs_and_has_nothing_of_conversations() {
    let mut view = schedule_of_workflow();
    view.schedule.starts = ScheduledStartView::Workflow("report".to_owned());
    view.schedule.target = "daily".to_owned();
    view.runs[0].workflow_run_id = Some("run-1".to_owned());
    let html = schedule_page(&chrome(), &view);
    for shown in [
        "href=\"/console/workflows/report\"",
        "href=\"/console/runs/run-1\"",
        "<dt>Trigger</dt><dd>daily</dd>",
    ] {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    for other in ["While another flow asks", "Without a conversation"] {
        assert!(!html.contains(other), "{other}");
    }
}
