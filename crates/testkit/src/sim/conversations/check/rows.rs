//! Rows and timers that follow from the logs: sessions, escalations, flow runs, questions.

use super::{FlowLog, Logs, SessionLog, ensure, store_failed};
use crate::sim::conversations::tenants;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::conversation::{ApprovalAsked, EscalationRecord, ScheduleTimer, SessionTimer};
use tandem_record::{InterruptId, ScheduleId, StreamId, Timestamp};
use tandem_runtime::conversation::ChatSession;
use tandem_runtime::{InterruptFilter, Page, Runtime};
use tandem_store::{EscalationFilter, ListingPage};

/// Z-184, Z-193, Z-200
pub(super) async fn check_session(runtime: &Runtime, log: &SessionLog) -> Result<(), String> {
    let (id, folded, row) = (&log.id, &log.folded, &log.row);
    let view = serde_json::to_value(folded.view()).map_err(|e| e.to_string())?;
    let body: Value = serde_json::from_str(&row.body).map_err(|e| e.to_string())?;
    let start = folded.start();
    let same = body == view
        && row.agent == start.agent_id
        && row.user_id == start.user.id
        && row.started_at == folded.started_at()
        && row.last_active_at == folded.last_active_at()
        && row.ended_at == folded.ended().map(|(at, _)| at);
    ensure(same, || {
        format!("the row of {id} is {row:?}, its log says {view}")
    })?;
    let read = runtime.read_session(id).await.map_err(store_failed)?;
    ensure(read.as_deref() == Some(folded), || {
        format!("the state of {id} is not the fold of its log")
    })?;
    let keys = read.map(|read| read.reserved_keys());
    ensure(keys == Some(folded.reserved_keys()), || {
        format!("reserved keys of {id} differ")
    })?;
    let compared = runtime.compare_session(&start.owner.tenant, id).await;
    let differences = compared.map_err(store_failed)?.map(|c| c.differences);
    ensure(differences.as_ref().is_some_and(Vec::is_empty), || {
        format!("what is stored of {id} does not follow from its log: {differences:?}")
    })?;
    check_snapshot(runtime, log).await?;
    check_escalations(runtime, log).await?;
    for flow in log.flow_runs.values() {
        check_flow_run(runtime, flow).await?;
    }
    Ok(())
}

async fn check_snapshot(runtime: &Runtime, log: &SessionLog) -> Result<(), String> {
    let stream = StreamId::of_session(&log.id);
    let snapshot = runtime
        .store()
        .snapshot(&stream)
        .await
        .map_err(store_failed)?;
    let Some(snapshot) = snapshot else {
        return Ok(());
    };
    let stored: Option<ChatSession> =
        serde_json::from_str(&snapshot.body).map_err(|e| e.to_string())?;
    let upto = usize::try_from(snapshot.seq.0).expect("a short log");
    let mut folded = ChatSession::started(log.folded.start().clone(), log.events[0].at);
    log.events[1..=upto]
        .iter()
        .for_each(|event| folded.evolve(event));
    // The profile may have changed since.
    let same = stored.as_ref().map(ChatSession::all_keys) == Some(folded.all_keys())
        && stored.as_ref().map(ChatSession::view) == Some(folded.view());
    ensure(same, || {
        format!("the snapshot of {} is not the fold of its log", log.id)
    })
}

async fn check_escalations(runtime: &Runtime, log: &SessionLog) -> Result<(), String> {
    let filter = EscalationFilter {
        session: Some(log.id.clone()),
        ..EscalationFilter::default()
    };
    let page = ListingPage {
        after: None,
        limit: 10_000,
    };
    let listed = runtime
        .store()
        .list_escalations(&log.tenant, &filter, &page)
        .await;
    let rows = listed
        .map_err(store_failed)?
        .map(|l| l.rows)
        .unwrap_or_default();
    let mut stored = BTreeMap::new();
    for row in rows {
        let record: EscalationRecord =
            serde_json::from_str(&row.body).map_err(|e| e.to_string())?;
        ensure(row.status == record.status, || {
            format!("{} has two states", record.id)
        })?;
        stored.insert(record.id.clone(), record);
    }
    let folded = log.folded.escalations();
    let folded: BTreeMap<_, _> = folded.map(|e| (e.id.clone(), e.clone())).collect();
    ensure(stored == folded, || {
        format!(
            "escalations of {} are stored as {stored:?}, not {folded:?}",
            log.id
        )
    })
}

