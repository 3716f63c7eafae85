//! Channel-write triggers: nodes fired inside the run when a channel is written.
//!
//! A trigger fires after its writer has finished. While the nodes it fires are still running, or
//! inside its debounce window, it is armed: recorded in the log, and fired later.

use super::start::NodeEntry;
use crate::run::draft::DecisionDraft;
use crate::run::state::Run;
use tandem_record::{Event, NodeStatus, Timestamp};

impl Run {
    /// Whether nodes that the trigger fired are still running.
    pub(crate) fn trigger_is_busy(&self, id: &str) -> bool {
        let trigger = self.def.triggers.iter().find(|t| t.id == id);
        trigger.is_some_and(|trigger| {
            trigger.lineage.iter().any(|ix| {
                let node = self.node(*ix);
                let open = matches!(node.status, NodeStatus::Running | NodeStatus::Suspended);
                open || node.cut_off
            })
        })
    }

    fn times_fired(&self, id: &str) -> u32 {
        self.state.scheduling.fired.get(id).copied().unwrap_or(0)
    }
}

impl DecisionDraft<'_> {
    /// `writer` wrote a channel: notes or arms the triggers that listen to it.
    pub(in crate::run) fn note_write(&mut self, channel: &str, writer: usize) {
        let def = self.definition();
        for trigger in &def.triggers {
            // Writes of the nodes that a trigger started, and of nodes after them, do not fire it
            // again.
            if trigger.channel != channel || trigger.lineage.contains(&writer) {
                continue;
            }
            if self.run.times_fired(&trigger.id) > self.run.loopback_limit() {
                continue;
            }
            if trigger.debounce_ms > 0 {
                self.arm(&trigger.id, self.now.plus_ms(trigger.debounce_ms));
            } else {
                self.scheduling
                    .triggers_to_fire
                    .push_back(trigger.id.clone());
            }
        }
    }

    /// A pause delays the triggers of written channels: they fire after the resume.
    pub(in crate::run) fn arm_written(&mut self) {
        while let Some(id) = self.scheduling.triggers_to_fire.pop_front() {
            self.arm(&id, self.now);
        }
    }

    fn arm(&mut self, id: &str, due: Timestamp) {
        if !self.run.state.scheduling.armed.contains_key(id) {
            let trigger = id.to_owned();
            self.emit(Event::TriggerArmed { trigger, due }, self.run.head());
        }
    }

    /// Fires one trigger that may fire now. `false` when there is none.
    pub(in crate::run) fn fire_next_trigger(&mut self) -> bool {
        while let Some(id) = self.scheduling.triggers_to_fire.pop_front() {
            if self.run.trigger_is_busy(&id) {
                self.arm(&id, self.now);
            } else {
                self.fire_trigger(&id);
                return true;
            }
        }
        let mut armed = self.run.state.scheduling.armed.iter();
        let due = armed.find(|(id, due)| **due <= self.now && !self.run.trigger_is_busy(id));
        let Some(id) = due.map(|(id, _)| id.clone()) else {
            return false;
        };
        self.fire_trigger(&id);
        true
    }

    fn fire_trigger(&mut self, id: &str) {
        let def = self.definition();
        let Some(trigger) = def.triggers.iter().find(|t| t.id == id) else {
            return;
        };
        let fired = self.run.times_fired(id);
        let limit = self.run.loopback_limit();
        if fired >= limit {
            // Recorded once; later writes are ignored.
            if fired == limit {
                let node = def.nodes[trigger.node].id.clone();
                let event = Event::LoopbackLimitReached {
                    node,
                    iterations: fired + 1,
                    limit,
                };
                self.emit(event, self.run.head());
            }
            return;
        }
        if !self.within_execution_limit(trigger.node) {
            return;
        }
        let followers = trigger.lineage.iter().copied();
        let entry = NodeEntry {
            resets: followers.filter(|ix| *ix != trigger.node).collect(),
            trigger: Some(id.to_owned()),
            ..NodeEntry::default()
        };
        self.start_node(trigger.node, entry);
    }
}
