//! Copies the source's events into the fork. The fork's request replaces the source's, and ids that
//! the engine derived from the source's id are replaced by the fork's.
//!
//! Ids are mapped by field, according to its type. Data is copied unchanged, even where it contains
//! the source's id: what a person or a service wrote about the source is still about the source.
//! This includes artifact ids, which are passed on as data. Only interrupts about an artifact that
//! the engine named get the new name.

mod own_id;

use super::ForkSource;
use crate::definition::Definition;
use crate::ids::interrupt_id;
use crate::model::rekey_work;
use crate::run::calls::call_id;
use own_id::OwnId;
use serde_json::Value;
use std::collections::HashMap;
use tandem_record::{
    Cause, Event, ForkMode, InterruptId, NodeId, RecordedEvent, RunId, TenantId, Work,
};

pub(super) fn copy_with_own_ids(
    def: &Definition,
    fork: &RunId,
    source: &ForkSource<'_>,
) -> Vec<RecordedEvent> {
    let from = source.request.forked_from.as_ref();
    let from = &from.expect("a fork says where it comes from").run_id;
    let own = OwnId { source: from, fork };
    let mut names = InterruptIds {
        own,
        ids: HashMap::new(),
        keys: HashMap::new(),
        conversations: HashMap::new(),
        held_by: HashMap::new(),
    };
    let mut calls = ModelCallIds {
        tenant: &source.request.owner.tenant,
        fork,
        known: HashMap::new(),
    };
    let log = source.log.iter().cloned();
    log.map(|mut recorded| {
        if let Event::RunStarted { request, .. } = &mut recorded.event {
            let began_at = request
                .forked_from
                .as_ref()
                .and_then(|from| from.began_at());
            **request = source.request.clone();
            if let Some(from) = &mut request.forked_from
                && from.mode == ForkMode::Replay
            {
                from.source_began_at = began_at;
            }
            // The cause of the source's start is not the cause of the fork's.
            recorded.cause = None;
        }
        if let Some(Cause::External(event)) = &mut recorded.cause {
            own.map_event_id(event);
        }
        names.rename(&mut recorded.event);
        calls.rename(&mut recorded.event);
        own.map_request_body(def, &mut recorded.event);
        recorded
    })
    .collect()
}

/// Maps the source's interrupt ids and keys to the fork's. An interrupt of a child does not belong
/// to the run and keeps both.
struct InterruptIds<'a> {
    own: OwnId<'a>,
    ids: HashMap<InterruptId, InterruptId>,
    keys: HashMap<String, String>,
    /// The source's and the fork's name of the conversation of an interrupt, by the source's
    /// interrupt id.
    conversations: HashMap<InterruptId, (String, String)>,
    /// The same for the conversation a node held last.
    held_by: HashMap<NodeId, (String, String)>,
}

