//! The operator's packs, loaded at the start. An invalid pack is reported and the others are
//! loaded.

use crate::config::Settings;
use crate::failure::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use tandem_runtime::{PackType, PackTypes};
use tandem_wasm::{
    ABI_VERSIONS, ENGINE, PackLimits, Packs, TypeInfo, conformance_packs, load_directories,
};
use tandem_wire::v1::capabilities::WasmPacks;

/// The packs a server may call; `None` without a configured directory.
pub(super) fn load(settings: &Settings) -> Result<Option<Arc<Packs>>, Failure> {
    if settings.packs.is_empty() && !settings.test_seams {
        return Ok(None);
    }
    let (mut packs, refused) = from_directories(&settings.packs)?;
    for line in &refused {
        tracing::warn!("{line}");
    }
    if !settings.packs.is_empty() {
        let (loaded, refused) = (packs.names().len(), refused.len());
        tracing::info!(loaded, refused, "{loaded} packs loaded, {refused} refused");
    }
    if settings.test_seams {
        conformance_packs(&mut packs);
    }
    Ok(Some(Arc::new(packs)))
}

/// The packs in the directories, and an error line for each invalid one.
pub(crate) fn from_directories(directories: &[PathBuf]) -> Result<(Packs, Vec<String>), Failure> {
    let mut packs = Packs::new(PackLimits::default());
    let refused = load_directories(&mut packs, directories).map_err(|(directory, error)| {
        Failure::new(
            format!("cannot read the packs in {}: {error}", directory.display()),
            "Name a readable directory with --packs.",
        )
    })?;
    let messages = refused
        .iter()
        .map(|pack| {
            format!(
                "the pack {} is not loaded: {}",
                pack.folder.display(),
                pack.why
            )
        })
        .collect();
    Ok((packs, messages))
}

/// The node types of packs.
pub(crate) fn types(packs: Option<&Packs>) -> PackTypes {
    entries(packs).collect()
}

pub(super) fn entries(packs: Option<&Packs>) -> impl Iterator<Item = (String, PackType)> {
    let types = packs.into_iter().flat_map(Packs::types);
    types.map(|info| {
        let TypeInfo {
            type_id,
            pack,
            config,
        } = info;
        (type_id, PackType { pack, config })
    })
}

/// The packs as advertised in discovery.
pub(super) fn advertised(packs: &Packs) -> WasmPacks {
    let limits = packs.limits();
    WasmPacks {
        abi_versions: &ABI_VERSIONS,
        engine: ENGINE,
        max_memory_bytes: limits.memory_bytes,
        max_execution_ms: u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX),
        max_fuel: limits.fuel,
        loaded: packs.names(),
    }
}
