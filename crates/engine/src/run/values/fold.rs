//! Applies events to variables, channels and artifacts.

use super::state::{Artifact, ChannelState, Values};
use crate::definition::Definition;
use crate::graph::channel;
use serde_json::Value;
use std::collections::btree_map::Entry;
use tandem_record::{NodeId, Object, RunRequest, Timestamp};

/// One write to a channel, as its event records it.
pub(in crate::run) struct ChannelWritten<'e> {
    pub(in crate::run) channel: &'e str,
    pub(in crate::run) value: &'e Value,
    pub(in crate::run) reducer: &'e str,
    pub(in crate::run) ttl_ms: Option<u64>,
    pub(in crate::run) max_size: Option<usize>,
    pub(in crate::run) mirrored: bool,
    pub(in crate::run) untrusted: bool,
    pub(in crate::run) at: Timestamp,
}

impl Values {
    pub(in crate::run) fn start(&mut self, variables: &Object, request: &RunRequest) {
        self.variables = variables.clone();
        self.untrusted = request.untrusted_inputs.iter().cloned().collect();
    }

    pub(crate) fn set_variable(&mut self, name: &str, next: Option<&Value>, untrusted: bool) {
        self.mark(name, untrusted);
        match next {
            Some(value) => self.variables.insert(name.to_owned(), value.clone()),
            None => self.variables.remove(name),
        };
    }

    pub(crate) fn write_channel(&mut self, def: &Definition, write: &ChannelWritten<'_>) {
        let (current, slot) = self.take_channel(def, write.channel);
        slot.value = channel::fold(
            current,
            write.value,
            write.reducer,
            write.ttl_ms,
            write.max_size,
            write.at,
        );
        slot.mirrored |= write.mirrored;
        self.mark(write.channel, write.untrusted);
    }

    /// A channel and what it holds, taken out of it: a channel that grows is not copied for each write.
    fn take_channel(&mut self, def: &Definition, name: &str) -> (Option<Value>, &mut ChannelState) {
        match self.channels.entry(name.to_owned()) {
            Entry::Occupied(slot) => {
                let slot = slot.into_mut();
                (Some(std::mem::take(&mut slot.value)), slot)
            }
            Entry::Vacant(slot) => {
                let declared = def.channels.get(name);
                let default = declared.and_then(|c| c.declared.default.clone());
                let empty = ChannelState {
                    value: Value::Null,
                    mirrored: false,
                };
                (default, slot.insert(empty))
            }
        }
    }

    pub(in crate::run) fn add_artifact(
        &mut self,
        (id, kind): (&str, &str),
        node: &NodeId,
        content: &Value,
        at: Timestamp,
    ) {
        self.artifacts.push(Artifact {
            id: id.to_owned(),
            kind: kind.to_owned(),
            node: node.clone(),
            created_at: at,
            content: content.clone(),
        });
    }

    /// A variable got a new value, or a channel one more.
    fn mark(&mut self, name: &str, untrusted: bool) {
        if untrusted {
            self.untrusted.insert(name.to_owned());
        } else if !self.channels.contains_key(name) {
            self.untrusted.remove(name);
        }
    }
}
