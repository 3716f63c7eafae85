//! A client: starts runs, sends commands to them, reads them, and records the responses.

use super::mocks::MOCK_CHAT;
use super::purge::SHORT;
use super::supervised::SUPERVISED;
use super::verifier::CHECKED;
use super::{Simulation, callbacks, forks, mocks, people, workflows};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    Command, DrainPolicy, Object, Owner, Reply, RunId, RunOptions, RunRequest, TenantId, TimerKey,
    Transport, WorkflowId,
};
use tandem_runtime::{
    CommandOutcome, IdempotencyKey, IdempotencyRequest, NewRun, Permissions, Runtime,
    StoredResponse, SubmitError,
};

const WORKFLOWS: [&str; 14] = [
    "asking",
    "top",
    "top",
    "middle",
    "leaf",
    "long",
    "triggered",
    SUPERVISED,
    SUPERVISED,
    CHECKED,
    CHECKED,
    MOCK_CHAT,
    MOCK_CHAT,
    "missing",
];
/// Limit of runs that clients request in one simulation, without their children.
const MAX_RUNS: usize = 8;

pub(super) fn tenant() -> TenantId {
    TenantId::new("sim")
}

pub(super) async fn act(sim: Arc<Simulation>, runtime: Runtime, mut rng: SmallRng) {
    for _ in 0..rng.random_range(3..12) {
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..600))).await;
        match rng.random_range(0..100) {
            0..30 => create(&sim, &runtime, &mut rng).await,
            30..35 => {
                create(&sim, &runtime, &mut rng).await;
                tokio::time::sleep(Duration::from_millis(rng.random_range(0..40))).await;
                command(&sim, &runtime, &mut rng).await;
            }
            35..60 => command(&sim, &runtime, &mut rng).await,
            65..70 if sim.shares_store => forks::fork(&sim, &runtime, &mut rng).await,
            60..70 => read(&sim, &runtime, &mut rng).await,
            70..80 => people::answer(&sim, &runtime, &mut rng).await,
            80..84 => {
                if let Some(run) = random_run(&runtime, &mut rng).await {
                    people::event(&sim, &runtime, run, &mut rng).await;
                }
            }
            84..90 => repeat_delivery(&sim, &runtime, &mut rng).await,
            90..95 => fire_timer_early(&sim, &runtime, &mut rng).await,
            _ if sim.shares_store => register_again(&runtime, &mut rng).await,
            _ => {
                let jump = rng.random_range(0..600_000);
                // Storing the offset may fail; the clock has moved all the same.
                drop(runtime.advance_clock(jump).await);
            }
        }
    }
}

pub(super) fn idempotency_request(key: IdempotencyKey) -> IdempotencyRequest {
    IdempotencyRequest {
        key,
        digest: "same".to_owned(),
        render: Arc::new(|answer| {
            let body = match answer {
                CommandOutcome::Created(run) => run.to_string(),
                CommandOutcome::Replied(_, reply) => format!("{reply:?}"),
                CommandOutcome::Refused(refusal) => refusal.to_string(),
            };
            Some(StoredResponse { status: 200, body })
        }),
    }
}

/// A run whose log is purged soon.
async fn create_short(runtime: &Runtime, rng: &mut SmallRng) {
    let new = NewRun {
        workflow_id: WorkflowId::new(SHORT),
        request: request(rng, SHORT),
        exclusive_scope: false,
    };
    // A failed creation may be durable; the checks find its row.
    drop(runtime.create_run(new, None).await);
}

/// Another document for a known id. Running runs keep theirs.
async fn register_again(runtime: &Runtime, rng: &mut SmallRng) {
    let documents = workflows::random(rng);
    let document = &documents[rng.random_range(0..documents.len())];
    let owner = tenant().into();
    // A fault of the store may hide that it is registered.
    drop(
        runtime
            .register(Some(&owner), document, Permissions::default())
            .await,
    );
}

