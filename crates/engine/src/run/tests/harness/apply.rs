//! Applies a decision to the store's side of a harness, and checks the machine's invariants.

use super::super::lines;
use super::RunHarness;
use crate::machine::TimerRequest;
use crate::run::{
    Decision, NewChildRun, Run, State, create_child_run, required_announcements, required_effects,
    required_timers,
};
use std::sync::Arc;
use tandem_record::{Effect, EffectKind, RecordedEvent, TimerKey};

impl RunHarness {
    pub(super) fn take(&mut self, decision: Decision) {
        let mut refolded = self
            .run
            .clone()
            .unwrap_or_else(|| Run::new(decision.after.id().clone(), Arc::clone(&self.def)));
        for recorded in &decision.events {
            assert_eq!(recorded.seq.0, self.log.len() as u64, "a gap in the log");
            if let Some(last) = self.log.last() {
                assert!(recorded.at >= last.at, "the log runs backwards");
                assert!(!last.event.is_terminal(), "an event after the end");
            }
            let json = serde_json::to_string(recorded).expect("events are plain data");
            let read: RecordedEvent = serde_json::from_str(&json).expect("events read back");
            assert_eq!(&read, recorded);
            refolded.evolve(&read);
            self.unread.push(lines::event(recorded));
            self.log.push(read);
        }
        assert_eq!(
            refolded.state, decision.after.state,
            "the fold and the decision disagree"
        );
        let json = serde_json::to_string(&*refolded.state).expect("state is plain data");
        let read: State = serde_json::from_str(&json).expect("state reads back");
        assert_eq!(read, *refolded.state);

        for request in decision.timers {
            match request {
                TimerRequest::Set { key, due } => self.timers.insert(key, due),
                TimerRequest::Clear { key } => self.timers.remove(&key),
            };
        }
        for effect in &decision.dropped {
            self.outbox.remove(effect);
        }
        for effect in decision.effects {
            self.unread.push(lines::effect(&effect));
            self.outbox.insert(effect.id.clone(), effect);
        }
        for new_child in decision.children {
            self.unread.push(lines::new_child(&new_child));
            self.check_created_child(new_child.clone());
            self.created_children
                .insert(new_child.child.clone(), new_child);
        }
        assert_eq!(self.timers, required_timers(&refolded, &self.limits));
        let of_nodes = |effect: &&Effect| {
            matches!(
                effect.kind,
                EffectKind::Http { .. }
                    | EffectKind::Model { .. }
                    | EffectKind::Tool { .. }
                    | EffectKind::Pack { .. }
                    | EffectKind::SecretEcho { .. }
            )
        };
        let under_way: Vec<&Effect> = self.outbox.values().filter(of_nodes).collect();
        assert_eq!(
            under_way,
            required_effects(&refolded).values().collect::<Vec<_>>()
        );
        let open = required_announcements(&refolded);
        let of_questions =
            |effect: &&Effect| matches!(effect.kind, EffectKind::NotifyCallback { .. });
        let mut announced = self.outbox.values().filter(of_questions);
        assert!(
            announced.all(|effect| open.contains(effect)),
            "it is closed"
        );
        self.run = Some(refolded);
    }

    /// A new child has one event and a continue effect, or has ended if its parent cancelled it.
    fn check_created_child(&self, new_child: NewChildRun) {
        let cancelled_at_creation = new_child.cancelled_at_creation;
        let child = create_child_run(new_child, &self.context());
        assert_eq!(child.after.status().is_terminal(), cancelled_at_creation);
        let goes_on = child.effects.iter().any(|e| e.kind == EffectKind::Continue);
        assert_eq!(goes_on, !cancelled_at_creation);
        assert_eq!(
            child.events.len(),
            if cancelled_at_creation { 2 } else { 1 }
        );
    }

    /// A due timer that the state requires must do something, or it would fire forever.
    pub(super) fn check_fired(&self, key: &TimerKey, decision: &Decision) {
        let due = self.timers.get(key).filter(|due| **due <= self.now);
        if due.is_some() {
            let after = required_timers(&decision.after, &self.limits);
            assert_ne!(after.get(key), due, "{key:?} is due and fired in vain");
        }
    }
}
