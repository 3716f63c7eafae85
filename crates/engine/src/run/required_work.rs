//! The timers and node effects that a state requires. They are a function of the state alone: their
//! tables can be rebuilt from the log, and the changes of a decision are the difference between
//! before and after.

use crate::machine::{TimerRequest, timer_changes};
use crate::model::CALL_TIMEOUT_MS;
use crate::node::{DecisionSource, Kind};
use crate::run::lifecycle::{Limits, Phase};
use crate::run::questions::{NoticeRule, required_announcements, required_notices};
use crate::run::state::Run;
use std::collections::BTreeMap;
use tandem_record::{Effect, EffectId, EffectKind, NodeStatus, TimerKey, Timestamp, Work};

pub fn required_timers(run: &Run, limits: &Limits) -> BTreeMap<TimerKey, Timestamp> {
    let mut timers = BTreeMap::new();
    // Time does not pass while a run is paused.
    if run.phase() != Phase::Running {
        return timers;
    }
    timers.insert(TimerKey::RunDeadline, run.duration_limit(limits).1);
    for (ix, node) in run.nodes().iter().enumerate() {
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
                if let Some(due) = run.open_interrupt(ix).and_then(|open| open.due) {
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
    let held_back = |id: &str| run.is_draining() || run.trigger_is_busy(id);
    for (trigger, due) in run.armed_triggers().iter().filter(|(id, _)| !held_back(id)) {
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
    if run.phase() != Phase::Running {
        return effects;
    }
    for (ix, node) in run.nodes().iter().enumerate() {
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
            Some(Work::Sleep { .. } | Work::Child { .. } | Work::Flow { .. }) | None => continue,
        };
        effects.insert(
            effect.clone(),
            Effect {
                id: effect.clone(),
                kind,
            },
        );
    }
    effects
}

/// Everything a state requires.
pub(super) struct RequiredWork {
    timers: BTreeMap<TimerKey, Timestamp>,
    effects: BTreeMap<EffectId, Effect>,
    announcements: Vec<Effect>,
    notices: BTreeMap<EffectId, Effect>,
}

/// How the required work changes from one state to a later one.
pub(super) struct RequiredWorkChange {
    pub(super) timers: Vec<TimerRequest<TimerKey>>,
    /// New or changed effects of nodes.
    pub(super) effects: Vec<Effect>,
    /// New announcements and notices.
    pub(super) announcements: Vec<Effect>,
    /// Effects, announcements and notices that are no longer required.
    pub(super) dropped: Vec<EffectId>,
}

impl RequiredWork {
    pub(super) fn of(run: &Run, limits: &Limits, notices: &[NoticeRule]) -> Self {
        Self {
            timers: required_timers(run, limits),
            effects: required_effects(run),
            announcements: required_announcements(run),
            notices: required_notices(run, notices),
        }
    }

    pub(super) fn change_to(&self, after: Self) -> RequiredWorkChange {
        let untold = self.notices.keys();
        let untold = untold.filter(|id| !after.notices.contains_key(*id));
        let answered = self.announcements.iter();
        let answered = answered.filter(|effect| !after.announcements.contains(effect));
        let gone = self.effects.keys();
        let dropped = gone
            .filter(|id| !after.effects.contains_key(*id))
            .chain(answered.map(|effect| &effect.id))
            .chain(untold)
            .cloned()
            .collect();
        let timers = timer_changes(&self.timers, &after.timers);
        let effects = after.effects.into_iter();
        let effects = effects.filter(|(id, effect)| self.effects.get(id) != Some(effect));
        let announcements = after.announcements.into_iter();
        let notices = after.notices.into_iter();
        let notices = notices.filter(|(id, _)| !self.notices.contains_key(id));
        RequiredWorkChange {
            timers,
            effects: effects.map(|(_, effect)| effect).collect(),
            announcements: announcements
                .filter(|effect| !self.announcements.contains(effect))
                .chain(notices.map(|(_, effect)| effect))
                .collect(),
            dropped,
        }
    }
}
