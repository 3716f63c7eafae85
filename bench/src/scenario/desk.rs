//! People who take conversations over: how soon the agent is silent, many open desks, campaigns, and many stored
//! schedules.

use super::agents::counter;
use crate::ceiling::Commits;
use crate::client::{Connection, Failure, admin_request, find, get, request, text_field};
use crate::load::{Latency, median};
use crate::options::Options;
use crate::report::{Report, Target};
use crate::server::Server;
use jiff::Timestamp;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

const PREFIX: &str = "/v1/host/tandem";
const TOKEN: &str = "token-of-the-bench-0123456789";
const TIMEOUT: Duration = Duration::from_secs(120);
const AT_ONCE: usize = 16;
/// Conversations whose model is called when a person takes them over.
const TAKEN_OVER: usize = 200;
/// How long the model takes to answer them.
const MODEL_SECONDS: u64 = 6;
const DESKS: usize = 1_000;
const RECIPIENTS: usize = 10_000;
const FEW_SCHEDULES: usize = 100;
/// Occurrences that are timed.
const FIRED: usize = 40;
/// The hash is that of `TOKEN`.
const AGENT: &str = r#"
import { createAgent } from 'tandem';
export default createAgent({
  prompt: 'You run a desk.',
  model: { provider: 'scripted', script: { answers: [
    { when: { contains: 'slow' }, text: 'the agent speaks', delayMs: MODEL_MS, times: 0 } ], otherwise: { text: 'yes' } } },
  rateLimitPerUserPerMinute: 100000,
  maxInboundConcurrency: 10000,
  adminAuth: {
    tokens: [{ hash: 'sha256:6312319c8e02f78c5aa474be4ee81a11e42c35e466ec23521c81a6194912076e', actorId: 'ana', role: 'boss' }],
    roles: { boss: ['hitl.takeover.start', 'hitl.takeover.end', 'hitl.takeover.message', 'schedule.manage'] },
  },
  scheduler: { maxConcurrentRuns: 64 },
  flows: { tick: async function* () { yield { type: 'say', text: 'tick' }; } },
});
"#;

pub(crate) struct Desk {
    /// From the request to the response: from then on nothing of the agent is sent.
    takeover: Latency,
    /// Texts of the agent that reached a user who had a person.
    escaped: usize,
    /// From a user's message to its arrival at the open desk.
    desks: Latency,
    desks_mb: f64,
    campaign: Campaign,
    few: Fired,
    many: Fired,
}

struct Campaign {
    recipients: usize,
    per_second: f64,
    commits: f64,
    before_mb: f64,
    peak_mb: f64,
}

/// Occurrences of one-off schedules, with so many others stored.
struct Fired {
    stored: usize,
    late: Latency,
    cpu_ms: f64,
}

pub(crate) async fn measure(options: &Options) -> Result<Desk, Failure> {
    let (takeover, escaped) = with_server("takeovers", options, takeovers).await?;
    let (desks, desks_mb) = with_server("open desks", options, open_desks).await?;
    let campaign = with_server("campaign", options, campaign).await?;
    let (few, many) = with_server("stored schedules", options, async |server: &Server| {
        let few = fire_beside(server, 0, FEW_SCHEDULES).await?;
        let many = fire_beside(server, FEW_SCHEDULES, options.waiting).await?;
        Ok((few, many))
    })
    .await?;
    Ok(Desk {
        takeover,
        escaped,
        desks,
        desks_mb,
        campaign,
        few,
        many,
    })
}

async fn with_server<T>(
    name: &str,
    options: &Options,
    measured: impl AsyncFnOnce(&Server) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let directory = options.directory()?;
    let folder = directory.path().join("agents").join("desk");
    std::fs::create_dir_all(&folder)?;
    let source = AGENT.replace("MODEL_MS", &(MODEL_SECONDS * 1000).to_string());
    std::fs::write(folder.join("agent.ts"), source)?;
    let server = Server::start_with_agents(&options.binary, directory.path(), false).await?;
    let result = measured(&server).await;
    server.stop().await?;
    result.map_err(|failure| format!("{name}: {failure}").into())
}

async fn call(connection: &mut Connection, bytes: &[u8]) -> Result<Value, Failure> {
    let reply = connection.exchange(bytes).await?;
    if !(200..300).contains(&reply.status) {
        reply.expect(200)?;
    }
    Ok(serde_json::from_slice(reply.body)?)
}

fn inbound(user: &str, id: &str, text: &str, waits: bool) -> Vec<u8> {
    let body = format!(r#"{{"messageId":"{id}","from":"{user}","body":"{text}"}}"#);
    let path = format!("{PREFIX}/agents/desk/inbound?wait={waits}");
    request("POST", &path, "application/json", &body)
}

/// Begins conversations, several at once, and returns the ids of their sessions.
async fn begin(address: SocketAddr, names: Vec<String>) -> Result<Vec<String>, Failure> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let begun = names.into_iter().map(|user| {
        let room = Arc::clone(&room);
        tokio::spawn(async move {
            let _one_of_few = room.acquire().await?;
            let mut connection = Connection::open(address).await?;
            let message = inbound(&user, &format!("{user}-first"), "hello", true);
            let reply = connection.exchange(&message).await?;
            reply.expect(200)?;
            text_field(reply.body, "sessionId").ok_or_else(|| Failure::from("no session"))
        })
    });
    let mut sessions = Vec::new();
    for session in begun.collect::<Vec<_>>() {
        sessions.push(session.await??);
    }
    Ok(sessions)
}

