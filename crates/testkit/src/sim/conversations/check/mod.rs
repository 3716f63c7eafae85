//! Checks the properties of conversations. Each file checks one kind of them, mostly on one log by itself.

mod bridges;
mod calls;
mod flows;
mod interrupts;
mod messages;
mod outbox;
mod rows;
mod scheduled_turns;
mod schedules;
mod takeover;
mod turns;
mod users;

use super::{Conversations, tenants};
use crate::sim::SimulationStats;
pub(super) use crate::sim::check::{ensure, store_failed};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tandem_engine::flow_run::FlowRun;
use tandem_engine::machine::Machine as _;
use tandem_engine::schedule::Schedule;
use tandem_record::conversation::{
    FlowRecord, ScheduleEvent, SessionEvent, SessionEventBody as Body,
};
use tandem_record::{AgentId, Recorded, RunId, ScheduleId, Seq, SessionId, TenantId, Timestamp};
use tandem_runtime::conversation::{ChatSession, LoggedScheduleEvent};
use tandem_runtime::{Page, RunFilter, RunRow, Runtime};
use tandem_store::{ListingPage, PageLimit, SessionFilter, SessionRow};

/// One session with everything that was logged about it.
pub(super) struct SessionLog {
    id: SessionId,
    tenant: TenantId,
    agent: AgentId,
    row: SessionRow,
    events: Vec<Recorded<SessionEvent>>,
    /// The session folded from its events alone.
    folded: ChatSession,
    flow_runs: BTreeMap<RunId, FlowLog>,
}

struct FlowLog {
    folded: FlowRun,
    journal: Vec<Recorded<FlowRecord>>,
}

/// One schedule with its events.
struct ScheduleLog {
    id: ScheduleId,
    events: Vec<Recorded<ScheduleEvent>>,
    /// The schedule folded from its events alone.
    folded: Schedule,
}

/// Everything that is in the store.
struct Logs {
    sessions: BTreeMap<SessionId, SessionLog>,
    schedules: BTreeMap<ScheduleId, ScheduleLog>,
    runs: Vec<RunRow>,
    /// Events of each tenant and agent in the order of their commits.
    order: Vec<Vec<(SessionId, Recorded<SessionEvent>)>>,
}

async fn session_rows(runtime: &Runtime, tenant: &TenantId) -> Result<Vec<SessionRow>, String> {
    let page = ListingPage {
        after: None,
        limit: 100_000,
    };
    let filter = SessionFilter::default();
    let listed = runtime.store().list_sessions(tenant, &filter, &page).await;
    Ok(listed
        .map_err(store_failed)?
        .map(|l| l.rows)
        .unwrap_or_default())
}

async fn run_rows(runtime: &Runtime) -> Result<Vec<RunRow>, String> {
    let page = Page {
        before: None,
        limit: usize::MAX,
    };
    let mut rows = Vec::new();
    for tenant in tenants() {
        let listed = runtime
            .list_runs(&tenant, &RunFilter::default(), &page)
            .await;
        let listed = listed.map_err(store_failed)?;
        rows.extend(listed.runs.into_iter().map(|run| run.row));
    }
    Ok(rows)
}

/// What has not ended yet; empty when everything has.
pub(super) async fn whats_open(runtime: &Runtime) -> Result<String, String> {
    let mut open = Vec::new();
    for tenant in tenants() {
        for row in session_rows(runtime, &tenant).await? {
            if row.ended_at.is_none() {
                open.push(format!("{} {}", row.session_id, row.body));
            }
        }
    }
    for run in run_rows(runtime).await? {
        if !run.status.is_terminal() {
            open.push(format!(
                "{} of {} is {:?}",
                run.run_id, run.workflow_id, run.status
            ));
        }
    }
    let store = runtime.store();
    let effects = store.depth().await.map_err(store_failed)?;
    let timers = store.due_timers(Timestamp(i64::MAX), usize::MAX).await;
    let timers = timers.map_err(store_failed)?;
    if effects > 0 || !timers.is_empty() {
        open.push(format!("{effects} effects and timers {timers:?}"));
    }
    Ok(open.join("; "))
}

