//! Memory as a run uses it: what it reads, and what its nodes write and delete.
//!
//! The engine has no store. It returns what it has to read ([`MemoryNeed`]), is called again with
//! the result, and adds what the same decision has written. A run sees its scope as it was when the
//! run began, its own writes, and those of children whose end it has recorded; in a supervisor's
//! loop it sees the scope as of the start of the iteration (`iteration_view.rs`). What it deletes
//! is gone for runs that begin later, not for itself.

use super::draft::DecisionDraft;
use super::refusal::Need;
use super::start::NodeOutcome;
use crate::cost;
use crate::ids::memory_id;
use crate::node::{Kind, MemoryAction, MemoryConfig, MemoryKey, MemorySource, is_key};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use tandem_record::{ErrorInfo, Event, MemoryBase, MemoryEntry, MemoryOrigin, Object, RunId, Seq};

/// Maximum size in bytes of one entry's content.
pub const MAX_ENTRY_BYTES: usize = 64 * 1024;
/// Maximum number of entries under one name of one scope.
const MAX_ENTRIES: u64 = 10_000;
/// How concurrent writes of sibling runs combine, in the protocol's word. The parent sees each
/// write when the end of its writer is recorded; of several writes under one key the newest wins.
/// Siblings do not wait for each other.
pub const SIBLING_WRITES: &str = "advisory";
/// The name used by nodes whose agent has no memory of its own.
const DEFAULT_REF: &str = "default";
const MAX_REF_CHARS: usize = 256;

/// Work of looking at one entry, and at one byte of a text that is searched.
const ENTRY_WORK: u64 = 200;
const SEARCHED_BYTE: u64 = 4;
/// What is found is listed, put out, and kept in a variable.
const RESULT_COPIES: u64 = 4;

/// What is remembered, as far as it was looked up.
pub trait Memory: Sync {
    /// `None` when it was not looked up yet.
    fn read_memory(&self, read: &MemoryRead) -> Option<Cow<'_, MemoryResult>>;
}

