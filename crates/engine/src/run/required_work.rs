//! The timers and node effects that a state requires. They are a function of the state alone: their
//! tables can be rebuilt from the log, and the changes of a decision are the difference between
//! before and after.

use crate::model::CALL_TIMEOUT_MS;
use crate::node::{DecisionSource, Kind};
use crate::run::lifecycle::Limits;
use crate::run::state::{Phase, Run};
use std::collections::BTreeMap;
use tandem_record::{Effect, EffectId, EffectKind, NodeStatus, TimerKey, Timestamp, Work};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerRequest {
    Set { key: TimerKey, due: Timestamp },
    Clear { key: TimerKey },
}

pub fn required_timers(run: &Run, limits: &Limits) -> BTreeMap<TimerKey, Timestamp> {
    let mut timers = BTreeMap::new();
    // Time does not pass while a run is paused.
    if run.state.phase != Phase::Running {
        return timers;
    }
    timers.insert(TimerKey::RunDeadline, run.duration_limit(limits).1);
    for (ix, node) in run.state.nodes.iter().enumerate() {
        let id = &run.def.nodes[ix].id;
        match node.status {
            NodeStatus::Running => {
                let wake = match (&node.work, node.retry_at) {
                    (_, Some(at)) => Some(at),
                    (Some(Work::Sleep { until, .. }), None) => Some(*until),
                    (
                        Some(Work::Model {
                            mock: Some(call), ..
                        }),
                        None,
                    ) => Some(call.due),
                    _ => None,
                };
                if let Some(due) = wake {
                    let key = TimerKey::NodeWake {
                        node: id.clone(),
                        attempt: node.attempt,
                    };
                    timers.insert(key, due);
                }
                if let Some(due) = node.deadline {
                    let key = TimerKey::NodeDeadline {
                        node: id.clone(),
                        attempt: node.attempt,
                    };
                    timers.insert(key, due);
                }
            }
            NodeStatus::Suspended => {
                if let Some(due) = node.suspended.as_ref().and_then(|open| open.due) {
                    let key = TimerKey::InterruptDeadline { node: id.clone() };
                    timers.insert(key, due);
                }
            }
            NodeStatus::Pending
            | NodeStatus::Completed
            | NodeStatus::Failed
            | NodeStatus::Skipped
            | NodeStatus::Cancelled => {}
        }
    }
    // A trigger delayed by a drain, or by nodes it fired before, waits for those nodes and not for
    // a time.
    let held_back = |id: &str| run.state.draining.is_some() || run.trigger_is_busy(id);
    for (trigger, due) in run.state.armed.iter().filter(|(id, _)| !held_back(id)) {
        timers.insert(
            TimerKey::Trigger {
                id: trigger.clone(),
            },
            *due,
        );
    }
    timers
}

/// Effects of running nodes, by id.
pub fn required_effects(run: &Run) -> BTreeMap<EffectId, Effect> {
    let mut effects = BTreeMap::new();
    if run.state.phase != Phase::Running {
        return effects;
    }
    for (ix, node) in run.state.nodes.iter().enumerate() {
        if node.status != NodeStatus::Running || node.retry_at.is_some() {
            continue;
        }
        let id = run.def.nodes[ix].id.clone();
        let (effect, kind) = match &node.work {
            Some(Work::Http {
                effect, request, ..
            }) => {
                let config = match &run.def.nodes[ix].kind {
                    Kind::Http(config) => config,
                    Kind::Supervisor(supervisor) => match &supervisor.source {
                        DecisionSource::Endpoint(config) => config,
                        _ => continue,
                    },
                    _ => match run.verifier_endpoint(ix) {
                        Some(config) => config,
                        None => continue,
                    },
                };
                let kind = EffectKind::Http {
                    node: id,
                    attempt: node.attempt,
                    request: config.complete(request),
                };
                (effect, kind)
            }
            Some(Work::Model { mock: Some(_), .. }) => continue,
            Some(Work::Model {
                effect, request, ..
            }) => (
                effect,
                EffectKind::Model {
                    node: id,
                    attempt: node.attempt,
                    request: request.clone(),
                    timeout_ms: CALL_TIMEOUT_MS,
                },
            ),
            Some(Work::Tool {
                effect, request, ..
            }) => (
                effect,
                EffectKind::Tool {
                    node: id,
                    attempt: node.attempt,
                    request: request.clone(),
                },
            ),
            Some(Work::Pack { effect, inputs, .. }) => (effect, run.pack_effect(ix, inputs)),
            Some(Work::SecretEcho {
                effect,
                secret_id,
                reveal,
            }) => (
                effect,
                EffectKind::SecretEcho {
                    node: id,
                    attempt: node.attempt,
                    secret_id: secret_id.clone(),
                    reveal: *reveal,
                },
            ),
            Some(Work::Sleep { .. } | Work::Child { .. }) | None => continue,
        };
        effects.insert(
            effect.clone(),
            Effect {
                id: effect.clone(),
                run_id: run.state.run_id.clone(),
                kind,
            },
        );
    }
    effects
}
