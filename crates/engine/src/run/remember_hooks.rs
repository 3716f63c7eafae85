//! What the protocol's memory fixtures want done. Each leaves what it found in variables.

use super::finish::Done;
use super::remember::Draft;
use super::start::Step;
use super::turn::Turn;
use crate::node::MemoryHook;
use serde_json::{Value, json};
use tandem_record::{ErrorInfo, MemoryEntry, Object, Seq, Timestamp};

const HOUR_MS: u64 = 3_600_000;

impl MemoryHook {
    /// The names a hook reads under.
    pub(super) fn looks_at(&self, own: &str) -> Vec<String> {
        match self {
            Self::WriteThenRead | Self::Redaction { .. } | Self::Ttl => vec![own.to_owned()],
            Self::CrossTenant { foreign } => vec![own.to_owned(), foreign.clone()],
        }
    }
}

impl Turn<'_> {
    pub(super) fn memory_hook(&mut self, ix: usize, hook: &MemoryHook, started: Seq) -> Step {
        match self.act_on_memory(ix, hook, started) {
            Ok(()) => Step::Complete(Object::new()),
            Err(error) => Step::Fail(error),
        }
    }

    fn act_on_memory(
        &mut self,
        ix: usize,
        hook: &MemoryHook,
        started: Seq,
    ) -> Result<(), ErrorInfo> {
        let own = self.memory_ref(ix);
        match hook {
            MemoryHook::WriteThenRead => {
                let id = self.note(ix, "a note of the round trip", None, started)?;
                let written = self.entries_as_json(&own, |e| e.id == id).pop();
                self.tell(
                    ix,
                    "memoryReadback",
                    written.unwrap_or(Value::Null),
                    started,
                );
            }
            MemoryHook::CrossTenant { foreign } => {
                let id = self.note(ix, "a note of this tenant", None, started)?;
                let ours = self.entries_as_json(&own, |_| true);
                let theirs = self.entries_as_json(foreign, |_| true);
                self.tell(ix, "ownerEntryId", json!(id), started);
                self.tell(ix, "ownerProbe", json!(ours), started);
                self.tell(ix, "crossTenantProbe", json!(theirs), started);
            }
            MemoryHook::Ttl => {
                // Below the check that refuses what is over already.
                let past = Timestamp(self.now.0 - 1000);
                let expired = self.note(ix, "over", Some(past), started)?;
                let future = self.now.plus_ms(HOUR_MS);
                let fresh = self.note(ix, "still here", Some(future), started)?;
                let ids = [expired.clone(), fresh.clone()];
                let list = self.entries_as_json(&own, |e| ids.contains(&e.id));
                self.tell(ix, "memoryList", json!(list), started);
                self.tell(ix, "expiredId", json!(expired), started);
                self.tell(ix, "freshId", json!(fresh), started);
            }
            MemoryHook::Redaction { .. } => {
                unreachable!("goes on when the secret is there")
            }
        }
        Ok(())
    }

    /// The secret arrived: text with it in it is written and read back. Neither is stored as it
    /// is here, because both pass the redactor on their way into the log.
    pub(super) fn try_to_remember_secret(&mut self, ix: usize, outputs: &Object, cause: Seq) {
        let secret = outputs.get("secret").and_then(Value::as_str);
        let text = format!("the secret is {}", secret.unwrap_or_default());
        match self.note(ix, &text, None, cause) {
            Ok(id) => {
                let own = self.memory_ref(ix);
                let written = self.entries_as_json(&own, |e| e.id == id).pop();
                self.tell(ix, "memoryReadback", written.unwrap_or(Value::Null), cause);
                self.complete_node(ix, Done::default(), cause);
            }
            Err(error) => self.fail_node(ix, error, Some(cause), None),
        }
    }

    fn note(
        &mut self,
        ix: usize,
        text: &str,
        expires_at: Option<Timestamp>,
        cause: Seq,
    ) -> Result<String, ErrorInfo> {
        let memory_ref = self.memory_ref(ix);
        let draft = Draft {
            key: None,
            value: json!(text),
            tags: vec!["conformance".to_owned()],
            expires_at,
        };
        let (id, _) = self.write_memory(ix, &memory_ref, draft, cause)?;
        Ok(id)
    }

    fn tell(&mut self, ix: usize, name: &str, value: Value, cause: Seq) {
        let node = self.run.def.nodes[ix].id.clone();
        self.set_variable(name, Some(value), &node, cause);
    }

    /// Entries in the protocol's shape.
    fn entries_as_json(&self, own: &str, wanted: impl Fn(&MemoryEntry) -> bool) -> Vec<Value> {
        let entries = self.memory_entries(own).into_iter();
        entries
            .filter(wanted)
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
