//! Decisions without secrets: what goes into the store, and the run as the store will tell it.

use crate::codec;
use crate::runtime::Runtime;
use serde_json::Value;
use std::sync::Arc;
use tandem_engine::model::rekey;
use tandem_engine::run::{self, Decision, Run};
use tandem_record::{ChildOutcome, EffectKind, Event, Object, Seq, Timestamp};
use tandem_store::{NewEvent, StoredEvent};

impl Runtime {
    /// Events as they will be stored. When a secret had to be taken out, the run is folded again
    /// from the clean events: memory and log never disagree.
    pub(crate) fn scrubbed_bodies(
        &self,
        before: Option<&Run>,
        decision: &mut Decision,
    ) -> Vec<NewEvent> {
        let redactor = &self.inner.config.redactor;
        let mut changed = false;
        let mut bodies = Vec::with_capacity(decision.events.len());
        for recorded in &mut decision.events {
            let mut body = codec::encode(&recorded.cause, &recorded.event);
            if let Some(clean) = redactor.scrub_event(&body) {
                let stored = StoredEvent {
                    seq: recorded.seq,
                    at: recorded.at,
                    body: clean,
                };
                *recorded = codec::decode(&stored)
                    .expect("replacing text inside JSON strings keeps an event readable");
                rekey(&mut recorded.event);
                body = codec::encode(&recorded.cause, &recorded.event);
                changed = true;
            }
            bodies.push(NewEvent {
                at: recorded.at,
                body,
            });
        }
        if changed {
            let fresh = || {
                Run::new(
                    decision.run.id().clone(),
                    Arc::clone(decision.run.definition()),
                )
            };
            let mut run = before.cloned().unwrap_or_else(fresh);
            for recorded in &decision.events {
                run.evolve(recorded);
            }
            decision.run = run;
            self.scrub_effects(decision);
        }
        bodies
    }

    /// Whether a text is kept as it is; what holds a secret is not.
    pub fn keeps(&self, text: &str) -> bool {
        let mut value = Value::from(text);
        self.inner.config.redactor.clean(&mut value);
        value == text
    }

    /// Takes secrets out of what will be told in pieces, each an event of its own: none of them would
    /// show the whole.
    pub fn clean(&self, value: &mut Value) {
        self.inner.config.redactor.clean(value);
    }

    /// An event as it is kept.
    pub(crate) fn cleaned(&self, event: &Event) -> Event {
        let body = codec::encode(&None, event);
        let Some(clean) = self.inner.config.redactor.scrub_event(&body) else {
            return event.clone();
        };
        let stored = StoredEvent {
            seq: Seq(0),
            at: Timestamp::default(),
            body: clean,
        };
        let mut clean = codec::decode(&stored)
            .expect("replacing text inside JSON strings keeps an event readable")
            .event;
        rekey(&mut clean);
        clean
    }

    /// Effects follow from the clean run, as they would after a restart. A call keeps the headers
    /// its author wrote: they come from the definition, not from the run.
    fn scrub_effects(&self, decision: &mut Decision) {
        let of_nodes = run::wanted_effects(&decision.run);
        let clean = |object: &mut Object| {
            let mut value = Value::Object(std::mem::take(object));
            self.inner.config.redactor.clean(&mut value);
            if let Value::Object(clean) = value {
                *object = clean;
            }
        };
        for effect in &mut decision.effects {
            if let Some(wanted) = of_nodes.get(&effect.id) {
                *effect = wanted.clone();
            }
            match &mut effect.kind {
                EffectKind::NotifyParent {
                    outcome:
                        ChildOutcome::Ended {
                            variables, error, ..
                        },
                    ..
                } => {
                    clean(variables);
                    *error = decision.run.error().cloned();
                }
                EffectKind::Http { .. }
                | EffectKind::Model { .. }
                | EffectKind::Tool { .. }
                | EffectKind::Pack { .. }
                | EffectKind::SecretEcho { .. }
                | EffectKind::NotifyParent { .. }
                | EffectKind::CancelChild { .. }
                | EffectKind::Announce { .. }
                | EffectKind::Continue => {}
            }
        }
    }
}
