//! What a runtime is made of.

use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::redact::Redactor;
use crate::retention::Retention;
use crate::webhooks::WebhookSender;
use async_trait::async_trait;
use std::sync::Arc;
use tandem_engine::model::Providers;
use tandem_engine::pack::PackTypes;
use tandem_engine::run::{AgentPolicy, Limits};
use tandem_engine::tool::ToolServers;
use tandem_nodes::Performer;
use tandem_record::{Effect, EffectOutcome, TraceContext};
use tandem_store::Store;

/// Carries out a node's effect. The seam between the runtime and the world.
#[async_trait]
pub trait Perform: Send + Sync {
    async fn perform(&self, effect: &Effect, trace: Option<&TraceContext>) -> EffectOutcome;
}

#[async_trait]
impl Perform for Performer {
    async fn perform(&self, effect: &Effect, trace: Option<&TraceContext>) -> EffectOutcome {
        Performer::perform(self, effect, trace).await
    }
}

pub struct RuntimeConfig {
    pub store: Arc<dyn Store>,
    pub performer: Arc<dyn Perform>,
    /// Who delivers to webhooks; without one there are none.
    pub webhook_sender: Option<Arc<dyn WebhookSender>>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub limits: Limits,
    pub agents: AgentPolicy,
    /// Node types and hooks for conformance tests exist here. Never where real work is done.
    pub conformance: bool,
    /// Models nodes may ask; the performer knows how.
    pub providers: Providers,
    /// Tool servers nodes may call; the performer knows how.
    pub tools: ToolServers,
    /// Node types packs bring; the performer knows how they are called.
    pub packs: PackTypes,
    pub redactor: Redactor,
    /// This process among others on the same store.
    pub owner: String,
    /// No other process uses the store, so leases found at start belong to the dead.
    pub is_single_process: bool,
    /// Calls to the outside under way at once. Internal work and deliveries have workers of their own,
    /// twice and a quarter as many.
    pub max_effects: usize,
    /// Of one tenant; half of them unless it says otherwise.
    pub max_calls_per_tenant: Option<usize>,
    /// Of one tenant to one target, on top of the tenant's fair share among its targets.
    pub max_calls_per_target: Option<usize>,
    /// Failures after which a timer or an effect is parked.
    pub park_after: u32,
    /// Runs whose state is kept in memory.
    pub cached_runs: usize,
    /// Bytes of state kept in memory, over all runs.
    pub cached_bytes: usize,
    /// How long an ended run keeps its log.
    pub retention: Retention,
    /// Unknown settings of nodes make a document refused; told as warnings otherwise.
    pub strict_documents: bool,
}

impl RuntimeConfig {
    pub fn new(store: Arc<dyn Store>, performer: Arc<dyn Perform>) -> Self {
        Self {
            store,
            performer,
            webhook_sender: None,
            clock: Arc::new(SystemClock::default()),
            ids: Arc::new(RandomIds),
            limits: Limits::default(),
            agents: AgentPolicy::default(),
            conformance: false,
            providers: Providers::default(),
            tools: ToolServers::default(),
            packs: PackTypes::default(),
            redactor: Redactor::default(),
            owner: format!("tandem-{}", uuid::Uuid::new_v4()),
            is_single_process: true,
            max_effects: 256,
            max_calls_per_tenant: None,
            max_calls_per_target: None,
            park_after: 10,
            cached_runs: 2048,
            cached_bytes: 256 * 1024 * 1024,
            retention: Retention::default(),
            strict_documents: true,
        }
    }
}