/// Each conversation is taken over while its model is being called.
async fn takeovers(server: &Server) -> Result<(Latency, usize), Failure> {
    let users: Vec<_> = (0..TAKEN_OVER).map(|n| format!("t{n}")).collect();
    let sessions = begin(server.address, users.clone()).await?;
    let mut connection = Connection::open(server.address).await?;
    for user in &users {
        let message = inbound(user, &format!("{user}-slow"), "slow", false);
        call(&mut connection, &message).await?;
    }
    let mut waits = Vec::new();
    for session in &sessions {
        let path = format!("{PREFIX}/sessions/{session}/takeover");
        let takeover = admin_request(TOKEN, "POST", &path, "{}");
        let sent_at = Instant::now();
        call(&mut connection, &takeover).await?;
        waits.push(sent_at.elapsed());
    }
    tokio::time::sleep(Duration::from_secs(MODEL_SECONDS + 2)).await;
    let mut escaped = 0;
    for user in &users {
        let path = format!("{PREFIX}/test/outbound?to={user}");
        let sent = call(&mut connection, &get(&path)).await?;
        let texts = sent["messages"].as_array().into_iter().flatten();
        escaped += texts
            .filter(|message| message["text"] == "the agent speaks")
            .count();
    }
    Ok((Latency::of(waits), escaped))
}

/// Desks that follow a conversation each, in which a person answers.
async fn open_desks(server: &Server) -> Result<(Latency, f64), Failure> {
    let address = server.address;
    let users: Vec<_> = (0..DESKS).map(|n| format!("d{n}")).collect();
    let sessions = begin(address, users.clone()).await?;
    let mut connection = Connection::open(address).await?;
    let mut readers = Vec::new();
    for session in &sessions {
        let path = format!("{PREFIX}/sessions/{session}/takeover");
        call(&mut connection, &admin_request(TOKEN, "POST", &path, "{}")).await?;
        readers.push(tokio::spawn(arrival(address, session.clone())));
    }
    // Until every desk has read what happened before.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let resident_mb = server.resident_mb()?;
    let mut sent_at = Vec::new();
    for user in &users {
        sent_at.push(Instant::now());
        let message = inbound(user, &format!("{user}-second"), "to the person", false);
        call(&mut connection, &message).await?;
    }
    let mut waits = Vec::new();
    for (reader, sent_at) in readers.into_iter().zip(sent_at) {
        let arrived = tokio::time::timeout(TIMEOUT, reader).await???;
        waits.push(arrived.saturating_duration_since(sent_at));
    }
    Ok((Latency::of(waits), resident_mb))
}

/// When the desk of a session reads the user's second message.
async fn arrival(address: SocketAddr, session: String) -> Result<Instant, Failure> {
    let mut stream = Connection::open(address).await?.into_stream();
    let path = format!("{PREFIX}/sessions/{session}/events?after=-1");
    let opening = request("GET", &path, "text/event-stream", "");
    stream.write_all(&opening).await?;
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err("the desk's stream ended".into());
        }
        if find(&buffer, b"to the person").is_some() {
            return Ok(Instant::now());
        }
    }
}

async fn campaign(server: &Server) -> Result<Campaign, Failure> {
    let users = (0..RECIPIENTS).map(|n| format!("c{n}")).collect();
    begin(server.address, users).await?;
    let mut connection = Connection::open(server.address).await?;
    let before_mb = server.resident_mb()?;
    let commits = counter(server, "tandem_commit_seconds_count").await?;
    let target = r#"{"kind":"segment","campaignId":"spring","segment":{"type":"all"}}"#;
    let schedule = create_schedule(&mut connection, Duration::from_secs(1), target).await?;
    let mut peak_mb = before_mb;
    let began = Instant::now();
    let run = loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        peak_mb = f64::max(peak_mb, server.resident_mb()?);
        let runs = runs_of(&mut connection, &schedule).await?;
        if let Some(run) = runs.first().filter(|run| run["finishedAt"].is_string()) {
            break run.clone();
        }
        if began.elapsed() > TIMEOUT {
            return Err("the campaign did not end".into());
        }
    };
    let recipients = run["counts"]["success"].as_u64().unwrap_or(0);
    if recipients != RECIPIENTS as u64 {
        return Err(format!("{recipients} recipients got their text: {run}").into());
    }
    let commits = counter(server, "tandem_commit_seconds_count").await? - commits;
    let seconds = between_ms(&run["startedAt"], &run["finishedAt"])? / 1e3;
    Ok(Campaign {
        recipients: RECIPIENTS,
        per_second: RECIPIENTS as f64 / seconds,
        commits: commits / RECIPIENTS as f64,
        before_mb,
        peak_mb,
    })
}

