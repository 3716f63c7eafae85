//! The packs of a host, by the node types they provide.

use crate::call::{self, Caller};
use crate::limits::PackLimits;
use crate::load::{Files, Pack};
use crate::load_error::PackLoadError;
use crate::sandbox::{self, Stop};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_record::{ErrorInfo, PackAnswer, PackCall};
use tandem_schema::Schema;
use wasmi::Engine;

pub struct Packs {
    engine: Engine,
    limits: PackLimits,
    packs: Vec<Arc<Pack>>,
    by_type: BTreeMap<String, (Arc<Pack>, usize)>,
}

/// A node type and the pack it comes from.
#[derive(Clone, Debug)]
pub struct TypeInfo {
    pub type_id: String,
    /// `name@version`.
    pub pack: String,
    /// Schema of a node's configuration.
    pub config: Option<Arc<Schema>>,
}

impl Packs {
    pub fn new(limits: PackLimits) -> Self {
        Self {
            engine: sandbox::engine(),
            limits,
            packs: Vec::new(),
            by_type: BTreeMap::new(),
        }
    }

    /// Adds a pack, completely or not at all.
    pub(crate) fn add(
        &mut self,
        manifest: &str,
        files: Files<'_>,
    ) -> Result<Arc<Pack>, PackLoadError> {
        let pack = Pack::load(&self.engine, manifest, files, &self.limits)?;
        let pack = Arc::new(pack);
        for node in &pack.nodes {
            if let Some((other, _)) = self.by_type.get(&node.type_id) {
                return Err(PackLoadError::Taken {
                    type_id: node.type_id.clone(),
                    other: other.title(),
                });
            }
        }
        for (index, node) in pack.nodes.iter().enumerate() {
            let place = (Arc::clone(&pack), index);
            self.by_type.insert(node.type_id.clone(), place);
        }
        self.packs.push(Arc::clone(&pack));
        Ok(pack)
    }

    pub fn limits(&self) -> &PackLimits {
        &self.limits
    }

    /// Names of the loaded packs, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.packs.iter().map(|p| p.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    pub fn types(&self) -> impl Iterator<Item = TypeInfo> {
        self.by_type
            .iter()
            .map(|(type_id, (pack, index))| TypeInfo {
                type_id: type_id.clone(),
                pack: pack.title(),
                config: pack.nodes[*index].schemas.of_config(),
            })
    }

    /// Calls a node. Takes up to the time limit; call it on a blocking thread.
    pub fn call(&self, who: Caller<'_>, call: &PackCall, stop: Stop) -> PackAnswer {
        match self.by_type.get(&call.type_id) {
            Some((pack, index)) => call::call(pack, *index, who, call, &self.limits, stop),
            None => {
                let message = format!("no pack of this host brings {:?}", call.type_id);
                PackAnswer::failed(ErrorInfo::new("pack_unavailable", message))
            }
        }
    }
}