async fn read_session(runtime: &Runtime, row: SessionRow) -> Result<SessionLog, String> {
    let id = row.session_id.clone();
    let events = runtime.session_events_from(&id, Seq(0)).await;
    let events = events.map_err(store_failed)?;
    let Some(Body::SessionStarted(start)) = events.first().map(|first| &first.event.body) else {
        return Err(format!("the log of {id} does not begin with its start"));
    };
    let mut folded = ChatSession::started((**start).clone(), events[0].at);
    events[1..].iter().for_each(|event| folded.evolve(event));
    let mut flow_runs = BTreeMap::new();
    for event in &events {
        let (Body::FlowStarted { .. }, Some(flow)) = (&event.event.body, &event.event.flow) else {
            continue;
        };
        let run = flow.flow_run_id.clone();
        let log = read_flow_run(runtime, &run).await?;
        ensure(flow_runs.insert(run.clone(), log).is_none(), || {
            format!("{run} was started twice")
        })?;
    }
    Ok(SessionLog {
        tenant: folded.start().owner.tenant.clone(),
        agent: folded.start().agent_id.clone(),
        id,
        row,
        events,
        folded,
        flow_runs,
    })
}

async fn read_flow_run(runtime: &Runtime, run: &RunId) -> Result<FlowLog, String> {
    let page = runtime.events(run, None, usize::MAX).await;
    let page = page.map_err(store_failed)?;
    let page = page.ok_or_else(|| format!("{run} was started and has no journal"))?;
    let mut folded = FlowRun::unstarted(run.clone());
    page.events.iter().for_each(|event| folded.evolve(event));
    let journal = runtime.flow_journal(run).await.map_err(store_failed)?;
    Ok(FlowLog { folded, journal })
}

async fn read_all(sim: &Conversations, runtime: &Runtime) -> Result<Logs, String> {
    let mut logs = Logs {
        sessions: BTreeMap::new(),
        schedules: BTreeMap::new(),
        runs: run_rows(runtime).await?,
        order: Vec::new(),
    };
    for tenant in tenants() {
        for row in session_rows(runtime, &tenant).await? {
            ensure(row.tenant == tenant, || {
                format!("{tenant} is shown {} of {}", row.session_id, row.tenant)
            })?;
            let log = read_session(runtime, row).await?;
            logs.sessions.insert(log.id.clone(), log);
        }
        for agent in sim.outside.agents.keys() {
            let agent = AgentId::from(agent.as_str());
            let limit = PageLimit::of_events(usize::MAX);
            let page = runtime.agent_events(&tenant, &agent, 0, limit).await;
            let page = page.map_err(store_failed)?;
            logs.add_schedules(page.schedules);
            logs.order.push(
                page.events
                    .into_iter()
                    .map(|logged| (logged.session, logged.event))
                    .collect(),
            );
        }
    }
    Ok(logs)
}

impl Logs {
    fn events(&self) -> usize {
        let of_schedules = self.schedules.values().map(|log| log.events.len());
        of_schedules.chain(self.order.iter().map(Vec::len)).sum()
    }

    fn add_schedules(&mut self, events: Vec<LoggedScheduleEvent>) {
        for logged in events {
            let id = &logged.schedule.id;
            let log = self.schedules.entry(id.clone());
            let log = log.or_insert_with(|| ScheduleLog {
                id: id.clone(),
                events: Vec::new(),
                folded: Schedule::unstarted(id.clone()),
            });
            log.folded.evolve(&logged.event);
            log.events.push(logged.event);
        }
    }
}

