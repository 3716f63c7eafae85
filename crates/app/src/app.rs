//! What the use cases share, and who calls them.

use crate::conversation::{InboundLimits, NetworkPerson};
use crate::error::AppError;
use crate::fair_shares::FairShares;
use crate::key_use::KeyUse;
use crate::reader_memory::reader_memory;
use crate::request_key::InFlight;
use serde_json::json;
use std::sync::Arc;
use tandem_access::{
    Groups, Identity, Keyring, LinkSigner, LoginCodes, RateKey, RateLimiter, Scope, Sessions,
};
use tandem_record::{Object, Timestamp};
use tandem_runtime::Runtime;
use tandem_runtime::audit::AuditSigner;

/// Denials per second and key that are written to the audit log.
const AUDITED_DENIALS_PER_SECOND: u32 = 10;
const AUDITED_DENIAL_BURST: u32 = 200;

/// Everything the host passes in to build the application layer.
pub struct AppConfig {
    pub runtime: Runtime,
    pub keyring: Arc<Keyring>,
    /// One-time login codes for the console. They end with the key they were made for.
    pub codes: Arc<LoginCodes>,
    /// Console sessions. They end with the key they were opened with.
    pub sessions: Arc<Sessions>,
    /// Configured approver groups of every tenant; a tenant's own groups override them.
    pub groups: Groups,
    /// Signs and verifies links to open interrupts.
    pub links: LinkSigner,
    /// Who decides questions of workflow runs on networks.
    pub network_people: Vec<NetworkPerson>,
    /// Seals the audit log and signs receipts.
    pub audit_signer: Arc<AuditSigner>,
    /// How other hosts name this one.
    pub host_id: String,
    /// Test hooks are served. A claimed parent may then be a host on this machine.
    pub test_hooks: bool,
}

/// The use cases of this host. A handle; clones share one state.
#[derive(Clone)]
pub struct App {
    pub(crate) inner: Arc<AppState>,
}

pub(crate) struct AppState {
    pub(crate) runtime: Runtime,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) codes: Arc<LoginCodes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) groups: Groups,
    pub(crate) links: LinkSigner,
    pub(crate) network_people: Vec<NetworkPerson>,
    pub(crate) audit_signer: Arc<AuditSigner>,
    pub(crate) host_id: String,
    pub(crate) test_hooks: bool,
    pub(crate) in_flight: InFlight,
    pub(crate) inbound: InboundLimits,
    /// Limits audit entries about denials, by key, so that repeated denials cannot fill the audit
    /// log.
    denials: RateLimiter,
    key_use: KeyUse,
    reader_memory: Arc<FairShares>,
}

impl App {
    pub fn new(config: AppConfig) -> Self {
        let denials = RateLimiter::new(AUDITED_DENIALS_PER_SECOND, AUDITED_DENIAL_BURST);
        Self {
            inner: Arc::new(AppState {
                runtime: config.runtime,
                keyring: config.keyring,
                codes: config.codes,
                sessions: config.sessions,
                groups: config.groups,
                links: config.links,
                network_people: config.network_people,
                audit_signer: config.audit_signer,
                host_id: config.host_id,
                test_hooks: config.test_hooks,
                in_flight: InFlight::default(),
                inbound: InboundLimits::default(),
                denials,
                key_use: KeyUse::default(),
                reader_memory: reader_memory(),
            }),
        }
    }

    /// The clock of the runtime: all entry points agree on the time.
    pub fn now(&self) -> Timestamp {
        self.runtime().clock().now()
    }

    /// Room in memory for what readers have not taken yet.
    pub fn reader_memory(&self) -> &Arc<FairShares> {
        &self.inner.reader_memory
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    /// The runtime, acting for a caller: what it does is recorded as theirs in the audit log.
    pub(crate) fn runtime_for(&self, caller: &Identity) -> Runtime {
        self.runtime().acting_as(caller.actor())
    }

    /// Refuses a caller without the scope, and writes an audit entry about the denial. `operation`
    /// says how the caller asked, for example the HTTP method.
    pub async fn check_scope(
        &self,
        caller: &Identity,
        scope: Scope,
        operation: &str,
    ) -> Result<(), AppError> {
        let Err(denied) = caller.require_scope(scope) else {
            return Ok(());
        };
        let now = u64::try_from(self.now().0).unwrap_or(0);
        let key = RateKey::credential(&caller.key_id);
        if self.inner.denials.check(key, now).is_ok() {
            let details = Object::from_iter([
                ("scope".to_owned(), json!(scope.as_str())),
                ("method".to_owned(), json!(operation)),
            ]);
            self.audit_key(caller, "access.denied", details).await;
        }
        Err(denied.into())
    }

    /// Writes an audit entry that a key is in use, once a day.
    pub async fn audit_key_use(&self, caller: &Identity) {
        if self
            .inner
            .key_use
            .is_first_today(&caller.key_id, self.now())
        {
            self.audit_key(caller, "key.used", Object::new()).await;
        }
    }

    /// Writes an audit entry about the caller's key. A failure is logged and ignored.
    async fn audit_key(&self, caller: &Identity, action: &str, details: Object) {
        let runtime = self.runtime_for(caller);
        let tenant = Some(&caller.tenant);
        let entry = runtime.record_audit_entry(tenant, action, &caller.key_id, details);
        if let Err(fault) = entry.await {
            tracing::warn!(%fault, action, "the audit entry was not written");
        }
    }
}