async fn create(sim: &Simulation, runtime: &Runtime, rng: &mut SmallRng) {
    if sim.shares_store && rng.random_bool(0.2) {
        return create_short(runtime, rng).await;
    }
    if sim.observations.lock().created.len() >= MAX_RUNS {
        return;
    }
    let workflow = WORKFLOWS[rng.random_range(0..WORKFLOWS.len())];
    // Few keys, so that requests repeat.
    let key = rng
        .random_bool(0.7)
        .then(|| IdempotencyKey(format!("create-{workflow}-{}", rng.random_range(0..3))));
    for _ in 0..rng.random_range(1..4) {
        let new = NewRun {
            workflow_id: WorkflowId::new(workflow),
            request: request(rng, workflow),
            exclusive_scope: false,
        };
        let result = runtime
            .create_run(new, key.clone().map(idempotency_request))
            .await;
        match result {
            Ok(run) => {
                let mut observations = sim.observations.lock();
                if let Some(key) = &key {
                    observations.record_answer(key, run.to_string());
                }
                observations.created.insert(run);
                return;
            }
            Err(SubmitError::IdempotencyKeyUsed) => {
                let key = key.expect("only a key can be answered before");
                if let Some(body) = stored_answer(sim, runtime, &key).await {
                    sim.observations.lock().created.insert(RunId::from(body));
                }
                return;
            }
            Err(SubmitError::Fault(_)) => {}
            Err(_) => return,
        }
    }
}

fn request(rng: &mut SmallRng, workflow: &str) -> RunRequest {
    let mut configurable = Object::new();
    if rng.random_bool(0.1) {
        configurable.insert(
            "runTimeoutMs".to_owned(),
            json!(rng.random_range(500..5_000)),
        );
    }
    if rng.random_bool(0.1) {
        configurable.insert("recursionLimit".to_owned(), json!(rng.random_range(1..9)));
    }
    let probability = if workflow == MOCK_CHAT { 0.8 } else { 0.2 };
    if rng.random_bool(probability) {
        configurable.insert("mockProvider".to_owned(), mocks::provider(rng));
    }
    RunRequest {
        owner: Owner {
            tenant: tenant(),
            workspace: None,
            principal: None,
        },
        inputs: Object::from_iter([("v".to_owned(), json!("given"))]),
        erased_defaults: Vec::new(),
        untrusted_inputs: Vec::new(),
        sensitive_inputs: Vec::new(),
        options: RunOptions {
            configurable: Some(configurable),
            ..RunOptions::default()
        },
        scope_id: None,
        callback_url: callbacks::random_callback(rng),
        callback_may_answer: false,
        parent: None,
        claimed_parent: None,
        waiting_session: None,
        conformance_role: false,
        execution_model: None,
        isolated_memory: false,
        transport: Transport::Rest,
        trace: None,
        memory: None,
        forked_from: None,
        forked_by: Vec::new(),
        levels_above: 0,
    }
}

/// The response stored for a used key.
pub(super) async fn stored_answer(
    sim: &Simulation,
    runtime: &Runtime,
    key: &IdempotencyKey,
) -> Option<String> {
    let record = runtime.store().idempotency_record(key).await.ok()?;
    let mut observations = sim.observations.lock();
    let Some(record) = record else {
        let message = format!("the response stored for key {} is lost", key.0);
        observations.violations.push(message);
        return None;
    };
    observations.record_answer(key, record.response.body.clone());
    Some(record.response.body)
}

/// Any existing run, children included.
pub(super) async fn random_run(runtime: &Runtime, rng: &mut SmallRng) -> Option<RunId> {
    let runs = super::all_runs(runtime).await.ok()?;
    let chosen = runs.get(rng.random_range(0..runs.len().max(1)))?;
    Some(chosen.run_id.clone())
}

