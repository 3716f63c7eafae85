//! Why a pack is not loaded. The operator reads it, so it says what to change.

#[derive(Debug, thiserror::Error)]
pub enum PackLoadError {
    #[error("{path} cannot be read: {why}")]
    Unreadable { path: String, why: String },
    #[error("{what} has more than {limit} bytes")]
    TooLarge { what: String, limit: usize },
    #[error("pack.json: {0}")]
    Manifest(String),
    #[error("it needs {0}, which this host does not serve")]
    Needs(String),
    #[error("the node type {0:?} is reserved for the protocol or this host")]
    Reserved(String),
    #[error("the node type {type_id:?} is brought by {other} already")]
    Taken { type_id: String, other: String },
    #[error("not a usable WebAssembly module: {0}")]
    Module(String),
    #[error("it imports {module}.{name}, which this host does not serve")]
    Import { module: String, name: String },
    #[error("it does not export {what}")]
    Export { what: String },
    #[error(
        "unsupported_abi_version: it speaks version {found} of the ABI; this host speaks version 1"
    )]
    AbiVersion { found: u64 },
    #[error("module and pack.json disagree: {0}")]
    Disagree(String),
    #[error("it broke down while it was asked for its nodes: {0}")]
    Trapped(String),
}
