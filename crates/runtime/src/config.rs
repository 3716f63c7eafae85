//! Configuration of a runtime.

use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::conversation::Conversations;
use crate::machine_driver::Machines;
use crate::redact::Redactor;
use crate::retention::Retention;
use crate::webhooks::WebhookSender;
use async_trait::async_trait;
use std::sync::Arc;
use tandem_engine::model::Providers;
use tandem_engine::pack::PackTypes;
use tandem_engine::run::{AgentPolicy, Limits, NoticeRule};
use tandem_engine::tool::ToolServers;
use tandem_nodes::Performer;
use tandem_record::{Effect, EffectOutcome, RunId, TraceContext};
use tandem_store::Store;

/// Performs effects of a run's nodes. The interface between runs and the outside.
#[async_trait]
pub trait Perform: Send + Sync {
    async fn perform(
        &self,
        run: &RunId,
        effect: &Effect,
        trace: Option<&TraceContext>,
    ) -> EffectOutcome;
}

#[async_trait]
impl Perform for Performer {
    async fn perform(
        &self,
        run: &RunId,
        effect: &Effect,
        trace: Option<&TraceContext>,
    ) -> EffectOutcome {
        Performer::perform(self, run, effect, trace).await
    }
}

pub struct RuntimeConfig {
    pub store: Arc<dyn Store>,
    pub performer: Arc<dyn Perform>,
    /// Sends webhook deliveries. `None`: this host has no webhooks.
    pub webhook_sender: Option<Arc<dyn WebhookSender>>,
    /// Machines beside the workflow run, by the prefix of their streams.
    pub machines: Machines,
    /// Chat agents and their sessions. `None`: this host has no agents.
    pub conversations: Option<Conversations>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub limits: Limits,
    pub agents: AgentPolicy,
    /// Who is told of questions of runs, by transports of agents.
    pub notices: Vec<NoticeRule>,
    /// Enables node types and hooks for conformance tests. Never set in production.
    pub conformance: bool,
    /// Model providers that nodes may use. The performer implements the calls.
    pub providers: Providers,
    /// Tool servers that nodes may call. The performer implements the calls.
    pub tools: ToolServers,
    /// Node types of packs. The performer implements the calls.
    pub packs: PackTypes,
    pub redactor: Redactor,
    /// Name of this process among those on the same store.
    pub owner: String,
    /// No other process uses the store, so leases found at start belong to a process that ended.
    pub is_single_process: bool,
    /// Limit of concurrent calls to the outside. Internal work and deliveries have their own
    /// workers: twice and a quarter as many.
    pub max_effects: usize,
    /// Limit for one tenant. Default: half of `max_effects`.
    pub max_calls_per_tenant: Option<usize>,
    /// Limit for one target of one tenant, in addition to the tenant's fair share among its
    /// targets.
    pub max_calls_per_target: Option<usize>,
    /// Failures after which a timer or an effect is parked.
    pub park_after: u32,
    /// Limit of runs whose state is cached.
    pub cached_runs: usize,
    /// Limit of cached state in bytes, over all runs.
    pub cached_bytes: usize,
    /// How long an ended run keeps its log.
    pub retention: Retention,
    /// A document with unknown node settings is refused. Otherwise they are reported as warnings.
    pub strict_documents: bool,
}

impl RuntimeConfig {
    pub fn new(store: Arc<dyn Store>, performer: Arc<dyn Perform>) -> Self {
        Self {
            store,
            performer,
            webhook_sender: None,
            machines: Machines::default(),
            conversations: None,
            clock: Arc::new(SystemClock::default()),
            ids: Arc::new(RandomIds),
            limits: Limits::default(),
            agents: AgentPolicy::default(),
            notices: Vec::new(),
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
