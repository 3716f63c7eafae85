//! How long a tenant waits for the creation of a run while another tenant attacks: with hanging
//! calls, more than the host makes at once, and with writers of large runs.

use crate::client::{Connection, Failure, KEY, NEIGHBOUR_KEY, request_as, text_field};
use crate::load::{Latency, SingleRequest, Until, drive};
use crate::options::Options;
use crate::server::Server;
use crate::workflows::{HANGING, PARENT_AND_CHILD};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const HANGING_CALLS: usize = 300;
const WRITERS: usize = 8;
/// Size of the inputs of each large run.
const LARGE_BYTES: usize = 900_000;
/// Minimum of samples for a meaningful p99.
const SAMPLES: usize = 500;
/// Time limit for a parent and its child.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Neighbour {
    pub(crate) quiet: Latency,
    pub(crate) attacked: Latency,
    /// From the creation of a parent to its end after its child, under attack.
    pub(crate) parent_and_child: Latency,
    /// Large runs the attacker created in the meantime.
    pub(crate) large_runs: usize,
}

pub(crate) async fn measure(server: &Server, options: &Options) -> Result<Neighbour, Failure> {
    let span = options.window * 2;
    creates(server, options.window / 4, 0).await?;
    let quiet = creates(server, span, SAMPLES).await?;

    // Dropping it ends all tasks of the attack.
    let mut attack = JoinSet::new();
    let hole = black_hole(&mut attack).await?;
    let hang = json!({"workflowId": HANGING, "inputs": {"url": format!("http://{hole}/")}});
    let hang = post(KEY, &hang.to_string());
    drive(
        server.address,
        16,
        Until::Count(HANGING_CALLS),
        SingleRequest::new(hang, 201),
    )
    .await?;
    let made = large_writers(server, &mut attack).await?;
    tokio::time::sleep(options.window / 4).await;
    let attacked = creates(server, span, SAMPLES).await?;
    let parent_and_child = parents_and_children(server, span / 2).await?;
    attack.shutdown().await;
    Ok(Neighbour {
        quiet: Latency::of(quiet),
        attacked: Latency::of(attacked),
        parent_and_child: Latency::of(parent_and_child),
        large_runs: made.load(Ordering::Relaxed),
    })
}

fn post(key: &str, body: &str) -> Vec<u8> {
    request_as(key, "POST", "/v1/runs", "application/json", body)
}

fn small(workflow: &str) -> Vec<u8> {
    let body = json!({"workflowId": workflow, "inputs": {"order": 4711}});
    post(NEIGHBOUR_KEY, &body.to_string())
}

/// Accepts connections and never replies.
async fn black_hole(attack: &mut JoinSet<()>) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    attack.spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    Ok(address)
}

/// Text of 64 different characters in no order: compression saves a quarter of it at most.
fn incompressible(bytes: usize) -> String {
    let mut state = 1_u64;
    let character = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'0' + (state >> 58) as u8)
    };
    (0..bytes).map(character).collect()
}

async fn large_writers(
    server: &Server,
    attack: &mut JoinSet<()>,
) -> Result<Arc<AtomicUsize>, Failure> {
    let inputs = json!({"text": incompressible(LARGE_BYTES)});
    let body = json!({"workflowId": "bench-noop", "inputs": inputs});
    let request: Arc<[u8]> = post(KEY, &body.to_string()).into();
    let made = Arc::new(AtomicUsize::new(0));
    for _ in 0..WRITERS {
        let mut connection = Connection::open(server.address).await?;
        let (request, made) = (Arc::clone(&request), Arc::clone(&made));
        attack.spawn(async move {
            while let Ok(reply) = connection.exchange(&request).await {
                // Refusals are acceptable responses to an attacker.
                made.fetch_add(usize::from(reply.status == 201), Ordering::Relaxed);
            }
        });
    }
    Ok(made)
}

/// One caller of the neighbour, one run after the other.
async fn creates(
    server: &Server,
    span: Duration,
    at_least: usize,
) -> Result<Vec<Duration>, Failure> {
    let mut connection = Connection::open(server.address).await?;
    let request = small("bench-noop");
    let mut waits = Vec::new();
    let began = Instant::now();
    while began.elapsed() < span || waits.len() < at_least {
        let sent_at = Instant::now();
        let reply = connection.exchange(&request).await?;
        if reply.status != 201 {
            return Err(format!("create answered {}", reply.status).into());
        }
        waits.push(sent_at.elapsed());
    }
    Ok(waits)
}

async fn parents_and_children(server: &Server, span: Duration) -> Result<Vec<Duration>, Failure> {
    let mut connection = Connection::open(server.address).await?;
    let request = small(PARENT_AND_CHILD);
    let mut waits = Vec::new();
    let began = Instant::now();
    while began.elapsed() < span {
        let sent_at = Instant::now();
        let made = connection.exchange(&request).await?;
        let run = text_field(made.body, "runId").ok_or("no run was created")?;
        let path = format!("/v1/runs/{run}");
        let look = request_as(NEIGHBOUR_KEY, "GET", &path, "application/json", "");
        loop {
            let status = text_field(connection.exchange(&look).await?.body, "status");
            if status.as_deref() == Some("completed") {
                break;
            }
            if sent_at.elapsed() > TIMEOUT {
                return Err(format!("the parent run {run} is {status:?} after a minute").into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        waits.push(sent_at.elapsed());
    }
    Ok(waits)
}
