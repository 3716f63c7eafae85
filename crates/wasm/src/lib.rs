//! Nodes that come from WebAssembly packs: loading a pack and calling one of its nodes, in the
//! core-module ABI of OpenWOP (RFC 0008).
//!
//! A pack is a folder with a manifest and a module. This crate checks both against each other and
//! against what this host serves, and calls a node: JSON in, JSON out. It knows no run, no store
//! and no network; who calls, when and how often is others' business.
//!
//! Invariants:
//! - No ambient authority. A module imports only what [`imports`](self) serves (a log, the recorded
//!   time, reproducible randomness), or it is not loaded; there is no WASI.
//! - Every call has its own instance, thrown away afterwards: calls cannot see each other.
//! - The same call gives the same answer: time and randomness are part of it, NaNs are canonical.
//! - Memory, fuel, wall time, and the sizes of everything that goes in and out are bounded.

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

/// Versions of the ABI a module may speak.
pub const ABI_VERSIONS: [u32; 1] = [1];
/// What interprets modules.
pub const ENGINE: &str = "wasmi";