impl InterruptIds<'_> {
    fn rename(&mut self, event: &mut Event) {
        match event {
            Event::InterruptRequested { node, interrupt } => {
                let fork = self.own.fork;
                let round = interrupt.key.rsplit(':').next();
                let round = round.and_then(|text| text.parse().ok()).unwrap_or(0);
                let mut id = interrupt_id(fork, node, round);
                if self.ids.values().any(|taken| *taken == id) {
                    id = interrupt_id(fork, node, u32::MAX - round);
                }
                self.ids.insert(interrupt.id.clone(), id.clone());
                let source_id = std::mem::replace(&mut interrupt.id, id);
                let key = interrupt.key.clone();
                self.own.map_name(&mut interrupt.key);
                self.keys.insert(key, interrupt.key.clone());
                self.own.map_question(node, &mut interrupt.data);
                if let Some(Value::String(name)) = interrupt.data.get_mut("conversationId") {
                    let before = name.clone();
                    self.apply_key(name);
                    let names = (before, name.clone());
                    self.held_by.insert(node.clone(), names.clone());
                    self.conversations.insert(source_id, names);
                }
            }
            Event::NodeSuspended { interrupt, key, .. } => {
                self.apply(interrupt);
                self.apply_key(key);
            }
            Event::ApprovalRequested {
                node,
                interrupt,
                artifact_id,
                ..
            } => {
                self.apply(interrupt);
                self.own.map_artifact(node, artifact_id);
            }
            Event::ClarificationRequested { interrupt, .. }
            | Event::ApprovalQuestioned { interrupt, .. }
            | Event::InterruptEscalated { interrupt, .. }
            | Event::InterruptReminded { interrupt, .. }
            | Event::DecisionDenied { interrupt, .. } => self.apply(interrupt),
            Event::InterruptResolved { resolution, .. } => {
                self.apply_to_last_turn(&resolution.interrupt, &mut resolution.value);
                self.apply(&mut resolution.interrupt);
            }
            Event::NodeResumed {
                interrupt: Some(interrupt),
                value,
                ..
            } => {
                if let Some(value) = value {
                    self.apply_to_last_turn(interrupt, value);
                }
                self.apply(interrupt);
            }
            // The outputs of a conversation are its name, how it ended and its turns.
            Event::NodeCompleted { node, outputs, .. } => {
                let Some((before, now)) = self.held_by.remove(node) else {
                    return;
                };
                if let Some(Value::String(name)) = outputs.get_mut("conversationId") {
                    self.apply_key(name);
                }
                let turns = outputs.get_mut("turns").and_then(Value::as_array_mut);
                for turn in turns.into_iter().flatten() {
                    own_id::map_message(turn, &before, &now);
                }
            }
            Event::ConversationOpened {
                conversation, turn, ..
            }
            | Event::ConversationExchanged {
                conversation, turn, ..
            }
            | Event::ConversationClosed {
                conversation, turn, ..
            } => {
                let before = conversation.clone();
                self.apply_key(conversation);
                own_id::map_message(turn, &before, conversation);
            }
            _ => {}
        }
    }

    /// A conversation ends with the turn that closed it, which is named after the conversation.
    fn apply_to_last_turn(&self, interrupt: &InterruptId, answer: &mut Value) {
        if let Some((before, now)) = self.conversations.get(interrupt)
            && let Some(turn) = answer.get_mut("turn")
        {
            own_id::map_message(turn, before, now);
        }
    }

    fn apply(&self, id: &mut InterruptId) {
        if let Some(own) = self.ids.get(id) {
            *id = own.clone();
        }
    }

    fn apply_key(&self, key: &mut String) {
        if let Some(own) = self.keys.get(key) {
            key.clone_from(own);
        }
    }
}

/// Model call ids under the fork's id; each key is computed with the current formula.
struct ModelCallIds<'a> {
    tenant: &'a TenantId,
    fork: &'a RunId,
    /// By node: the execution, and the key of the current call.
    known: HashMap<NodeId, (u32, String)>,
}

impl ModelCallIds<'_> {
    fn rename(&mut self, event: &mut Event) {
        match event {
            Event::NodeStarted {
                node,
                execution,
                work: Some(work),
                ..
            } => self.rename_work(node, *execution, work),
            Event::ModelRetried(retry) => {
                let known = self.known.get(&retry.node);
                let execution = known.map_or(0, |(execution, _)| *execution);
                self.rename_work(&retry.node, execution, &mut retry.work);
            }
            Event::ModelAnswered(answered) => {
                if let Some((_, key)) = self.known.get(&answered.node) {
                    answered.key.clone_from(key);
                }
            }
            _ => {}
        }
    }

    fn rename_work(&mut self, node: &NodeId, execution: u32, work: &mut Work) {
        rekey_work(work);
        if let Work::Model {
            effect, key, round, ..
        } = work
        {
            *effect = call_id(self.tenant, self.fork, node, execution, *round);
            self.known.insert(node.clone(), (execution, key.clone()));
        }
    }
}
