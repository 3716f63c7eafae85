//! The pack part of discovery.

use serde_json::{Value, json};

/// How nodes of packs are run on this host.
#[derive(Debug, Clone)]
pub struct WasmPacks {
    pub abi_versions: &'static [u32],
    pub engine: &'static str,
    pub max_memory_bytes: usize,
    pub max_execution_ms: u64,
    pub max_fuel: u64,
    /// Names of the packs that loaded.
    pub loaded: Vec<String>,
}

pub(super) fn document(packs: &WasmPacks) -> Value {
    json!({"wasm": {
        "supported": true,
        "abiVersions": packs.abi_versions,
        "engine": packs.engine,
        "maxMemoryBytes": packs.max_memory_bytes,
        "maxExecutionMs": packs.max_execution_ms,
        "maxFuel": packs.max_fuel,
        "loadedPacks": packs.loaded,
    }})
}
