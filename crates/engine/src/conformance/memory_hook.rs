//! The memory operations of the protocol's fixtures. Each stores its result in variables.

use crate::node::ParseContext;
use crate::run::{DecisionDraft, Done, NewMemoryEntry, NodeOutcome};
use serde_json::{Value, json};
use tandem_record::{ErrorInfo, MemoryEntry, Object, Seq, Timestamp};

const HOUR_MS: u64 = 3_600_000;

#[cfg(test)]
mod tests;

/// The memory operation of a fixture. Each stores its results in variables of fixed names.
#[derive(Debug)]
pub(crate) enum MemoryHook {
    WriteThenRead,
    /// Writes text that contains a secret and reads it back.
    Redaction {
        secret_id: String,
    },
    /// Reads under a name that belongs to another tenant.
    CrossTenant {
        foreign: String,
    },
    Ttl,
}

impl MemoryHook {
    /// The variables it leaves what it found in.
    pub(crate) fn result_variables(&self) -> &'static [&'static str] {
        match self {
            Self::WriteThenRead | Self::Redaction { .. } => &["memoryReadback"],
            Self::CrossTenant { .. } => &["ownerEntryId", "ownerProbe", "crossTenantProbe"],
            Self::Ttl => &["memoryList", "expiredId", "freshId"],
        }
    }

    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        match cx.required_text(config, "memoryAction")?.as_str() {
            "write-then-read" => Some(Self::WriteThenRead),
            "redaction-probe" => Some(Self::Redaction {
                secret_id: cx.required_text(config, "byokSecretId")?,
            }),
            "cross-tenant-probe" => Some(Self::CrossTenant {
                foreign: cx.text(config, "probeMemoryRef")?.unwrap_or_default(),
            }),
            "ttl-probe" => Some(Self::Ttl),
            other => cx.bad("memoryAction", format!("{other:?} is not a memory action")),
        }
    }

    /// The secret of the operator that it needs.
    pub(super) fn secret(&self) -> Option<&str> {
        match self {
            Self::Redaction { secret_id } => Some(secret_id),
            Self::WriteThenRead | Self::CrossTenant { .. } | Self::Ttl => None,
        }
    }

    /// The memory names that a hook reads.
    pub(super) fn memory_refs(&self, own: &str) -> Vec<String> {
        match self {
            Self::WriteThenRead | Self::Redaction { .. } | Self::Ttl => vec![own.to_owned()],
            Self::CrossTenant { foreign } => vec![own.to_owned(), foreign.clone()],
        }
    }
}

impl DecisionDraft<'_> {
    pub(super) fn memory_hook(
        &mut self,
        ix: usize,
        hook: &MemoryHook,
        started: Seq,
    ) -> NodeOutcome {
        match self.perform_memory_hook(ix, hook, started) {
            Ok(()) => NodeOutcome::Complete(Object::new()),
            Err(error) => NodeOutcome::Fail(error),
        }
    }

    fn perform_memory_hook(
        &mut self,
        ix: usize,
        hook: &MemoryHook,
        started: Seq,
    ) -> Result<(), ErrorInfo> {
        let own = self.memory_ref(ix);
        match hook {
            MemoryHook::WriteThenRead => {
                let id = self.write_note(ix, "a note of the round trip", None, started)?;
                let written = self.entries_as_json(&own, |e| e.id == id).pop();
                self.set_result_variable(
                    ix,
                    "memoryReadback",
                    written.unwrap_or(Value::Null),
                    started,
                );
            }
            MemoryHook::CrossTenant { foreign } => {
                let id = self.write_note(ix, "a note of this tenant", None, started)?;
                let ours = self.entries_as_json(&own, |_| true);
                let theirs = self.entries_as_json(foreign, |_| true);
                self.set_result_variable(ix, "ownerEntryId", json!(id), started);
                self.set_result_variable(ix, "ownerProbe", json!(ours), started);
                self.set_result_variable(ix, "crossTenantProbe", json!(theirs), started);
            }
            MemoryHook::Ttl => {
                // Not subject to the check that refuses an expiry in the past.
                let past = Timestamp(self.now.0 - 1000);
                let expired = self.write_note(ix, "over", Some(past), started)?;
                let future = self.now.plus_ms(HOUR_MS);
                let fresh = self.write_note(ix, "still here", Some(future), started)?;
                let ids = [expired.clone(), fresh.clone()];
                let list = self.entries_as_json(&own, |e| ids.contains(&e.id));
                self.set_result_variable(ix, "memoryList", json!(list), started);
                self.set_result_variable(ix, "expiredId", json!(expired), started);
                self.set_result_variable(ix, "freshId", json!(fresh), started);
            }
            MemoryHook::Redaction { .. } => {
                unreachable!("continues when the secret arrived")
            }
        }
        Ok(())
    }

    /// The secret arrived: writes a text that contains it and reads it back. Neither is stored in
    /// clear, because both pass the redactor on the way to the log.
    pub(super) fn write_secret_to_memory(&mut self, ix: usize, outputs: &Object, cause: Seq) {
        let secret = outputs.get("secret").and_then(Value::as_str);
        let text = format!("the secret is {}", secret.unwrap_or_default());
        match self.write_note(ix, &text, None, cause) {
            Ok(id) => {
                let own = self.memory_ref(ix);
                let written = self.entries_as_json(&own, |e| e.id == id).pop();
                self.set_result_variable(
                    ix,
                    "memoryReadback",
                    written.unwrap_or(Value::Null),
                    cause,
                );
                self.complete_node(ix, Done::default(), cause);
            }
            Err(error) => self.fail_node(ix, error, Some(cause), None),
        }
    }

    fn write_note(
        &mut self,
        ix: usize,
        text: &str,
        expires_at: Option<Timestamp>,
        cause: Seq,
    ) -> Result<String, ErrorInfo> {
        let memory_ref = self.memory_ref(ix);
        let node = &self.run.def.nodes[ix].id;
        let sensitive = self.run.sensitivity().hides_error_of(node);
        let new_entry = NewMemoryEntry {
            key: None,
            value: json!(text),
            tags: vec!["conformance".to_owned()],
            expires_at,
            sensitive,
        };
        let (id, _) = self.write_memory(ix, &memory_ref, new_entry, cause)?;
        Ok(id)
    }

    fn set_result_variable(&mut self, ix: usize, name: &str, value: Value, cause: Seq) {
        let node = self.run.def.nodes[ix].id.clone();
        self.set_variable(name, Some(value), &node, cause);
    }

    /// Entries in the protocol's shape.
    fn entries_as_json(&self, own: &str, wanted: impl Fn(&MemoryEntry) -> bool) -> Vec<Value> {
        let entries = self.memory_entries(own, usize::MAX, wanted);
        entries
            .into_iter()
            .map(|entry| {
                let mut shown = json!({
                    "id": entry.id,
                    "content": MemoryEntry::text_of(&entry.value),
                    "tags": entry.tags,
                    "createdAt": entry.written_at.rfc3339(),
                });
                if let Some(at) = entry.expires_at {
                    shown["expiresAt"] = json!(at.rfc3339());
                }
                shown
            })
            .collect()
    }
}
