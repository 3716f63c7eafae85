//! Decisions without secrets: what is stored, and the run as it is folded from the stored events.

use crate::codec::EncodedEvent;
use crate::runtime::Runtime;
use serde_json::Value;
use std::sync::Arc;
use tandem_engine::model::rekey;
use tandem_engine::run::{self, Decision, Refusal, Run};
use tandem_record::{EffectKind, Event, NodeId, Reply};
use tandem_store::NewEvent;

impl Runtime {
    /// Events as they will be stored. If a secret was redacted, the run is folded again from the
    /// redacted events: memory and log never disagree.
    pub(crate) fn redacted_bodies(
        &self,
        before: Option<&Run>,
        decision: &mut Decision,
    ) -> Vec<NewEvent> {
        let redactor = &self.inner.config.redactor;
        let mut changed = false;
        let mut texts = redactor.texts();
        let mut bodies = Vec::with_capacity(decision.events.len());
        for recorded in &mut decision.events {
            let mut body = texts.serialize(&EncodedEvent::new(recorded));
            if redactor.needs_redaction(&body, &texts) && redactor.redact(recorded.user_data()) {
                rekey(&mut recorded.event);
                body = texts.serialize(&EncodedEvent::new(recorded));
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
                    decision.after.id().clone(),
                    Arc::clone(decision.after.definition()),
                )
            };
            let mut run = before.cloned().unwrap_or_else(fresh);
            for recorded in &decision.events {
                run.evolve(recorded);
            }
            decision.after = run;
            self.redact_effects(decision);
        }
        bodies
    }

    /// Whether a text is stored unchanged. A text with a secret is not.
    pub fn is_free_of_secrets(&self, text: &str) -> bool {
        self.inner.config.redactor.redact_text(text).is_none()
    }

    /// Whether a text holds a secret that was configured, in one of its forms. What only looks like a
    /// credential does not count.
    pub fn holds_known_secret(&self, text: &str) -> bool {
        self.inner.config.redactor.holds_known_secret(text)
    }

    /// The text without the secrets that were configured.
    pub fn mask_known_secrets(&self, text: String) -> String {
        let masked = self.inner.config.redactor.mask_known_secrets(&text);
        masked.unwrap_or(text)
    }

    /// Takes secrets out of what will be told in pieces, each an event of its own: none of them would
    /// show the whole.
    pub fn redact_value(&self, value: &mut Value) {
        self.inner.config.redactor.redact_value(value);
    }

    /// A JSON document, given as text, without secrets. A text that is not JSON is redacted as
    /// text.
    pub fn redacted_json(&self, json: String) -> String {
        let redactor = &self.inner.config.redactor;
        match serde_json::from_str::<Value>(&json) {
            Ok(mut value) => match redactor.redact_value(&mut value) {
                true => value.to_string(),
                false => json,
            },
            Err(_) => redactor.redact_text(&json).unwrap_or(json),
        }
    }

    /// An event as it is stored.
    pub(crate) fn redacted_event(&self, event: &Event) -> Event {
        let redactor = &self.inner.config.redactor;
        let mut event = event.clone();
        let mut texts = redactor.texts();
        let json = texts.serialize(&event);
        if redactor.needs_redaction(&json, &texts) && redactor.redact(event.user_data()) {
            rekey(&mut event);
        }
        event
    }

    /// A reply without secrets: the same for the first caller and for a repeated request that gets
    /// the stored response.
    pub(crate) fn redacted_reply(&self, mut reply: Reply) -> Reply {
        if let Reply::Resolved { votes, .. } = &mut reply {
            let redactor = &self.inner.config.redactor;
            for vote in votes {
                redactor.redact(vote.user_data());
            }
        }
        reply
    }

    /// A refusal without secrets. Its messages may quote the request.
    pub(crate) fn redacted_refusal(&self, mut refusal: Refusal) -> Refusal {
        let redactor = &self.inner.config.redactor;
        match &mut refusal {
            Refusal::Invalid(problems) => {
                for problem in problems {
                    for text in [&mut problem.path, &mut problem.message] {
                        if let Some(clean) = redactor.redact_text(text) {
                            *text = clean;
                        }
                    }
                }
            }
            // The caller named the node.
            Refusal::InterruptNotFound { node } => {
                if let Some(clean) = redactor.redact_text(node.as_str()) {
                    *node = NodeId::from(clean);
                }
            }
            Refusal::CapabilityRequired { .. }
            | Refusal::TypeRefused { .. }
            | Refusal::NotPausable { .. }
            | Refusal::NotPaused { .. }
            | Refusal::AlreadyResolved(_)
            | Refusal::InterruptGone
            | Refusal::RunEnded { .. }
            | Refusal::TooManyEvents { .. }
            | Refusal::CorrelationMismatch { .. } => {}
        }
        refusal
    }

    /// Effects follow from the redacted run, as they would after a restart. A call keeps the
    /// headers of the document: they come from the definition, not from the run.
    fn redact_effects(&self, decision: &mut Decision) {
        let of_nodes = run::required_effects(&decision.after);
        for effect in &mut decision.effects {
            if let Some(required) = of_nodes.get(&effect.id) {
                *effect = required.clone();
            }
            match &mut effect.kind {
                EffectKind::NotifyParent { outcome, .. } => {
                    self.inner.config.redactor.redact(outcome.user_data());
                }
                EffectKind::NotifySession { result, .. } => {
                    let redactor = &self.inner.config.redactor;
                    for value in result.output.iter_mut().chain(&mut result.error) {
                        redactor.redact_value(value);
                    }
                }
                EffectKind::Http { .. }
                | EffectKind::Model { .. }
                | EffectKind::Tool { .. }
                | EffectKind::Pack { .. }
                | EffectKind::SecretEcho { .. }
                | EffectKind::CancelChild { .. }
                | EffectKind::NotifyCallback { .. }
                | EffectKind::Continue => {}
            }
        }
    }
}
