//! `pack.json`, as far as this host uses it. A pack whose manifest requires something this host
//! does not support is not loaded: without it the node would behave differently.

use crate::ABI_VERSIONS;
use crate::load_error::PackLoadError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path};
use tandem_record::is_reserved_type;

/// Limit of nodes in one pack.
const MAX_NODES: usize = 256;
const MAX_NAME: usize = 256;

#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    kind: Option<String>,
    engines: Engines,
    #[serde(default)]
    pub(crate) nodes: Vec<Node>,
    #[serde(default)]
    agents: Vec<Value>,
    #[serde(default)]
    dependencies: BTreeMap<String, Value>,
    #[serde(default, rename = "peerDependencies")]
    peer_dependencies: BTreeMap<String, Value>,
    #[serde(default, rename = "peerDependenciesMeta")]
    peer_meta: BTreeMap<String, PeerMeta>,
    pub(crate) runtime: Runtime,
}

#[derive(Debug, Deserialize)]
struct Engines {
    openwop: String,
}

#[derive(Debug, Default, Deserialize)]
struct PeerMeta {
    #[serde(default)]
    optional: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    pub(crate) type_id: String,
    #[serde(default)]
    pub(crate) config_schema_ref: Option<String>,
    #[serde(default)]
    pub(crate) input_schema_ref: Option<String>,
    #[serde(default)]
    pub(crate) output_schema_ref: Option<String>,
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default)]
    requires_secrets: Vec<Value>,
    #[serde(default)]
    required_credentials: Vec<Value>,
    #[serde(default)]
    required_model_capabilities: Vec<String>,
    auth: Option<Value>,
    #[serde(default)]
    outputs: BTreeMap<String, Port>,
}

#[derive(Debug, Deserialize)]
struct Port {
    #[serde(default)]
    sensitive: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Runtime {
    language: String,
    pub(crate) entry: String,
    format: Option<String>,
    pub(crate) wasm: Option<WasmBlock>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WasmBlock {
    abi_version: Option<u64>,
    /// The module's own memory limit in pages of 64 KiB.
    pub(crate) memory_pages_max: Option<u64>,
}

impl Manifest {
    pub(crate) fn parse(text: &str) -> Result<Self, PackLoadError> {
        let manifest: Self =
            serde_json::from_str(text).map_err(|e| PackLoadError::Manifest(e.to_string()))?;
        manifest.check_shape()?;
        manifest.check_needs()?;
        Ok(manifest)
    }

    fn check_shape(&self) -> Result<(), PackLoadError> {
        let wrong = |message: String| Err(PackLoadError::Manifest(message));
        if !is_pack_name(&self.name) {
            return wrong(format!("{:?} is not a pack name", self.name));
        }
        if self.version.split('.').count() < 3 || !self.version.starts_with(char::is_numeric) {
            return wrong(format!("{:?} is not a version like 1.0.0", self.version));
        }
        if self.engines.openwop.is_empty() {
            return wrong("engines.openwop is empty".to_owned());
        }
        if self.kind.as_deref().is_some_and(|kind| kind != "node") {
            return wrong(format!("kind is {:?}, not \"node\"", self.kind));
        }
        if self.nodes.is_empty() || self.nodes.len() > MAX_NODES {
            return wrong(format!("it must bring 1 to {MAX_NODES} nodes"));
        }
        let mut type_ids = HashSet::new();
        for Node { type_id, .. } in &self.nodes {
            if !is_type_id(type_id) {
                return wrong(format!("{type_id:?} is not a node type"));
            }
            if is_reserved_type(type_id) {
                return Err(PackLoadError::Reserved(type_id.clone()));
            }
            if !type_ids.insert(type_id) {
                return wrong(format!("{type_id:?} is listed twice"));
            }
        }
        if !stays_inside(&self.runtime.entry) {
            return wrong(format!(
                "runtime.entry {:?} leads out of the pack",
                self.runtime.entry
            ));
        }
        Ok(())
    }

    fn check_needs(&self) -> Result<(), PackLoadError> {
        let needs = |what: String| Err(PackLoadError::Needs(what));
        let Runtime {
            language, format, ..
        } = &self.runtime;
        if language != "wasm" || format.as_deref().is_some_and(|format| format != "wasm") {
            let format = format.as_deref().unwrap_or(language);
            return needs(format!("the runtime {format:?} (unsupported_pack_runtime)"));
        }
        let declared = self.runtime.wasm.as_ref().and_then(|w| w.abi_version);
        if let Some(found) = declared.filter(|v| !ABI_VERSIONS.iter().any(|s| u64::from(*s) == *v))
        {
            return Err(PackLoadError::AbiVersion { found });
        }
        if !self.agents.is_empty() {
            return needs("agents of packs".to_owned());
        }
        if let Some(other) = self.dependencies.keys().next() {
            return needs(format!("the pack {other:?}"));
        }
        let optional = |peer: &&String| self.peer_meta.get(*peer).is_some_and(|m| m.optional);
        if let Some(peer) = self.peer_dependencies.keys().find(|peer| !optional(peer)) {
            return needs(format!("{peer:?} (pack_peer_dependency_missing)"));
        }
        self.nodes.iter().try_for_each(Node::check_needs)
    }
}

impl Node {
    fn check_needs(&self) -> Result<(), PackLoadError> {
        let id = &self.type_id;
        let need = if let Some(facility) = self.requires.first() {
            format!("{facility:?} for {id}")
        } else if !self.requires_secrets.is_empty() || !self.required_credentials.is_empty() {
            format!("secrets for {id}")
        } else if self.auth.is_some() {
            format!("third-party authentication for {id}")
        } else if let Some(capability) = self.required_model_capabilities.first() {
            format!("a model with {capability:?} for {id}")
        } else if self.outputs.values().any(|port| port.sensitive) {
            format!("sensitive outputs declared by the pack for {id} (use outputSensitivity)")
        } else {
            return Ok(());
        };
        Err(PackLoadError::Needs(need))
    }
}

/// Reverse-DNS with a known scope, as published packs are named.
fn is_pack_name(name: &str) -> bool {
    let mut parts = name.split('.');
    let scope = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let is_name_part = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    ["core", "vendor", "community", "private", "local"].contains(&scope)
        && name.len() <= MAX_NAME
        && rest.len() >= 2
        && rest.iter().all(is_name_part)
}

fn is_type_id(id: &str) -> bool {
    id.len() <= MAX_NAME
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether a path of the manifest is inside the pack.
pub(crate) fn stays_inside(path: &str) -> bool {
    let path = Path::new(path);
    let mut parts = path.components();
    path.components().next().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
