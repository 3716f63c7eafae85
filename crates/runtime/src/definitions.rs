//! Cache of compiled definitions. An entry by hash is always valid; an entry by id is valid until
//! the registry changes. Bounded by bytes; a miss costs a read and a compilation.

use crate::byte_cache::ByteCache;
use crate::offload::Offload;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_engine::definition::{ConformanceTypes, Permissions};
use tandem_engine::pack::AllowedPackTypes;
use tandem_engine::run::{
    Definitions, Lookup, Memory, MemoryRead, MemoryResult, ModelAnswers, ReplayedModelAnswer,
    TreePlaces,
};
use tandem_record::{DefinitionHash, EffectId, Partition, WorkflowId};
use tandem_store::{Fault, Store};

/// Limit of the compiled documents in bytes.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// A compiled document takes about this many times the size of its text.
const COMPILED_PER_BYTE: usize = 8;
/// Limit of the id-to-hash entries in bytes.
const MAX_CURRENT_BYTES: usize = 4 * 1024 * 1024;

pub(crate) struct CompiledDefinitions {
    /// Which conformance node types documents may use.
    conformance: ConformanceTypes,
    by_hash: Mutex<ByteCache<DefinitionHash, Arc<Definition>>>,
    current: Mutex<Current>,
    compiling: Offload,
}

/// The document each id currently stands for, by workspace or tenant. Registrations through this
/// process remove entries; those of other processes remove all (`cache_epochs.rs`).
struct Current {
    hashes: ByteCache<(Partition, WorkflowId), DefinitionHash>,
    /// Incremented whenever entries are removed. A value read before that is not cached.
    changes: u64,
}

impl CompiledDefinitions {
    pub(crate) fn new(conformance: bool) -> Self {
        Self {
            conformance: match conformance {
                // The document was checked at registration, and is checked again when a run is
                // created.
                true => ConformanceTypes::Everywhere,
                false => ConformanceTypes::StoredOnly,
            },
            by_hash: Mutex::new(ByteCache::new(MAX_BYTES)),
            current: Mutex::new(Current {
                hashes: ByteCache::new(MAX_CURRENT_BYTES),
                changes: 0,
            }),
            compiling: Offload::default(),
        }
    }

    /// The document with this hash. `None` only if the store lost it.
    pub(crate) async fn by_hash(
        &self,
        store: &dyn Store,
        hash: &DefinitionHash,
    ) -> Result<Arc<Definition>, Fault> {
        let cached = self.by_hash.lock().get(hash);
        if let Some(found) = cached {
            return Ok(found);
        }
        let document = store.definition(hash).await?.ok_or_else(|| {
            let message = format!("definition {hash} is pinned by a run but not in the store");
            Fault::permanent("corrupt", message)
        })?;
        self.load(hash, document).await
    }

    /// The document an id currently stands for.
    pub(crate) async fn current(
        &self,
        store: &dyn Store,
        owner: &Partition,
        workflow: &WorkflowId,
    ) -> Result<Option<Arc<Definition>>, Fault> {
        let key = (owner.clone(), workflow.clone());
        let (cached, changes) = {
            let mut current = self.current.lock();
            (current.hashes.get(&key), current.changes)
        };
        if let Some(hash) = cached {
            return self.by_hash(store, &hash).await.map(Some);
        }
        let Some(registered) = store.registered(owner, workflow).await? else {
            return Ok(None);
        };
        let definition = self.load(&registered.hash, registered.document).await?;
        let mut current = self.current.lock();
        if current.changes == changes {
            let workspace = owner
                .workspace
                .as_ref()
                .map_or(0, |name| name.as_str().len());
            let names = owner.tenant.as_str().len() + workspace + workflow.as_str().len();
            current.hashes.insert(key, registered.hash, 128 + names);
        }
        Ok(Some(definition))
    }

    /// Compiles a stored document, outside the threads that serve all requests.
    async fn load(
        &self,
        hash: &DefinitionHash,
        document: Arc<str>,
    ) -> Result<Arc<Definition>, Fault> {
        let permit = self.compiling.acquire(None).await;
        // Somebody else may have compiled it meanwhile.
        let cached = self.by_hash.lock().get(hash);
        if let Some(found) = cached {
            return Ok(found);
        }
        let bytes = document.len();
        let conformance = self.conformance;
        let definition = permit.run(move || compile(&document, conformance)).await?;
        self.cache_definition(&definition, bytes);
        Ok(definition)
    }

