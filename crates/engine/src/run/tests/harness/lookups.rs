//! What a harness looks up for its run: workflows, an empty memory, answers, packs.

use crate::definition::Definition;
use crate::pack::PackTypes;
use crate::run::{
    Definitions, Lookup, Memory, MemoryQueryKind, MemoryRead, MemoryResult, ModelAnswers,
    ReplayedModelAnswer,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{EffectId, WorkflowId};

impl Definitions for HashMap<WorkflowId, Arc<Definition>> {
    fn current(&self, workflow: &WorkflowId) -> Lookup {
        self.get(workflow)
            .map_or(Lookup::Unknown, |def| Lookup::Known(Arc::clone(def)))
    }
}

/// An empty memory.
pub(in crate::run::tests) struct NoMemory;

impl Memory for NoMemory {
    fn read_memory(&self, read: &MemoryRead) -> Option<Cow<'_, MemoryResult>> {
        let result = match read.what {
            MemoryQueryKind::Count => MemoryResult::Count(0),
            MemoryQueryKind::Key(_) | MemoryQueryKind::All => MemoryResult::Entries(Vec::new()),
            MemoryQueryKind::Notes { .. } => MemoryResult::Notes {
                held: 0,
                oldest: Vec::new(),
            },
        };
        Some(Cow::Owned(result))
    }
}

impl ModelAnswers for NoMemory {
    fn answer_to(&self, _: &EffectId) -> ReplayedModelAnswer {
        ReplayedModelAnswer::NotCalled
    }
}

impl ModelAnswers for ReplayedModelAnswer {
    fn answer_to(&self, _: &EffectId) -> ReplayedModelAnswer {
        self.clone()
    }
}

/// The node types of a harness's packs.
pub(in crate::run::tests) fn packs() -> PackTypes {
    PackTypes::from_iter([("vendor.acme.act", "vendor.acme.tools@1.0.0")])
}
