//! Conversations with flows: commits and processor time of a turn, many users at once, a flow rebuilt from its
//! journal, and the memory of paused sessions.

use super::agents::counter;
use crate::client::{Connection, Failure, request, text_field};
use crate::load::{Latency, median};
use crate::options::Options;
use crate::server::Server;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Turns over which commits are counted.
const COUNTED: u32 = 200;
const AT_ONCE: usize = 16;
const USERS: usize = 50;
const TURNS_OF_A_USER: u32 = 40;
/// Effects in the journal of the flow that is rebuilt.
const JOURNAL: u32 = 100;
const PAUSED: usize = 10_000;
const PAUSED_FOR: Duration = Duration::from_secs(75);
/// Answers the question of its flow with its number, for ever.
const AGENT: &str = r"
import { createAgent } from 'tandem';
export default createAgent({
  prompt: 'You count.',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'no' } } },
  rateLimitPerUserPerMinute: 100000,
  maxInboundConcurrency: 1000,
  beforeLLM: undefined,
  flowRouter: { mode: 'detector', prompt: 'Which?', fallback: 'count' },
  flowLimits: { maxJournalRecords: 100000 },
  flows: {
    count: async function* () {
      for (let i = 0; ; i++) yield { type: 'ask', key: 'answer', text: 'Q' + i };
    },
  },
});
";

pub(crate) struct Conversations {
    pub(crate) commits: f64,
    /// Processor time of the server for a turn.
    pub(crate) cpu_ms: f64,
    pub(crate) alone: Latency,
    pub(crate) at_once_per_second: f64,
    pub(crate) users: usize,
    pub(crate) users_latency: Latency,
    /// A turn of a flow that is rebuilt first, and the number of effects in its journal.
    pub(crate) rebuilt: Latency,
    pub(crate) journal: u32,
    pub(crate) paused: usize,
    pub(crate) paused_mb: f64,
}

pub(crate) async fn measure(options: &Options) -> Result<Conversations, Failure> {
    let directory = options.directory()?;
    let folder = directory.path().join("agents").join("counter");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("agent.ts"), AGENT)?;

    let server = Server::start_with_agents(&options.binary, directory.path(), false).await?;
    let address = server.address;
    talk(address, "warm".to_owned(), 0, 50).await?;
    let before = counter(&server, "tandem_commit_seconds_count").await?;
    let alone = talk(address, "alone".to_owned(), 0, COUNTED).await?;
    let after = counter(&server, "tandem_commit_seconds_count").await?;
    let (mut rates, mut cpu) = (Vec::new(), Vec::new());
    for window in 0..options.windows {
        let used = server.cpu_seconds()?;
        let took = together(address, &format!("w{window}-"), AT_ONCE, COUNTED)
            .await?
            .0;
        let turns = f64::from(COUNTED) * AT_ONCE as f64;
        rates.push(turns / took.as_secs_f64());
        cpu.push((server.cpu_seconds()? - used) * 1e3 / turns);
    }
    let (_, waits) = together(address, "many-", USERS, TURNS_OF_A_USER).await?;
    for first in (0..PAUSED).step_by(AT_ONCE) {
        let last = (first + AT_ONCE).min(PAUSED);
        let name = format!("paused-{first}-");
        together(address, &name, last - first, 1).await?;
    }
    // A program is dropped when its user has not answered for a minute.
    tokio::time::sleep(PAUSED_FOR).await;
    let paused_mb = server.resident_mb()?;
    talk(address, "long".to_owned(), 0, JOURNAL).await?;
    server.stop().await?;

    let server = Server::start_with_agents(&options.binary, directory.path(), true).await?;
    let rebuilt = talk(server.address, "long".to_owned(), JOURNAL, 20).await?;
    server.stop().await?;
    Ok(Conversations {
        commits: (after - before) / f64::from(COUNTED),
        cpu_ms: median(cpu),
        alone: Latency::of(alone),
        at_once_per_second: median(rates),
        users: USERS,
        users_latency: Latency::of(waits),
        rebuilt: Latency::of(rebuilt),
        journal: JOURNAL,
        paused: PAUSED,
        paused_mb,
    })
}

/// Users who talk at the same time. Returns how long it took, and how long each turn took.
async fn together(
    address: SocketAddr,
    name: &str,
    users: usize,
    turns: u32,
) -> Result<(Duration, Vec<Duration>), Failure> {
    let began = Instant::now();
    let talks: Vec<_> = (0..users)
        .map(|n| tokio::spawn(talk(address, format!("{name}{n}"), 0, turns)))
        .collect();
    let mut waits = Vec::new();
    for talk in talks {
        waits.extend(talk.await??);
    }
    Ok((began.elapsed(), waits))
}

/// One user answers question after question. Every answer must be the next question: no turn is lost or comes
/// twice.
async fn talk(
    address: SocketAddr,
    user: String,
    first: u32,
    turns: u32,
) -> Result<Vec<Duration>, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut waits = Vec::with_capacity(turns as usize);
    for turn in first..first + turns {
        let body =
            format!(r#"{{"messageId":"{user}-{turn}","from":"{user}","body":"answer {turn}"}}"#);
        let path = "/v1/host/tandem/agents/counter/inbound?wait=true";
        let message = request("POST", path, "application/json", &body);
        let sent_at = Instant::now();
        let reply = connection.exchange(&message).await?;
        waits.push(sent_at.elapsed());
        reply.expect(200)?;
        let text = text_field(reply.body, "text");
        if text.as_deref() != Some(&format!("Q{turn}")) {
            let body = String::from_utf8_lossy(reply.body);
            return Err(format!("turn {turn} of {user} answered {body:.300}").into());
        }
    }
    Ok(waits)
}
