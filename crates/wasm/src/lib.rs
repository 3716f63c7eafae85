//! Nodes from WebAssembly packs: loads a pack and calls one of its nodes, with the core-module ABI
//! of OpenWOP (RFC 0008).
//!
//! A pack is a folder with a manifest and a module. This crate checks both against each other and
//! against what this host supports, and calls a node: JSON in, JSON out. It does not depend on
//! runs, the store or the network; others decide when and how often a node is called.
//!
//! Invariants:
//! - No ambient authority. A module may import only what [`imports`](self) provides (a log, the
//!   recorded time, reproducible randomness), or it is not loaded; there is no WASI.
//! - Every call has its own instance, which is dropped afterwards: calls cannot see each other.
//! - The same call gives the same answer: time and randomness are part of it, NaNs are canonical.
//! - Memory, fuel, wall time, and the sizes of all inputs and outputs are limited.

mod call;
mod conformance;
mod directory;
mod imports;
mod limits;
mod load;
mod load_error;
mod manifest;
mod memory_section;
mod packs;
mod sandbox;
mod schemas;

#[cfg(test)]
mod tests;

pub use call::Caller;
pub use conformance::conformance_packs;
pub use directory::{RejectedPack, load_directories};
pub use limits::PackLimits;
pub use load::Pack;
pub use load_error::PackLoadError;
pub use packs::{Packs, TypeInfo};
pub use sandbox::Stop;

/// Supported versions of the ABI.
pub const ABI_VERSIONS: [u32; 1] = [1];
/// The interpreter of modules.
pub const ENGINE: &str = "wasmi";
