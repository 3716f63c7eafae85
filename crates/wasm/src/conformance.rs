//! Packs of the protocol's own test workflows: one that greets, one that exceeds its memory. Our
//! own modules under the names in those workflows; only for hosts with test hooks.

use crate::load_error::PackLoadError;
use crate::packs::Packs;

const PACKS: [(&str, &[u8]); 2] = [
    (
        include_str!("../packs/greet/pack.json"),
        include_bytes!("../packs/greet/pack.wasm"),
    ),
    (
        include_str!("../packs/memory-bomb/pack.json"),
        include_bytes!("../packs/memory-bomb/pack.wasm"),
    ),
];

/// Adds those that the operator has not installed.
pub fn conformance_packs(packs: &mut Packs) {
    for (manifest, module) in PACKS {
        match packs.add(manifest, &|_, _| Ok(module.to_vec())) {
            // The operator may have installed the published pack; that one is used then.
            Ok(_) | Err(PackLoadError::Taken { .. }) => {}
            Err(load_error) => unreachable!("tests load them: {load_error}"),
        }
    }
}