/// While sessions are open: every row and every timer follows from the logs.
pub(super) async fn check_open_state(sim: &Conversations, runtime: &Runtime) -> Result<(), String> {
    loop {
        let logs = read_all(sim, runtime).await?;
        let checked = check_rows(runtime, &logs).await;
        // What was logged meanwhile changes the rows too: they are looked at again a moment later.
        if checked.is_ok() || logs.events() == read_all(sim, runtime).await?.events() {
            return checked;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn check_rows(runtime: &Runtime, logs: &Logs) -> Result<(), String> {
    for session in logs.sessions.values() {
        rows::check_session(runtime, session).await?;
    }
    rows::check_open_questions(runtime, logs).await?;
    rows::check_timers(runtime, logs).await
}

pub(super) async fn check_all(
    sim: &Conversations,
    runtime: &Runtime,
) -> Result<SimulationStats, String> {
    if let Some(violation) = sim.outside.happened.lock().violations.first() {
        return Err(violation.clone());
    }
    let panics: u64 = sim
        .started
        .lock()
        .iter()
        .map(|r| r.metrics().panics.get())
        .sum();
    ensure(panics == 0, || format!("{panics} tasks panicked"))?;
    let logs = read_all(sim, runtime).await?;
    let mut bridges = BTreeMap::new();
    let relayed: Vec<bridges::Relayed> = logs
        .sessions
        .values()
        .map(bridges::check)
        .collect::<Result<_, _>>()?;
    for (id, bridge) in relayed.iter().flat_map(|relayed| &relayed.bridges) {
        let again = bridges.insert(id, bridge);
        ensure(again.is_none(), || format!("{id} is of two sessions"))?;
    }
    bridges::check_all(sim, runtime, &logs, &bridges).await?;
    let mut runs = BTreeMap::new();
    for log in logs.schedules.values() {
        let of_schedule = schedules::check(log)?;
        schedules::check_rows(runtime, log, &of_schedule).await?;
        runs.insert(&log.id, of_schedule);
    }
    let scheduled_turns = scheduled_turns::check(&logs, &runs)?;
    for session in logs.sessions.values() {
        turns::check(sim, session)?;
        flows::check(session)?;
        interrupts::check(session)?;
        takeover::check(session)?;
        rows::check_session(runtime, session).await?;
    }
    rows::check_open_questions(runtime, &logs).await?;
    messages::check(sim, &logs)?;
    users::check(runtime, &logs).await?;
    interrupts::check_decisions(sim, &logs)?;
    outbox::check(sim, &logs)?;
    calls::check(sim, &logs)?;
    calls::check_workflows(runtime, &logs).await?;
    let twice = sim.outside.committed.with_second_result();
    ensure(twice.is_empty(), || {
        format!("a second result was recorded for {twice:?}")
    })?;
    let started = sim.started.lock();
    let metrics = |count: fn(&Runtime) -> u64| started.iter().map(count).sum();
    let happened = sim.outside.happened.lock();
    let turns = |session: &SessionLog| {
        let started =
            |e: &&Recorded<SessionEvent>| matches!(e.event.body, Body::TurnStarted { .. });
        session.events.iter().filter(started).count() as u64
    };
    Ok(SimulationStats {
        sessions: logs.sessions.len() as u64,
        turns: logs.sessions.values().map(turns).sum(),
        flow_runs: logs
            .sessions
            .values()
            .map(|s| s.flow_runs.len() as u64)
            .sum(),
        texts: happened.texts.len() as u64,
        bridges: bridges.len() as u64,
        forwarded: relayed.iter().map(|relayed| relayed.forwarded).sum(),
        scheduled_turns,
        campaigns: runs
            .values()
            .flat_map(BTreeMap::values)
            .map(|run| u64::from(run.is_campaign()))
            .sum(),
        rebuilt_flows: happened.rebuilt,
        strict: u64::from(sim.is_strict),
        runs: logs.runs.len() as u64,
        events: logs.sessions.values().map(|s| s.events.len() as u64).sum(),
        calls: happened.calls.len() as u64,
        processes: started.len() as u64,
        crashes: sim.crashes.load(Ordering::Relaxed),
        pauses: sim.pauses.load(Ordering::Relaxed),
        partitions: sim.partitions.load(Ordering::Relaxed),
        clock_differences: u64::from(sim.clock_difference_ms > 0),
        leases_lost: metrics(|runtime| runtime.metrics().leases_lost.get()),
        conflicts: metrics(|runtime| runtime.metrics().conflicts.get()),
        ..SimulationStats::default()
    })
}