/// A one-off schedule of the flow, so long from now.
async fn create_schedule(
    connection: &mut Connection,
    from_now: Duration,
    target: &str,
) -> Result<String, Failure> {
    let run_at = Timestamp::now() + from_now;
    let body = format!(
        r#"{{"agentId":"desk","flowId":"tick","trigger":{{"type":"once","runAt":"{run_at}"}},"target":{target},"allowSessionBootstrap":true}}"#
    );
    let path = format!("{PREFIX}/schedules");
    let created = call(connection, &admin_request(TOKEN, "POST", &path, &body)).await?;
    let id = created["id"].as_str().ok_or("a schedule without an id")?;
    Ok(id.to_owned())
}

async fn runs_of(connection: &mut Connection, schedule: &str) -> Result<Vec<Value>, Failure> {
    let path = format!("{PREFIX}/schedules/{schedule}/runs");
    let listed = call(connection, &admin_request(TOKEN, "GET", &path, "")).await?;
    Ok(listed["runs"].as_array().cloned().unwrap_or_default())
}

/// Fills the store up to `stored` schedules of the far future, and times one-off schedules beside them.
async fn fire_beside(server: &Server, existing: usize, stored: usize) -> Result<Fired, Failure> {
    let address = server.address;
    let fillers = (0..AT_ONCE).map(|part| {
        tokio::spawn(async move {
            let mut connection = Connection::open(address).await?;
            for n in (existing..stored).skip(part).step_by(AT_ONCE) {
                let target = format!(r#"{{"kind":"user","userExternalId":"far{n}"}}"#);
                create_schedule(&mut connection, Duration::from_secs(86_400 * 30), &target).await?;
            }
            Ok::<_, Failure>(())
        })
    });
    for filler in fillers.collect::<Vec<_>>() {
        filler.await??;
    }
    let mut connection = Connection::open(address).await?;
    let mut schedules = Vec::new();
    for n in 0..FIRED as u64 {
        // One after the other, so that none waits for another.
        let from_now = Duration::from_millis(2_000 + n * 50);
        let target = format!(r#"{{"kind":"user","userExternalId":"near{n}-{stored}"}}"#);
        schedules.push(create_schedule(&mut connection, from_now, &target).await?);
    }
    let used = server.cpu_seconds()?;
    tokio::time::sleep(Duration::from_millis(3_000 + FIRED as u64 * 50)).await;
    let cpu_ms = (server.cpu_seconds()? - used) * 1e3 / FIRED as f64;
    let mut late = Vec::new();
    for schedule in &schedules {
        let runs = runs_of(&mut connection, schedule).await?;
        let run = runs.first().ok_or("a schedule did not fire")?;
        let ms = between_ms(&run["scheduledFor"], &run["finishedAt"])?;
        late.push(Duration::from_secs_f64(ms.max(0.0) / 1e3));
    }
    Ok(Fired {
        stored,
        late: Latency::of(late),
        cpu_ms,
    })
}

fn between_ms(from: &Value, to: &Value) -> Result<f64, Failure> {
    let at = |value: &Value| -> Result<Timestamp, Failure> {
        Ok(value.as_str().ok_or("a time is missing")?.parse()?)
    };
    Ok(at(to)?.duration_since(at(from)?).as_secs_f64() * 1e3)
}

impl Desk {
    /// Beside bare commits of the same machine.
    pub(crate) fn report(&self, report: &mut Report, commits: &Commits) {
        report
            .row(
                "a takeover during a call of the model",
                self.takeover.to_string(),
            )
            .check(
                Target::Below(3.0, "× one commit (p99)"),
                self.takeover.p99_ms / commits.latency_alone().p99_ms,
            );
        report
            .row("  texts of the agent after it", self.escaped.to_string())
            .check(
                Target::Exactly("none"),
                f64::from(u8::from(self.escaped == 0)),
            );
        report.row(
            format!("a message at {DESKS} open desks"),
            self.desks.to_string(),
        );
        report.row("  resident", format!("{:.0} MB", self.desks_mb));
        let campaign = &self.campaign;
        report
            .row(
                format!("a campaign of {} recipients", campaign.recipients),
                format!(
                    "{:.0}/s, {:.2} commits",
                    campaign.per_second, campaign.commits
                ),
            )
            .check(
                Target::AtLeast(0.3, "× bare commits, as many commits"),
                campaign.per_second * campaign.commits / median(commits.grouped.clone()),
            );
        report
            .row(
                "  resident before, at most",
                format!("{:.0}, {:.0} MB", campaign.before_mb, campaign.peak_mb),
            )
            .check(
                Target::Below(1.25, "× before"),
                campaign.peak_mb / campaign.before_mb,
            );
        for fired in [&self.few, &self.many] {
            report.row(
                format!("an occurrence, {} schedules stored", fired.stored),
                format!("{}, {:.2} ms cpu", fired.late, fired.cpu_ms),
            );
        }
        report
            .row("  the later beside the earlier", String::new())
            .check(
                Target::Below(1.5, "× (p50)"),
                self.many.late.p50_ms / self.few.late.p50_ms,
            );
    }
}