async fn command(sim: &Simulation, runtime: &Runtime, rng: &mut SmallRng) {
    let Some(run) = random_run(runtime, rng).await else {
        return;
    };
    let command = match rng.random_range(0..10) {
        0..2 => Command::Cancel {
            reason: None,
            by: None,
            by_parent: None,
        },
        2..4 => Command::Pause {
            reason: None,
            policy: DrainPolicy::Immediate,
        },
        4..6 => Command::Pause {
            reason: None,
            policy: DrainPolicy::DrainCurrentNode,
        },
        _ => Command::Resume { reason: None },
    };
    let key = rng
        .random_bool(0.3)
        .then(|| IdempotencyKey(format!("command-{}", rng.random_range(0..40))));
    let times = if rng.random_bool(0.3) { 2 } else { 1 };
    for _ in 0..times {
        let answer = key.clone().map(idempotency_request);
        let cancels = matches!(command, Command::Cancel { .. });
        let call = cancels.then(|| sim.decisions.lock().cancels(&run));
        let result = runtime
            .submit(&tenant().into(), &run, command.clone(), answer)
            .await;
        if let Some(call) = call {
            sim.decisions.lock().cancelled(&run, call, result.is_ok());
        }
        match result {
            Ok(reply) => {
                let mut observations = sim.observations.lock();
                if let Some(key) = &key {
                    observations.record_answer(key, format!("{reply:?}"));
                }
                observations.replies.push((run.clone(), reply));
            }
            Err(SubmitError::IdempotencyKeyUsed) => {
                let key = key.clone().expect("only a key can be answered before");
                stored_answer(sim, runtime, &key).await;
            }
            Err(SubmitError::Refused(refusal)) => {
                if let Some(key) = &key {
                    sim.observations
                        .lock()
                        .record_answer(key, refusal.to_string());
                }
            }
            Err(_) => {}
        }
    }
}

async fn read(sim: &Simulation, runtime: &Runtime, rng: &mut SmallRng) {
    let Some(run) = random_run(runtime, rng).await else {
        return;
    };
    if let Ok(Some(page)) = runtime.events(&run, None, usize::MAX).await {
        sim.observations.lock().record_log(&run, page.events);
    }
    if let Ok(Some(observed)) = runtime.observe(&tenant(), &run).await {
        sim.observations.lock().views.push(observed.view);
    }
}

/// Delivers a result again, perhaps much later, perhaps to a run that has advanced.
async fn repeat_delivery(sim: &Simulation, runtime: &Runtime, rng: &mut SmallRng) {
    let performed = sim.performer.performed();
    let Some(chosen) = performed.get(rng.random_range(0..performed.len().max(1))) else {
        return;
    };
    if let Some(outcome) = chosen.outcome.clone() {
        let command = Command::FinishEffect {
            effect: chosen.effect.clone(),
            outcome,
        };
        drop(
            runtime
                .submit(&tenant().into(), &chosen.run, command, None)
                .await,
        );
    }
}

/// Fires a timer that is not due.
async fn fire_timer_early(sim: &Simulation, runtime: &Runtime, rng: &mut SmallRng) {
    let Some(run) = random_run(runtime, rng).await else {
        return;
    };
    let key = match rng.random_range(0..4) {
        0 => TimerKey::RunDeadline,
        3 => TimerKey::InterruptDeadline {
            node: format!("n{}", rng.random_range(0..5)).into(),
        },
        1 => TimerKey::Trigger { id: "on-c".into() },
        _ => TimerKey::NodeWake {
            node: format!("n{}", rng.random_range(0..5)).into(),
            attempt: 0,
        },
    };
    let reply = runtime
        .submit(&tenant().into(), &run, Command::FireTimer(key), None)
        .await;
    if let Ok(reply @ (Reply::Paused { .. } | Reply::Resumed { .. })) = reply {
        let message = format!("unexpected reply to a timer: {reply:?}");
        sim.observations.lock().violations.push(message);
    }
}
