//! Decisions without secrets: what is stored, and the run as it is folded from the stored events.

use crate::codec::EncodedEvent;
use crate::redact::Redactor;
use crate::runtime::Runtime;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use tandem_engine::model::rekey;
use tandem_engine::run::{self, Decision, Refusal, Run};
use tandem_record::{
    AgentEventKind, ChunkPiece, EffectKind, Event, NodeId, Recorded, RecordedEvent, Reply,
};
use tandem_store::NewEvent;

/// Redacts text that a node streams: each piece is an event of its own, and none shows the whole.
fn redact_streamed(redactor: &Redactor, events: &mut [RecordedEvent]) -> bool {
    let mut streams: Vec<(NodeId, bool, Vec<&mut String>)> = Vec::new();
    for recorded in events {
        let node = recorded.event.node().cloned();
        let (reasoning, piece) = match &mut recorded.event {
            Event::OutputChunk(chunk) => match &mut chunk.piece {
                ChunkPiece::Text(text) => (false, text),
                ChunkPiece::ToolCall { .. } => continue,
            },
            Event::Agent(event) => match &mut event.kind {
                AgentEventKind::ReasoningDelta { delta, .. } => (true, delta),
                _ => continue,
            },
            _ => continue,
        };
        let Some(node) = node else { continue };
        let is_its =
            |stream: &&mut (NodeId, bool, Vec<_>)| stream.0 == node && stream.1 == reasoning;
        match streams.iter_mut().find(is_its) {
            Some((.., pieces)) => pieces.push(piece),
            None => streams.push((node, reasoning, vec![piece])),
        }
    }
    let redacted = streams
        .iter_mut()
        .map(|(.., pieces)| redactor.redact_pieces(pieces));
    redacted.fold(false, |any, redacted| any | redacted)
}

fn redact_lists_of_texts(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let texts = items.iter_mut().filter_map(|item| match item {
                Value::String(text) => Some(text),
                _ => None,
            });
            redactor.redact_pieces(&mut texts.collect::<Vec<_>>());
        }
        Value::Array(items) => {
            for item in items {
                redact_lists_of_texts(redactor, item);
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                redact_lists_of_texts(redactor, member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Encodes events without the secrets that `redact` removes from one, and says whether there were any. Only an
/// event that may hold a secret is looked at closely.
pub(crate) fn encode_redacted<E: Serialize>(
    redactor: &Redactor,
    events: &mut [Recorded<E>],
    mut redact: impl FnMut(&mut Recorded<E>) -> bool,
) -> (Vec<NewEvent>, bool) {
    let mut has_secrets = false;
    let mut texts = redactor.texts();
    let mut bodies = Vec::with_capacity(events.len());
    for recorded in events {
        let mut body = texts.serialize(&EncodedEvent::new(recorded));
        if redactor.needs_redaction(&body, &texts) && redact(recorded) {
            body = texts.serialize(&EncodedEvent::new(recorded));
            has_secrets = true;
        }
        let at = recorded.at;
        bodies.push(NewEvent { at, body });
    }
    (bodies, has_secrets)
}

impl Runtime {
    /// Events as they will be stored. If a secret was redacted, the run is folded again from the
    /// redacted events: memory and log never disagree.
    pub(crate) fn redacted_bodies(
        &self,
        before: Option<&Run>,
        decision: &mut Decision,
    ) -> Vec<NewEvent> {
        let redactor = &self.inner.config.redactor;
        let is_cut = redact_streamed(redactor, &mut decision.events);
        let (bodies, has_secrets) = encode_redacted(redactor, &mut decision.events, |recorded| {
            let changed = redactor.redact(recorded.user_data());
            if changed {
                rekey(&mut recorded.event);
            }
            changed
        });
        if is_cut || has_secrets {
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

    /// The text without secrets.
    pub fn redacted_text(&self, text: String) -> String {
        let redacted = self.inner.config.redactor.redact_text(&text);
        redacted.unwrap_or(text)
    }

    /// Takes secrets out of what will be told in pieces, each an event of its own: none of them would
    /// show the whole.
    pub fn redact_value(&self, value: &mut Value) {
        let redactor = &self.inner.config.redactor;
        redactor.redact_value(value);
        redact_lists_of_texts(redactor, value);
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
            | Refusal::NotAnswerable { .. }
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
                EffectKind::AskSession { question, .. } => {
                    self.inner.config.redactor.redact_value(&mut question.data);
                }
                EffectKind::StartFlow { call, .. } | EffectKind::CancelFlow { call, .. } => {
                    let redactor = &self.inner.config.redactor;
                    if let Some(input) = &mut call.input {
                        redactor.redact_value(input);
                    }
                }
                EffectKind::CloseSessionQuestion { .. }
                | EffectKind::Http { .. }
                | EffectKind::Model { .. }
                | EffectKind::Tool { .. }
                | EffectKind::Pack { .. }
                | EffectKind::SecretEcho { .. }
                | EffectKind::CancelChild { .. }
                | EffectKind::NotifyCallback { .. }
                | EffectKind::NotifyPeople { .. }
                | EffectKind::Continue => {}
            }
        }
    }
}
