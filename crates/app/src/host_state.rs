//! What entry points tell about the host itself: capabilities, readiness, and texts without its secrets.

use crate::app::App;
use tandem_runtime::audit::PublicKey;
use tandem_runtime::{
    AgentPolicy, Fault, Limits, Metrics, PackTypes, Providers, Runtime, ToolServers,
};

/// Work that waits, of all tenants.
pub struct WaitingWork {
    /// Effects to be performed.
    pub queued: u64,
    /// Timers and effects that wait for somebody to ask for a retry.
    pub parked: u64,
}

impl WaitingWork {
    pub async fn read(runtime: &Runtime) -> Result<Self, Fault> {
        runtime.note_open_questions();
        let store = runtime.store();
        Ok(Self {
            queued: store.depth().await?,
            parked: store.count_parked().await?,
        })
    }
}

impl App {
    /// How other hosts name this one.
    pub fn host_id(&self) -> &str {
        &self.inner.host_id
    }

    /// Why this host cannot work, in words that hold no user data.
    pub async fn readiness(&self) -> Result<(), String> {
        self.runtime().readiness().await
    }

    pub async fn waiting_work(&self) -> Result<WaitingWork, Fault> {
        WaitingWork::read(self.runtime()).await
    }

    pub fn metrics(&self) -> &Metrics {
        self.runtime().metrics()
    }

    pub fn limits(&self) -> &Limits {
        self.runtime().limits()
    }

    pub fn agent_policy(&self) -> &AgentPolicy {
        self.runtime().agent_policy()
    }

    pub fn providers(&self) -> &Providers {
        self.runtime().providers()
    }

    pub fn tools(&self) -> &ToolServers {
        self.runtime().tools()
    }

    pub fn packs(&self) -> &PackTypes {
        self.runtime().packs()
    }

    pub fn has_conformance_types(&self) -> bool {
        self.runtime().has_conformance_types()
    }

    pub fn has_webhooks(&self) -> bool {
        self.runtime().webhook_sender().is_some()
    }

    /// Verifies the audit log and receipts.
    pub fn audit_public_key(&self) -> PublicKey {
        self.inner.audit_signer.public_key()
    }

    /// JSON text without the secrets of the host and without what looks like one.
    pub fn redacted_json(&self, json: String) -> String {
        self.runtime().redacted_json(json)
    }

    /// Text without the secrets of the host.
    pub fn mask_known_secrets(&self, text: String) -> String {
        self.runtime().mask_known_secrets(text)
    }
}
