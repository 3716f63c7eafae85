//! The code of flows as it is stored with a run: the sources and what else of the agent the code sees.
//!
//! A run goes on with its package after the agent has changed, so everything that could change the behaviour
//! of the code is part of it and of its version (Z-214).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tandem_script::SourceSet;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlowPackage {
    /// The zone of local times (Z-207).
    pub(crate) time_zone: String,
    /// `ctx.language`.
    pub(crate) language: String,
    /// `ctx.config`: the settings of the agent, its functions replaced by markers. Absent in packages that
    /// earlier versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Arc<Value>>,
    pub(crate) sources: Arc<SourceSet>,
}

impl FlowPackage {
    /// SHA-256 in hexadecimal.
    pub(crate) fn version(&self) -> String {
        let mut hash = Sha256::new();
        let config = self.config.as_ref().map(ToString::to_string);
        let sources = self.sources.hash();
        let parts = [&self.time_zone, &self.language, &sources];
        for part in parts.into_iter().chain(&config) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn to_text(&self) -> Arc<str> {
        let text = serde_json::to_string(self);
        Arc::from(text.expect("a package is strings and maps of strings"))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
