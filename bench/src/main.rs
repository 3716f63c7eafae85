//! Load on the real binary over loopback, compared with the best this machine could do.
//!
//! A number alone says little on a shared machine, so every run measures its own ceilings with the
//! same data on the same disk: minimal group commits, a single fsynced commit, and an HTTP server
//! that only replies. The client runs on one thread and shares the cores with the server.
//!
//! `cargo xtask bench [--quick] [--only runs] [--only past] [--only neighbour] [--only cost]
//! [--only conversations] [--only desk] [--fsync-ms N]`

#![allow(clippy::print_stdout)]

mod ceiling;
mod client;
mod load;
mod options;
mod report;
mod scenario;
mod server;
mod slow_disk;
mod workflows;

use ceiling::commits::Stored;
use ceiling::{Commits, ReferenceRates};
use client::Failure;
use load::{Latency, median};
use options::{Only, Options};
use report::{Report, Target, percent};
use scenario::agents::Agents;
use scenario::conversations::Conversations;
use scenario::cost::Cost;
use scenario::neighbour::Neighbour;
use scenario::past::Past;
use scenario::people::People;
use scenario::runs::Runs;
use scenario::waiting_runs::WaitingRuns;
use server::Server;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == "echo") {
        return ceiling::echo::serve(&arguments[1..]);
    }
    if let Some(at) = arguments
        .iter()
        .position(|argument| argument == "--fsync-ms")
    {
        let ms = arguments.get(at + 1).and_then(|n| n.parse().ok());
        let ms = ms
            .filter(|ms| (1..1000).contains(ms))
            .ok_or("--fsync-ms 1 to 999")?;
        let mut rest = arguments.clone();
        rest.drain(at..at + 2);
        let options = Options::parse(&rest)?;
        return slow_disk::restart_with_delay(ms, &rest, options.disk());
    }
    let options = Options::parse(&arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<(), Failure> {
    let mut report = Report::default();
    report.note(server::machine());
    if options.only == Some(Only::Neighbour) {
        report_neighbour(&mut report, &neighbour(options).await?);
        report.print();
        return Ok(());
    }
    if options.only == Some(Only::Cost) {
        report_cost(&mut report, &scenario::cost::measure(options).await?);
        let directory = options.directory()?;
        let server = Server::start(&options.binary, directory.path()).await?;
        let (_, commits, noop) = noop_runs(&server, options).await?;
        server.stop().await?;
        report_creates(&mut report, &commits, &noop);
        report.print();
        return Ok(());
    }
    if matches!(options.only, Some(Only::Conversations | Only::Desk)) {
        let directory = options.directory()?;
        let server = Server::start(&options.binary, directory.path()).await?;
        let (_, commits, _) = noop_runs(&server, options).await?;
        server.stop().await?;
        match options.only {
            Some(Only::Desk) => {
                let desk = scenario::desk::measure(options).await?;
                desk.report(&mut report, &commits);
            }
            _ => {
                let measured = scenario::conversations::measure(options).await?;
                report_conversations(&mut report, &measured, &commits);
            }
        }
        report.print();
        return Ok(());
    }
    if options.only == Some(Only::Past) {
        report_past(&mut report, &scenario::past::measure(options).await?);
        report.print();
        return Ok(());
    }

    let start = scenario::start::measure(options).await?;
    report
        .row(
            "start to ready, empty store",
            format!("{:.0} ms", start.ready_ms),
        )
        .check(Target::Below(150.0, "ms"), start.ready_ms);
    report
        .row("resident when idle", format!("{:.1} MB", start.idle_mb))
        .check(Target::Below(60.0, "MB"), start.idle_mb);

    let directory = options.directory()?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let (stored, commits, noop) = noop_runs(&server, options).await?;
    let alone = scenario::runs::latency_alone(&server, "bench-noop", options).await?;
    let reference = ReferenceRates::measure(&stored, &noop.exchange, options).await?;
    report_noop(&mut report, &stored, &commits, &reference, &noop, alone);
    if options.only == Some(Only::Runs) {
        server.stop().await?;
        report.print();
        return Ok(());
    }
    let waiting = WaitingRuns::measure(server, options, directory.path()).await?;
    drop(directory);

    let directory = options.directory()?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let three = scenario::runs::measure(&server, "bench-three", 16, None, options).await?;
    let streams = scenario::streams::measure(&server, options).await?;
    server.stop().await?;
    drop(directory);

    let directory = options.directory()?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let agents = scenario::agents::measure(&server, options).await?;
    server.stop().await?;
    drop(directory);
    let directory = options.directory()?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let people = scenario::people::measure(&server, &stored, options).await?;
    server.stop().await?;
    drop(directory);

    let cost = scenario::cost::measure(options).await?;
    let neighbour = neighbour(options).await?;
    let past = scenario::past::measure(options).await?;
    let conversations = scenario::conversations::measure(options).await?;

    report.row(
        "three-node runs, 16 in flight",
        format!("{:.0}/s", three.per_second),
    );
    report.row("  create p50, p99", three.latency.to_string());
    report
        .row(
            format!(
                "{} subscribers, {} events each",
                streams.subscribers, streams.events
            ),
            format!("{:.0} events/s", streams.per_second),
        )
        .check(
            Target::Exactly("saw every event"),
            f64::from(u8::from(streams.complete)),
        );
    report
        .row(
            format!("{} waiting runs: resident", waiting.waiting),
            format!("{:.0} MB", waiting.resident_mb),
        )
        .check(Target::Below(250.0, "MB"), waiting.resident_mb);
    report
        .row(
            "  restart to ready",
            format!("{:.2} s", waiting.restart_seconds),
        )
        .check(Target::Below(3.0, "s"), waiting.restart_seconds);
    let ratio = waiting.per_second / noop.per_second;
    report
        .row(
            "  no-op runs beside them",
            format!("{:.0}/s", waiting.per_second),
        )
        .check(Target::AtLeast(0.9, "× empty store"), ratio);
    report_people(&mut report, &people);
    report_cost(&mut report, &cost);
    report_neighbour(&mut report, &neighbour);
    report_agents(&mut report, &agents);
    report_past(&mut report, &past);
    report_conversations(&mut report, &conversations, &commits);
    report.print();
    Ok(())
}

fn report_conversations(report: &mut Report, talk: &Conversations, commits: &Commits) {
    report
        .row(
            "a turn of a flow: commits, the text's delivery included",
            format!("{:.2} commits", talk.commits),
        )
        .check(Target::Below(2.01, "commits"), talk.commits);
    report
        .row("  processor time", format!("{:.2} ms a turn", talk.cpu_ms))
        .check(Target::Below(1.0, "ms"), talk.cpu_ms);
    report.row("  p50, p99 (one at a time)", talk.alone.to_string());
    let bare = median(commits.grouped.clone());
    report
        .row(
            "16 conversations at once",
            format!("{:.0} turns/s", talk.at_once_per_second),
        )
        .check(
            Target::AtLeast(0.3, "× bare commits, as many commits"),
            talk.at_once_per_second * talk.commits / bare,
        );
    report.row(
        format!("{} users at once, each turn in order", talk.users),
        talk.users_latency.to_string(),
    );
    report
        .row(
            format!("a turn of a flow rebuilt from {} effects", talk.journal),
            talk.rebuilt.to_string(),
        )
        .check(Target::Below(20.0, "ms (p50)"), talk.rebuilt.p50_ms);
    report
        .row(
            format!("{} paused sessions: resident", talk.paused),
            format!("{:.0} MB", talk.paused_mb),
        )
        .check(Target::Below(200.0, "MB"), talk.paused_mb);
}

async fn neighbour(options: &Options) -> Result<Neighbour, Failure> {
    let directory = options.directory()?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let neighbour = scenario::neighbour::measure(&server, options).await?;
    server.stop().await?;
    Ok(neighbour)
}

fn report_neighbour(report: &mut Report, neighbour: &Neighbour) {
    let (quiet, attacked) = (&neighbour.quiet, &neighbour.attacked);
    report.row("a neighbour's create, quiet", quiet.to_string());
    report
        .row("  while another tenant attacks", attacked.to_string())
        .check(
            Target::Below(5.0, "× quiet (p99)"),
            attacked.p99_ms / quiet.p99_ms,
        );
    report.row(
        "  its parent and child meanwhile",
        neighbour.parent_and_child.to_string(),
    );
    report.row(
        "  large runs made meanwhile",
        neighbour.large_runs.to_string(),
    );
}

/// No-op runs at 64 in flight, in turns with bare commits of the same rows.
async fn noop_runs(server: &Server, options: &Options) -> Result<(Stored, Commits, Runs), Failure> {
    let stored = scenario::runs::stored("bench-noop", options).await?;
    let mut commits = Commits::default();
    let beside = Some((&mut commits, &stored));
    let noop = scenario::runs::measure(server, "bench-noop", 64, beside, options).await?;
    Ok((stored, commits, noop))
}

fn report_noop(
    report: &mut Report,
    stored: &Stored,
    commits: &Commits,
    reference: &ReferenceRates,
    noop: &Runs,
    alone: Latency,
) {
    let (single, grouped) = (commits.latency_alone(), commits.latency_grouped());
    report.note(format!(
        "ceilings: {:.0} grouped commits/s of {} events, {} bytes (p50, p99 {}; through our store \
         {:.0}/s); one commit p50 {:.3} ms, p99 {:.3} ms; {:.0} bare HTTP exchanges/s (p50, p99 {})",
        median(commits.grouped.clone()),
        stored.bodies.len(),
        stored.bytes(),
        grouped,
        reference.through_store,
        single.p50_ms,
        single.p99_ms,
        reference.echo,
        reference.echo_latency,
    ));
    report.row(
        "p99 of 64 callers: bare commits, bare HTTP",
        format!(
            "{:.1}, {:.1} × one commit",
            grouped.p99_ms / single.p50_ms,
            reference.echo_latency.p99_ms / single.p50_ms
        ),
    );
    report
        .row(
            "no-op runs, 64 in flight",
            format!("{:.0}/s", noop.per_second),
        )
        .check(Target::AtLeast(0.25, "× bare commits"), noop.of_commits);
    report.row(
        "  beside bare HTTP",
        percent(noop.per_second / reference.echo),
    );
    report_creates(report, commits, noop);
    report
        .row("  create p50, p99 (one at a time)", alone.to_string())
        .check(
            Target::Below(10.0, "× one commit (p99)"),
            alone.p99_ms / single.p50_ms,
        );
}

/// How long creates take, beside the bare commit loop with as many callers.
fn report_creates(report: &mut Report, commits: &Commits, noop: &Runs) {
    report
        .row("  create p50, p99 (64 in flight)", noop.latency.to_string())
        .check(
            Target::Below(10.0, "× one commit (p99)"),
            noop.p99_in_commits,
        );
    report
        .row(
            "    the bare commit loop",
            commits.latency_grouped().to_string(),
        )
        .check(
            Target::Below(2.0, "× bare commits (p99)"),
            noop.p99_of_grouped,
        );
}

fn report_people(report: &mut Report, people: &People) {
    report
        .row("approval round trip", people.round_trip.to_string())
        .check(
            Target::Below(4.0, "× two commits (p99)"),
            people.round_trip.p99_ms / people.pair.p99_ms,
        );
    let (few, many) = (&people.few, &people.many);
    report
        .row(
            format!("{} open questions: inbox page", people.open),
            many.first_page.to_string(),
        )
        .check(
            Target::Below(3.0, "× with 100 open (p50)"),
            many.first_page.p50_ms / few.first_page.p50_ms,
        );
    report.row("  resolve", many.resolve.to_string()).check(
        Target::Below(3.0, "× with 100 open (p50)"),
        many.resolve.p50_ms / few.resolve.p50_ms,
    );
}

/// Beside the rates: the processor time of the server for one operation.
fn report_cost(report: &mut Report, cost: &Cost) {
    let approvals = &cost.approvals;
    report
        .row("approvals, 16 in flight", approvals.approvals.to_string())
        .check(Target::AtLeast(0.4, "× no-op runs"), approvals.of_noop);
    report
        .row(
            "  no-op runs in turns, created and read",
            approvals.noops.to_string(),
        )
        .check(
            Target::Below(2.5, "× their processor time"),
            approvals.cpu_of_noop,
        );
    for (name, measured) in [
        ("reads of a waiting run", &approvals.reads),
        ("first pages of a small inbox", &approvals.inbox),
    ] {
        report.row(name, measured.to_string());
        report.row("  p50, p99", measured.latency.to_string());
    }
    let page = &cost.page;
    report
        .row(
            format!("a page of {} events", page.events),
            format!("{}, {:.0} µs", page.read, page.cpu_us),
        )
        .check(Target::Below(2.0, "× from memory (p50)"), page.of_memory);
    report.row(
        format!("  its {} bytes from memory", page.bytes),
        page.from_memory.to_string(),
    );
    report
        .row(
            format!("{} ended runs: resident", cost.ended_runs),
            format!("{:.1} MB", cost.resident_mb),
        )
        .check(Target::Below(80.0, "MB"), cost.resident_mb);
}

fn report_agents(report: &mut Report, agents: &Agents) {
    report
        .row(
            "a worker dispatched and harvested",
            format!("{:.2} commits", agents.handoff_commits),
        )
        .check(
            Target::Below(4.01, "commits more than alone"),
            agents.handoff_commits,
        );
    let (short, long) = (&agents.short, &agents.long);
    report
        .row(
            format!("supervisor loop, {} turns", long.iterations),
            format!("{:.2} ms a turn", long.ms_per_iteration()),
        )
        .check(
            Target::Below(1.5, "× of a quarter as many"),
            long.ms_per_iteration() / short.ms_per_iteration(),
        );
    report
        .row(
            "  log",
            format!("{:.1} events a turn", long.events_per_iteration()),
        )
        .check(
            Target::Below(1.1, "× of a quarter as many"),
            long.events_per_iteration() / short.events_per_iteration(),
        );
    report
        .row(
            format!("{} parent and child pairs: resident", agents.pairs),
            format!("{:.0} MB", agents.pairs_mb),
        )
        .check(Target::Below(400.0, "MB"), agents.pairs_mb);
}

fn report_past(report: &mut Report, past: &Past) {
    report
        .row(
            format!("{} entries as of an event", past.entries),
            past.then.to_string(),
        )
        .check(
            Target::Below(2.0, "× as of now (p50)"),
            past.then.p50_ms / past.now.p50_ms,
        );
    report.row(
        format!("reading a log of {} events", past.events),
        past.log.to_string(),
    );
    for (name, alone, beside) in [
        ("  a replay of it", &past.replay, &past.replay_beside),
        (
            "  a branch from its middle",
            &past.branch,
            &past.branch_beside,
        ),
    ] {
        report.row(name, alone.to_string()).check(
            Target::Below(5.0, "× reading it (p50)"),
            alone.p50_ms / past.log.p50_ms,
        );
        report
            .row(
                format!("    with {} other runs", past.others),
                beside.to_string(),
            )
            .check(
                Target::Below(1.5, "× without them (p50)"),
                beside.p50_ms / alone.p50_ms,
            );
    }
}