async fn check_flow_run(runtime: &Runtime, flow: &FlowLog) -> Result<(), String> {
    let run = flow.folded.id();
    let read = runtime.read_flow_run(run).await.map_err(store_failed)?;
    ensure(read.as_ref() == Some(&flow.folded), || {
        format!("the state of {run} is not the fold of its log")
    })?;
    let stored = runtime.store().run_of_any_tenant(run).await;
    let row = stored.map_err(store_failed)?.map(|stored| stored.row);
    let same = row.as_ref().is_some_and(|row| {
        row.status == flow.folded.status() && row.ended_at == flow.folded.ended_at()
    });
    ensure(same, || format!("the row of {run} is {row:?}"))
}

/// Z-200: the inbox shows what is open in the logs, and nothing else.
pub(super) async fn check_open_questions(runtime: &Runtime, logs: &Logs) -> Result<(), String> {
    for tenant in tenants() {
        let filter = InterruptFilter {
            open: Some(true),
            ..InterruptFilter::default()
        };
        let page = Page {
            before: None,
            limit: usize::MAX,
        };
        let listed = runtime.questions(&tenant, &filter, &page).await;
        let rows = listed.map_err(store_failed)?.rows.into_iter();
        let shown: BTreeMap<InterruptId, Option<Timestamp>> =
            rows.map(|(_, row)| (row.interrupt, row.deadline)).collect();
        let mut open = BTreeMap::new();
        let sessions = logs.sessions.values().filter(|log| log.tenant == tenant);
        for log in sessions {
            open.extend(log.folded.drafts().map(|(id, _)| (id.clone(), None)));
            let waited = |e: &&EscalationRecord| {
                e.is_open() && !e.is_takeover() && (e.flow_id.is_none() || e.detached)
            };
            let escalations = log.folded.escalations().filter(waited);
            open.extend(escalations.map(|e| (InterruptId::new(e.id.as_str()), e.deadline)));
            if let Some(request) = log.folded.user_approval()
                && let ApprovalAsked::User { deadline, .. } = request.asked
            {
                open.insert(request.interrupt_id.clone(), Some(deadline));
            }
            for flow in log.flow_runs.values() {
                let questions = flow.folded.open_questions().into_iter();
                open.extend(questions.map(|q| (q.interrupt.id, q.deadline)));
            }
        }
        ensure(shown == open, || {
            format!("{tenant} is shown {shown:?}, open are {open:?}")
        })?;
    }
    Ok(())
}

/// Z-192: whatever waits for a time has its timer, and no other timer is set.
pub(super) async fn check_timers(runtime: &Runtime, logs: &Logs) -> Result<(), String> {
    let timers = runtime
        .store()
        .due_timers(Timestamp(i64::MAX), usize::MAX)
        .await;
    let mut stored: BTreeMap<StreamId, BTreeSet<SessionTimer>> = BTreeMap::new();
    let mut of_schedules: BTreeMap<ScheduleId, BTreeSet<ScheduleTimer>> = BTreeMap::new();
    for timer in timers.map_err(store_failed)? {
        if let Some(schedule) = timer.stream.schedule() {
            let key = serde_json::from_str(timer.name.as_str()).map_err(|e| e.to_string())?;
            of_schedules.entry(schedule).or_default().insert(key);
        }
        if timer.stream.session().is_some() {
            let key = serde_json::from_str(timer.name.as_str()).map_err(|e| e.to_string())?;
            stored.entry(timer.stream).or_default().insert(key);
        }
    }
    let mut required = BTreeMap::new();
    for log in logs.sessions.values() {
        let timers: BTreeSet<_> = log.folded.required_timers().into_keys().collect();
        if !timers.is_empty() {
            required.insert(StreamId::of_session(&log.id), timers);
        }
    }
    ensure(stored == required, || {
        format!("timers are {stored:?}, required are {required:?}")
    })?;
    for log in logs.schedules.values() {
        let required: BTreeSet<_> = log.folded.timers().into_keys().collect();
        let stored = of_schedules.remove(&log.id).unwrap_or_default();
        ensure(stored == required, || {
            format!(
                "{} has timers {stored:?}, required are {required:?}",
                log.id
            )
        })?;
    }
    ensure(of_schedules.is_empty(), || {
        format!("timers of no schedule: {of_schedules:?}")
    })
}
