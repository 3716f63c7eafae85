//! What a decision has to read from memory before it can continue.
//!
//! The engine has no store. It returns what it has to read ([`MemoryNeed`]), is called again with
//! the result, and adds what the same decision has written. A run sees its scope as it was when the
//! run began, its own writes, and those of children whose end it has recorded; in a supervisor's
//! loop it sees the scope as of the start of the iteration (`iteration_view.rs`). What it deletes
//! is gone for runs that begin later, not for itself.

use crate::node::{Kind, MemoryAction, MemoryKey, is_key};
use crate::run::draft::DecisionDraft;
use crate::run::refusal::Need;
use serde_json::Value;
use std::borrow::Cow;
use tandem_record::{MemoryBase, MemoryEntry, MemoryOrigin, RunId, Seq};

/// How concurrent writes of sibling runs combine, in the protocol's word. The parent sees each
/// write when the end of its writer is recorded; of several writes under one key the newest wins.
/// Siblings do not wait for each other.
pub const SIBLING_WRITES: &str = "advisory";
/// The name used by nodes whose agent has no memory of its own.
const DEFAULT_REF: &str = "default";

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
    pub(in crate::run) fn child_memory(
        &self,
        child: &RunId,
        isolated: bool,
        cause: Seq,
    ) -> MemoryOrigin {
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
    pub(crate) fn ensure_memory_loaded(&mut self, ix: usize) {
        self.memory.read_at = self.run.next_seq();
        self.memory.iteration_view = self.run.iteration_read_start(ix);
        let missing = |draft: &Self, ix: usize| {
            let reads = draft.reads_of(ix);
            let unseen = |read: &MemoryRead| draft.cx.memory.read_memory(read).is_none();
            reads.into_iter().filter(unseen).collect::<Vec<_>>()
        };
        if missing(self, ix).is_empty() {
            return;
        }
        let mut reads: Vec<MemoryRead> = if self.is_replaying() {
            let reads = self.memory.replay_reads.iter();
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
        iteration_start.or(self.is_replaying().then_some(self.memory.read_at))
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
            Kind::Conformance(kind) => kind
                .memory_refs(&own)
                .into_iter()
                .map(|name| all(&name))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn current_key(&self, key: &MemoryKey) -> Option<String> {
        match key {
            MemoryKey::Text(key) => Some(key.clone()),
            MemoryKey::Variable(name) => match self.run.variable(name) {
                Some(Value::String(key)) if is_key(key) => Some(key.clone()),
                _ => None,
            },
        }
    }

    pub(in crate::run) fn memory_read(
        &self,
        memory_ref: &str,
        what: MemoryQueryKind,
    ) -> MemoryRead {
        MemoryRead {
            memory_ref: memory_ref.to_owned(),
            what,
            joined: self.children_joined_now(),
            below: self.read_point(self.memory.iteration_view),
        }
    }

    /// The memory name of a node: that of its agent, if the agent has one.
    pub(crate) fn memory_ref(&self, ix: usize) -> String {
        let agent = self.run.def.doc_node(ix).agent.as_ref();
        let named = agent.and_then(|a| a.get("memoryRef")?.as_str());
        named.unwrap_or(DEFAULT_REF).to_owned()
    }
}