    /// Does the work of a registration outside the threads that serve all requests.
    pub(crate) async fn admit<T, W>(&self, admit: W) -> T
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        self.compiling.acquire(None).await.run(admit).await
    }

    /// Caches a definition whose document has this many bytes.
    pub(crate) fn cache_definition(&self, definition: &Arc<Definition>, bytes: usize) {
        let weight = bytes * COMPILED_PER_BYTE + definition.schema_weight();
        let hash = definition.hash.clone();
        let mut by_hash = self.by_hash.lock();
        by_hash.insert(hash, Arc::clone(definition), weight);
    }

    /// Another process changed the registry.
    pub(crate) fn invalidate_all_current(&self) {
        let mut current = self.current.lock();
        current.changes += 1;
        current.hashes.retain(|_| false);
    }

    /// The meaning of an id changed, for one workspace, one tenant or all. Workspaces without their
    /// own document use their tenant's.
    pub(crate) fn invalidate_current(&self, owner: Option<&Partition>, workflow: &WorkflowId) {
        let mut current = self.current.lock();
        current.changes += 1;
        let affected = |of: &Partition| match owner {
            Some(owner) if owner.workspace.is_some() => of == owner,
            Some(owner) => of.tenant == owner.tenant,
            None => true,
        };
        let retained = |(of, id): &(Partition, WorkflowId)| id != workflow || !affected(of);
        current.hashes.retain(retained);
    }
}

/// What stands for the definition of a flow's runs, whose nodes are only known as the code yields them.
pub(crate) fn flow_definition(workflow: &WorkflowId) -> Result<Arc<Definition>, Fault> {
    let document = serde_json::json!({
        // Ids of registered workflows have no dots, so a flow cannot be taken for one of them.
        "id": "flow",
        "name": workflow,
        "version": "1",
        "nodes": [{
            "id": "flow", "typeId": "core.noop", "name": "Flow",
            "position": {"x": 0, "y": 0}, "config": {}, "inputs": {},
        }],
        "edges": [],
        "triggers": [{"id": "manual", "type": "manual", "enabled": true}],
        "variables": [],
        "metadata": {},
        "settings": {},
    });
    compile(&document.to_string(), ConformanceTypes::StoredOnly)
}

fn compile(document: &str, conformance: ConformanceTypes) -> Result<Arc<Definition>, Fault> {
    let unreadable = |why: String| {
        let message = format!("a stored workflow document does not compile: {why}");
        Fault::permanent("corrupt", message)
    };
    let parsed = serde_json::from_str(document).map_err(|e| unreadable(e.to_string()))?;
    let trusted = Permissions {
        conformance,
        unknown_settings: true,
        packs: AllowedPackTypes::PreviouslyAccepted,
    };
    Definition::compile(&parsed, trusted)
        .map(Arc::new)
        .map_err(|problems| unreadable(format!("{problems:?}")))
}

/// What one decision has looked up so far.
#[derive(Default)]
pub(crate) struct DecisionLookups {
    pub(crate) workflows: HashMap<WorkflowId, Option<Arc<Definition>>>,
    pub(crate) memory: HashMap<MemoryRead, MemoryResult>,
    /// Answers of programmed (mock) providers.
    pub(crate) model_answers: HashMap<EffectId, ReplayedModelAnswer>,
    pub(crate) places: TreePlaces,
}

impl Definitions for DecisionLookups {
    fn current(&self, workflow: &WorkflowId) -> Lookup {
        match self.workflows.get(workflow) {
            Some(Some(definition)) => Lookup::Known(Arc::clone(definition)),
            Some(None) => Lookup::Unknown,
            None => Lookup::NotLoaded,
        }
    }
}

impl Memory for DecisionLookups {
    fn read_memory(&self, read: &MemoryRead) -> Option<Cow<'_, MemoryResult>> {
        self.memory.get(read).map(Cow::Borrowed)
    }
}

impl ModelAnswers for DecisionLookups {
    fn answer_to(&self, effect: &EffectId) -> ReplayedModelAnswer {
        self.model_answers
            .get(effect)
            .cloned()
            .unwrap_or(ReplayedModelAnswer::NotCalled)
    }
}

#[cfg(test)]
mod tests;
