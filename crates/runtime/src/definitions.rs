//! Compiled definitions in memory: by content for ever true, by id only as long as the registry
//! says so. Bounded; a miss costs a read and a compilation.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_engine::definition::Permissions;
use tandem_engine::pack::Brought;
use tandem_engine::run::{Asked, Definitions, Lookup, Memory, MemoryRead, Recalled, Reheard};
use tandem_record::{DefinitionHash, EffectId, TenantId, WorkflowId};
use tandem_store::{Fault, Store};

/// Compiled documents kept; a document is a few kilobytes.
const MAX_COMPILED: usize = 1024;

#[derive(Default)]
pub(crate) struct CompiledDefinitions {
    by_hash: Mutex<HashMap<DefinitionHash, Arc<Definition>>>,
    /// What an id means for a tenant. Cleared by every registration through this process.
    current: Mutex<HashMap<(TenantId, WorkflowId), DefinitionHash>>,
}

impl CompiledDefinitions {
    /// A pinned document. Absent only if the store lost it.
    pub(crate) async fn by_hash(
        &self,
        store: &dyn Store,
        hash: &DefinitionHash,
    ) -> Result<Arc<Definition>, Fault> {
        if let Some(found) = self.by_hash.lock().get(hash) {
            return Ok(Arc::clone(found));
        }
        let document = store.definition(hash).await?.ok_or_else(|| {
            let message = format!("definition {hash} is pinned by a run but not in the store");
            Fault::permanent("corrupt", message)
        })?;
        self.compile(&document)
    }

    /// What the id means now.
    pub(crate) async fn current(
        &self,
        store: &dyn Store,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Arc<Definition>>, Fault> {
        let key = (tenant.clone(), workflow.clone());
        let known = self.current.lock().get(&key).cloned();
        if let Some(hash) = known {
            return self.by_hash(store, &hash).await.map(Some);
        }
        let Some(registered) = store.registered(tenant, workflow).await? else {
            return Ok(None);
        };
        let definition = self.compile(&registered.document)?;
        let mut current = self.current.lock();
        if current.len() >= MAX_COMPILED {
            current.clear();
        }
        current.insert(key, registered.hash);
        Ok(Some(definition))
    }

    fn compile(&self, document: &str) -> Result<Arc<Definition>, Fault> {
        let unreadable = |why: String| {
            let message = format!("a stored workflow document does not compile: {why}");
            Fault::permanent("corrupt", message)
        };
        let parsed = serde_json::from_str(document).map_err(|e| unreadable(e.to_string()))?;
        // It was checked when it came in; who registered it no longer matters.
        let trusted = Permissions {
            conformance_role: true,
            unknown_settings: true,
            packs: Brought::Once,
        };
        let definition = Definition::compile(&parsed, trusted)
            .map(Arc::new)
            .map_err(|problems| unreadable(format!("{problems:?}")))?;
        self.remember(&definition);
        Ok(definition)
    }

    pub(crate) fn remember(&self, definition: &Arc<Definition>) {
        let mut by_hash = self.by_hash.lock();
        if by_hash.len() >= MAX_COMPILED {
            by_hash.retain(|_, held| Arc::strong_count(held) > 1);
            if by_hash.len() >= MAX_COMPILED {
                by_hash.clear();
            }
        }
        by_hash.insert(definition.hash.clone(), Arc::clone(definition));
    }

    /// The registry changed.
    pub(crate) fn forget_current(&self) {
        self.current.lock().clear();
    }
}

/// What one decision has asked for so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) workflows: HashMap<WorkflowId, Option<Arc<Definition>>>,
    pub(crate) memory: HashMap<MemoryRead, Recalled>,
    /// What providers said that answer by program.
    pub(crate) said: HashMap<EffectId, Reheard>,
}

impl Definitions for Seen {
    fn current(&self, workflow: &WorkflowId) -> Lookup {
        match self.workflows.get(workflow) {
            Some(Some(definition)) => Lookup::Known(Arc::clone(definition)),
            Some(None) => Lookup::Unknown,
            None => Lookup::NotLoaded,
        }
    }
}

impl Memory for Seen {
    fn recall(&self, read: &MemoryRead) -> Option<Recalled> {
        self.memory.get(read).cloned()
    }
}

impl Asked for Seen {
    fn said(&self, effect: &EffectId) -> Reheard {
        self.said.get(effect).cloned().unwrap_or(Reheard::NotAsked)
    }
}