/// One read of memory, as of the start of this decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemoryRead {
    pub memory_ref: String,
    pub what: MemoryQueryKind,
    /// Children whose end this decision records; their writes are visible too.
    pub joined: Vec<RunId>,
    /// A replay reads what its source saw before this event.
    pub below: Option<Seq>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MemoryQueryKind {
    Key(String),
    All,
    /// How many entries the scope has now.
    Count,
    /// Notes the run sees that are visible to all runs of its scope and do not expire. Returns the
    /// oldest `limit` of them if there are more than `above`.
    Notes {
        above: u64,
        limit: usize,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum MemoryResult {
    /// Oldest write first.
    Entries(Vec<MemoryEntry>),
    Count(u64),
    /// Their number and the oldest ones; empty when there are not too many.
    Notes {
        held: u64,
        oldest: Vec<MemoryEntry>,
    },
}

/// What a run has to read before it can continue.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryNeed {
    pub run: RunId,
    pub origin: MemoryOrigin,
    pub reads: Vec<MemoryRead>,
}

impl DecisionDraft<'_> {
    /// What a child of this run reads.
    pub(super) fn child_memory(&self, child: &RunId, isolated: bool, cause: Seq) -> MemoryOrigin {
        let own = self.memory_origin();
        if isolated {
            return MemoryOrigin {
                scope: MemoryOrigin::isolated(child),
                start: own.start,
                base: None,
            };
        }
        MemoryOrigin {
            base: Some(MemoryBase {
                run: self.run.id().clone(),
                below: cause,
                fork: false,
            }),
            ..own
        }
    }

    fn memory_origin(&self) -> MemoryOrigin {
        self.run.request().memory_origin()
    }

    /// Ensures that the reads of a node have been looked up. If not, requests them together with
    /// all reads that other nodes of the run may make, so that a run with many such nodes makes one
    /// request.
    pub(super) fn ensure_memory_loaded(&mut self, ix: usize) {
        self.read_at = self.run.next_seq();
        self.iteration_view = self.run.iteration_read_start(ix);
        let missing = |draft: &Self, ix: usize| {
            let reads = draft.reads_of(ix);
            let unseen = |read: &MemoryRead| draft.cx.memory.read_memory(read).is_none();
            reads.into_iter().filter(unseen).collect::<Vec<_>>()
        };
        if missing(self, ix).is_empty() {
            return;
        }
        let mut reads: Vec<MemoryRead> = if self.replaying {
            let reads = self.replay_memory_reads.iter();
            reads
                .flat_map(|(ix, at)| self.reads_at(*ix, Some(*at)))
                .collect()
        } else {
            let nodes = 0..self.run.def.nodes.len();
            nodes.flat_map(|ix| missing(self, ix)).collect()
        };
        reads.extend(missing(self, ix));
        reads.dedup();
        self.needs = Some(Need::Memory(Box::new(MemoryNeed {
            run: self.run.id().clone(),
            origin: self.memory_origin(),
            reads,
        })));
    }

    fn reads_of(&self, ix: usize) -> Vec<MemoryRead> {
        self.reads_at(ix, self.read_point(self.run.iteration_read_start(ix)))
    }

    /// A replay has no time of its own: it reads as its source did. In a supervisor's loop it reads
    /// as of the start of the iteration.
    fn read_point(&self, iteration_start: Option<Seq>) -> Option<Seq> {
        iteration_start.or(self.replaying.then_some(self.read_at))
    }

    fn reads_at(&self, ix: usize, below: Option<Seq>) -> Vec<MemoryRead> {
        let own = self.memory_ref(ix);
        let at = |name: &str, what: MemoryQueryKind| MemoryRead {
            below,
            ..self.memory_read(name, what)
        };
        let all = |name: &str| at(name, MemoryQueryKind::All);
        match &self.run.def.nodes[ix].kind {
            Kind::Memory(config) => match &config.action {
                MemoryAction::Put { .. } => {
                    let notes = self.notes_read(&own);
                    let counted = std::iter::once(at(&own, MemoryQueryKind::Count));
                    counted.chain(notes).collect()
                }
                MemoryAction::Get { key } | MemoryAction::Delete { key } => {
                    let key = self.current_key(key);
                    key.map(|key| at(&own, MemoryQueryKind::Key(key)))
                        .into_iter()
                        .collect()
                }
                MemoryAction::List { .. } => vec![all(&own)],
            },
            Kind::MemoryHook(hook) => hook
                .memory_refs(&own)
                .into_iter()
                .map(|name| all(&name))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn current_key(&self, key: &MemoryKey) -> Option<String> {
        match key {
            MemoryKey::Text(key) => Some(key.clone()),
            MemoryKey::Variable(name) => match self.run.variable(name) {
                Some(Value::String(key)) if is_key(key) => Some(key.clone()),
                _ => None,
            },
        }
    }

    pub(super) fn memory_read(&self, memory_ref: &str, what: MemoryQueryKind) -> MemoryRead {
        MemoryRead {
            memory_ref: memory_ref.to_owned(),
            what,
            joined: self.children_joined_now(),
            below: self.read_point(self.iteration_view),
        }
    }

    /// The memory name of a node: that of its agent, if the agent has one.
    pub(super) fn memory_ref(&self, ix: usize) -> String {
        let agent = self.run.def.doc_node(ix).agent.as_ref();
        let named = agent.and_then(|a| a.get("memoryRef")?.as_str());
        named.unwrap_or(DEFAULT_REF).to_owned()
    }

    /// Everything under a name that fits, newest first, `limit` of it at most. What is looked at is
    /// charged, and so is what is copied; nothing is found when that does not fit.
    pub(super) fn memory_entries(
        &self,
        memory_ref: &str,
        limit: usize,
        fits: impl Fn(&MemoryEntry) -> bool,
    ) -> Vec<MemoryEntry> {
        if !is_valid_ref(memory_ref) {
            return Vec::new();
        }
        let read = self.memory_read(memory_ref, MemoryQueryKind::All);
        let result = self.cx.memory.read_memory(&read);
        let stored: &[MemoryEntry] = match result.as_deref() {
            Some(MemoryResult::Entries(entries)) => entries,
            _ => &[],
        };
        let drafted: Vec<&MemoryEntry> = self.visible_drafted_entries(memory_ref).collect();
        let work = ENTRY_WORK.saturating_mul(cost::count(stored.len() + drafted.len()));
        if !self.cx.work.try_spend(work) {
            return Vec::new();
        }
        let newest: HashMap<&str, usize> = drafted
            .iter()
            .enumerate()
            .map(|(n, entry)| (&*entry.key, n))
            .collect();
        let kept = stored.iter().filter(|e| !newest.contains_key(&*e.key));
        let drafted = drafted.iter().enumerate();
        let drafted = drafted.filter(|(n, entry)| newest.get(&*entry.key) == Some(n));
        let mut entries: Vec<&MemoryEntry> = kept.chain(drafted.map(|(_, entry)| *entry)).collect();
        entries.retain(|e| !e.is_expired(self.now));
        entries.reverse();
        entries.sort_by_key(|e| std::cmp::Reverse(e.written_at));
        let found = entries.into_iter().filter(|entry| fits(entry));
        let copies = found.map_while(|entry| {
            cost::charge_copies(&entry.value, RESULT_COPIES, self.cx.work)?;
            Some(entry.clone())
        });
        copies.take(limit).collect()
    }

    /// Whether an entry's text has these words, in any case.
    fn has_text(&self, entry: &MemoryEntry, words: &str) -> bool {
        let measured = cost::charge_copies(&entry.value, 1, self.cx.work);
        let text = measured.map_or(0, |size| size.text);
        let work = SEARCHED_BYTE.saturating_mul(cost::count(text));
        measured.is_some()
            && self.cx.work.try_spend(work)
            && entry.text().to_lowercase().contains(words)
    }

    fn memory_entry(&self, memory_ref: &str, key: &str) -> Option<MemoryEntry> {
        let own = self
            .visible_drafted_entries(memory_ref)
            .filter(|e| e.key == key)
            .last();
        let entry = own.cloned().or_else(|| {
            let read = self.memory_read(memory_ref, MemoryQueryKind::Key(key.to_owned()));
            match self.cx.memory.read_memory(&read).as_deref() {
                Some(MemoryResult::Entries(entries)) => entries.last().cloned(),
                _ => None,
            }
        });
        entry.filter(|e| is_valid_ref(memory_ref) && !e.is_expired(self.now))
    }

    /// Entries this decision has written so far and may see, oldest first.
    fn visible_drafted_entries(&self, memory_ref: &str) -> impl Iterator<Item = &MemoryEntry> {
        let written = self.drafted_entries(memory_ref);
        let visible = written.filter(|(seq, _)| self.is_visible(*seq));
        visible.map(|(_, entry)| entry)
    }

    /// Entries this decision has written so far, oldest first, with the events that record them.
    pub(super) fn drafted_entries(
        &self,
        memory_ref: &str,
    ) -> impl Iterator<Item = (Seq, &MemoryEntry)> {
        let own = self.drafted().iter();
        let own = own.filter(|r| r.seq >= self.first_own_seq && !self.replaying);
        own.filter_map(move |recorded| match &recorded.event {
            Event::MemoryWritten { entry, .. } | Event::MemoryCompacted { output: entry, .. } => {
                (entry.memory_ref == memory_ref).then_some((recorded.seq, &**entry))
            }
            _ => None,
        })
    }

    pub(super) fn perform_memory_node(
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

    /// The only function that writes an entry to the log. Returns its id and the event's sequence
    /// number.
    pub(super) fn write_memory(
        &mut self,
        ix: usize,
        memory_ref: &str,
        new_entry: NewMemoryEntry,
        cause: Seq,
    ) -> Result<(String, Seq), ErrorInfo> {
        let refuse = |message: String| Err(ErrorInfo::new("validation_error", message));
        if !is_valid_ref(memory_ref) {
            return refuse("the agent's memoryRef cannot be used as a name".to_owned());
        }
        let size = MemoryEntry::text_of(&new_entry.value).len();
        if size > MAX_ENTRY_BYTES {
            return refuse(format!(
                "the entry has {size} bytes; at most {MAX_ENTRY_BYTES} are kept"
            ));
        }
        let read = self.memory_read(memory_ref, MemoryQueryKind::Count);
        let stored = match self.cx.memory.read_memory(&read).as_deref() {
            Some(MemoryResult::Count(n)) => *n,
            _ => 0,
        };
        // A key written many times in one decision counts as one entry.
        let drafted = self.drafted_entries(memory_ref);
        let keys: BTreeSet<&str> = drafted.map(|(_, e)| &*e.key).collect();
        if stored + keys.len() as u64 >= MAX_ENTRIES {
            return refuse(format!("the scope holds {MAX_ENTRIES} entries already"));
        }
        let def = self.definition();
        let node = &def.nodes[ix];
        let execution = self.run.state.nodes[ix].execution;
        let of_node = self
            .drafted()
            .iter()
            .filter(|r| matches!(&r.event, Event::MemoryWritten { node: n, .. } if *n == node.id));
        let id = memory_id(self.run.id(), &node.id, execution, of_node.count());
        let agent = def.doc_node(ix).agent.as_ref();
        let entry = MemoryEntry {
            memory_ref: memory_ref.to_owned(),
            key: new_entry.key.unwrap_or_else(|| id.clone()),
            value: new_entry.value,
            tags: new_entry.tags,
            written_at: self.now,
            expires_at: new_entry.expires_at,
            sensitive: new_entry.sensitive,
            agent: agent.and_then(|a| Some(a.get("agentId")?.as_str()?.to_owned())),
            id: id.clone(),
        };
        let event = Event::MemoryWritten {
            node: node.id.clone(),
            entry: Box::new(entry),
        };
        let seq = self.emit(event, Some(cause));
        // A fork that repeats work of its source keeps the source's entry.
        let stored_id = self
            .drafted()
            .last()
            .and_then(|recorded| match &recorded.event {
                Event::MemoryWritten { entry, .. } => Some(entry.id.clone()),
                _ => None,
            });
        self.compact(ix, memory_ref, seq);
        Ok((stored_id.unwrap_or(id), seq))
    }
}

/// An entry before it has an id and a time.
pub(super) struct NewMemoryEntry {
    pub(super) key: Option<String>,
    pub(super) value: Value,
    pub(super) tags: Vec<String>,
    pub(super) expires_at: Option<tandem_record::Timestamp>,
    /// It comes from a variable or channel marked as sensitive.
    pub(super) sensitive: bool,
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

/// Rejects names that another system could read as a path.
fn is_valid_ref(memory_ref: &str) -> bool {
    let length = memory_ref.chars().count();
    (1..=MAX_REF_CHARS).contains(&length)
        && !memory_ref.contains(['\0', '\\'])
        && !memory_ref.starts_with('/')
        && memory_ref
            .split('/')
            .all(|part| part != ".." && part != ".")
}
