//! A memory node: reads, writes, lists or deletes.

use super::write::NewMemoryEntry;
use crate::node::{MemoryAction, MemoryConfig, MemorySource};
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::NodeOutcome;
use serde_json::{Value, json};
use tandem_record::{ErrorInfo, Event, MemoryEntry, Object, Seq};

impl DecisionDraft<'_> {
    pub(in crate::run) fn perform_memory_node(
        &mut self,
        ix: usize,
        config: &MemoryConfig,
        started: Seq,
    ) -> NodeOutcome {
        let memory_ref = self.memory_ref(ix);
        let mut cause = started;
        let (found, outputs) = match &config.action {
            MemoryAction::Put {
                key,
                value,
                ttl_ms,
                tags,
            } => {
                let (value, sensitive) = match value {
                    MemorySource::Value(value) => (value.clone(), false),
                    MemorySource::Variable(name) => (
                        self.run.variable(name).cloned().unwrap_or(Value::Null),
                        self.run.sensitivity().masks(name),
                    ),
                };
                let expires_at = ttl_ms.map(|ms| self.now.plus_ms(ms));
                let new_entry = NewMemoryEntry {
                    key: key.clone(),
                    value,
                    tags: tags.clone(),
                    expires_at,
                    sensitive,
                };
                match self.write_memory(ix, &memory_ref, new_entry, started) {
                    Ok((id, seq)) => {
                        cause = seq;
                        (json!(id), ("memoryId", json!(id)))
                    }
                    Err(error) => return NodeOutcome::Fail(error),
                }
            }
            MemoryAction::Get { key } => {
                let Some(key) = self.current_key(key) else {
                    return NodeOutcome::Fail(no_key());
                };
                let value = self.memory_entry(&memory_ref, &key).map(|e| e.value);
                let value = value.unwrap_or(Value::Null);
                (value.clone(), ("value", value))
            }
            MemoryAction::List { tag, text, limit } => {
                let fits = |e: &MemoryEntry| {
                    let tagged = tag.as_ref().is_none_or(|tag| e.tags.contains(tag));
                    tagged && text.as_ref().is_none_or(|text| self.has_text(e, text))
                };
                let entries = self.memory_entries(&memory_ref, *limit, fits);
                let shown: Vec<Value> = entries.iter().map(listed).collect();
                (json!(shown), ("entries", json!(shown)))
            }
            MemoryAction::Delete { key } => {
                let Some(key) = self.current_key(key) else {
                    return NodeOutcome::Fail(no_key());
                };
                let found_entry = self.memory_entry(&memory_ref, &key);
                let event = Event::MemoryDeleted {
                    node: self.run.def.nodes[ix].id.clone(),
                    memory_ref,
                    forgotten: key,
                    id: found_entry.as_ref().map(|e| e.id.clone()),
                };
                cause = self.emit(event, Some(started));
                (
                    json!(found_entry.is_some()),
                    ("deleted", json!(found_entry.is_some())),
                )
            }
        };
        if let Some(name) = &config.output {
            let node = self.run.def.nodes[ix].id.clone();
            self.set_variable(name, Some(found), &node, cause);
        }
        NodeOutcome::Complete(Object::from_iter([(outputs.0.to_owned(), outputs.1)]))
    }
}

fn no_key() -> ErrorInfo {
    let message = "the variable that names the key holds no text that can be one";
    ErrorInfo::new("validation_error", message)
}

fn listed(entry: &MemoryEntry) -> Value {
    let mut shown = json!({
        "key": entry.key,
        "value": entry.value,
        "memoryId": entry.id,
        "writtenAt": entry.written_at.rfc3339(),
        "tags": entry.tags,
    });
    if let Some(at) = entry.expires_at {
        shown["expiresAt"] = json!(at.rfc3339());
    }
    shown
}
