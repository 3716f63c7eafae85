//! A scripted performer of outgoing calls with injected faults. Records every call.

use crate::failing::CommittedEffects;
use async_trait::async_trait;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    CapKind, Effect, EffectId, EffectKind, EffectOutcome, ErrorInfo, ModelRequest, Object,
    PackAnswer, PackLogLine, PackResult, RunId, TraceContext,
};
use tandem_runtime::Perform;

/// How calls fail.
#[derive(Clone, Copy, Debug)]
pub struct CallFaults {
    /// How many of a hundred calls fail retryably, and how many permanently.
    pub retryable_percent: u32,
    pub permanent_percent: u32,
    /// Longest duration of a call.
    pub max_latency_ms: u64,
}

/// One outgoing call.
#[derive(Clone, Debug)]
pub struct PerformedCall {
    /// The incarnation of the process that made it.
    pub incarnation: u32,
    pub run: RunId,
    pub effect: EffectId,
    pub attempt: u32,
    /// Whether the effect was in the outbox when the call began.
    pub recorded: bool,
    /// `None` when the call was aborted.
    pub outcome: Option<EffectOutcome>,
}

pub struct ScriptedPerformer {
    rng: Mutex<SmallRng>,
    call_faults: CallFaults,
    committed: Arc<CommittedEffects>,
    performed: Mutex<Vec<PerformedCall>>,
    incarnation: Mutex<u32>,
}

impl ScriptedPerformer {
    pub fn new(seed: u64, call_faults: CallFaults, committed: Arc<CommittedEffects>) -> Self {
        Self {
            rng: Mutex::new(SmallRng::seed_from_u64(seed)),
            call_faults,
            committed,
            performed: Mutex::default(),
            incarnation: Mutex::default(),
        }
    }

    /// A new process makes the calls from now on.
    pub fn begin_incarnation(&self) {
        *self.incarnation.lock() += 1;
    }

    pub fn performed(&self) -> Vec<PerformedCall> {
        self.performed.lock().clone()
    }

    fn roll(&self, kind: &EffectKind) -> (u64, EffectOutcome) {
        let mut rng = self.rng.lock();
        let ms = rng.random_range(0..=self.call_faults.max_latency_ms);
        let roll = rng.random_range(0..100);
        let failed = |error| EffectOutcome::Failed { error };
        let outcome = if roll < self.call_faults.retryable_percent {
            failed(ErrorInfo::new("external_call_failed", "for now").retryable())
        } else if roll < self.call_faults.retryable_percent + self.call_faults.permanent_percent {
            failed(ErrorInfo::new("external_call_failed", "for good"))
        } else if let EffectKind::Model { request, .. } = kind {
            answered(request)
        } else if let EffectKind::Tool { .. } = kind {
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            EffectOutcome::Done {
                outputs: Object::from_iter([("result".to_owned(), result)]),
            }
        } else if let EffectKind::Pack { .. } = kind {
            acted(roll)
        } else {
            // Contains a verdict, for callers that need one.
            let verdict = ["pass", "pass", "pass", "revise", "fail"][roll as usize % 5];
            EffectOutcome::Done {
                outputs: Object::from_iter([
                    ("status".to_owned(), 200.into()),
                    ("verdict".to_owned(), verdict.into()),
                ]),
            }
        };
        (ms, outcome)
    }
}

/// A pack's node that sometimes exceeds a limit.
fn acted(roll: u32) -> EffectOutcome {
    let result = if roll.is_multiple_of(8) {
        PackResult::Breached {
            kind: CapKind::WasmFuel,
            limit: 1,
            observed: 2,
            error: ErrorInfo::new("sandbox_fuel_exceeded", "too much"),
        }
    } else {
        PackResult::Completed {
            outputs: Object::new(),
        }
    };
    let line = PackLogLine {
        level: "info".to_owned(),
        message: "acting".to_owned(),
    };
    let log_lines = vec![line];
    EffectOutcome::Pack(Box::new(PackAnswer { result, log_lines }))
}

/// A model that agrees to everything.
fn answered(request: &ModelRequest) -> EffectOutcome {
    let text = match request.schema {
        Some(_) => "{\"ok\":true}",
        None => "Fine.",
    };
    let answer = json!({
        "text": text, "stop": "end", "usage": {"input_tokens": 2, "output_tokens": 1},
    });
    match answer {
        Value::Object(outputs) => EffectOutcome::Done { outputs },
        _ => unreachable!("it is written as an object"),
    }
}

#[async_trait]
impl Perform for ScriptedPerformer {
    async fn perform(
        &self,
        run: &RunId,
        effect: &Effect,
        _: Option<&TraceContext>,
    ) -> EffectOutcome {
        let attempt = match &effect.kind {
            EffectKind::Http { attempt, .. }
            | EffectKind::Model { attempt, .. }
            | EffectKind::Tool { attempt, .. }
            | EffectKind::Pack { attempt, .. }
            | EffectKind::SecretEcho { attempt, .. } => *attempt,
            other => panic!("{} is not an outgoing call", other.name()),
        };
        let place = {
            let mut performed = self.performed.lock();
            performed.push(PerformedCall {
                incarnation: *self.incarnation.lock(),
                run: run.clone(),
                effect: effect.id.clone(),
                attempt,
                recorded: self.committed.recorded(&effect.id),
                outcome: None,
            });
            performed.len() - 1
        };
        let (ms, outcome) = self.roll(&effect.kind);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        self.performed.lock()[place].outcome = Some(outcome.clone());
        outcome
    }
}
