//! A runtime on a memory store, with a clock that follows tokio's paused time and a scripted performer.

use crate::{
    CallFaults, CommittedEffects, FailingStore, Faults, ScriptedPerformer, ScriptedWebhookSender,
    SimClock, SimIds, WorkflowBuilder,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    Command, DrainPolicy, Event, ForkMode, Object, Owner, RecordedEvent, Reply, RunId, RunOptions,
    RunRequest, RunStatus, Seq, TenantId, Timestamp, Transport, WorkflowId,
};
use tandem_runtime::{
    AgentPolicy, Clock, ForkRequest, IdempotencyRequest, Limits, MOCK_PROVIDER, Machines, NewRun,
    PackTypes, Permissions, Provider, Providers, Redactor, Retention, Run, Runtime, RuntimeConfig,
    SubmitError, ToolServers,
};
use tandem_store::Store;
use tandem_store::memory::MemoryStore;

pub struct TestHost {
    pub store: MemoryStore,
    pub faults: Arc<Faults>,
    pub performer: Arc<ScriptedPerformer>,
    pub webhook_sender: Arc<ScriptedWebhookSender>,
    pub committed: Arc<CommittedEffects>,
    pub runtime: Runtime,
}

/// Settings of the next host.
pub struct TestHostBuilder {
    pub store: MemoryStore,
    pub faults: Faults,
    pub call_faults: CallFaults,
    pub webhook_sender: Arc<ScriptedWebhookSender>,
    pub clock: Arc<dyn Clock>,
    pub redactor: Redactor,
    pub retention: Retention,
    pub limits: Limits,
    pub agents: AgentPolicy,
    pub providers: Providers,
    pub packs: PackTypes,
    /// Machines beside the workflow run.
    pub machines: Machines,
    /// Number of this process on its store; each creates its own ids.
    pub incarnation: u64,
    /// Whether other processes use the store at the same time.
    pub shares_store: bool,
    pub max_effects: usize,
    pub cached_runs: usize,
}

impl Default for TestHostBuilder {
    fn default() -> Self {
        Self {
            store: MemoryStore::new(),
            faults: Faults::none(),
            call_faults: CallFaults {
                retryable_percent: 0,
                permanent_percent: 0,
                max_latency_ms: 0,
            },
            webhook_sender: Arc::default(),
            clock: Arc::new(SimClock::starting_at(Timestamp(1_800_000_000_000))),
            redactor: Redactor::default(),
            retention: Retention::default(),
            limits: Limits::default(),
            agents: AgentPolicy::default(),
            providers: providers(),
            packs: packs(),
            machines: Machines::default(),
            incarnation: 1,
            shares_store: false,
            max_effects: 256,
            cached_runs: 2048,
        }
    }
}

impl TestHostBuilder {
    pub async fn build(self) -> TestHost {
        let faults = Arc::new(self.faults);
        let committed = Arc::new(CommittedEffects::default());
        let performer = Arc::new(ScriptedPerformer::new(
            1,
            self.call_faults,
            Arc::clone(&committed),
        ));
        let opened: Arc<dyn Store> = Arc::new(self.store.reopen());
        let store = FailingStore::new(opened, Arc::clone(&faults), Arc::clone(&committed));
        let mut config = RuntimeConfig::new(Arc::new(store), Arc::clone(&performer) as Arc<_>);
        config.webhook_sender = Some(Arc::clone(&self.webhook_sender) as Arc<_>);
        config.clock = self.clock;
        config.ids = Arc::new(SimIds::new(self.incarnation));
        config.redactor = self.redactor;
        config.retention = self.retention;
        config.limits = self.limits;
        config.agents = self.agents;
        config.providers = self.providers;
        config.conformance = true;
        config.tools = tools();
        config.packs = self.packs;
        config.machines = self.machines;
        config.is_single_process = !self.shares_store;
        config.max_effects = self.max_effects;
        config.cached_runs = self.cached_runs;
        TestHost {
            store: self.store,
            faults,
            performer,
            webhook_sender: self.webhook_sender,
            committed,
            runtime: Runtime::start(config).await.expect("the store opens"),
        }
    }
}

/// A model the performer answers for, and a programmed one.
pub fn providers() -> Providers {
    let acme = Provider {
        default_model: Some("large".to_owned()),
        programmed: false,
    };
    let mock = Provider {
        default_model: None,
        programmed: true,
    };
    Providers::from_iter([("acme".to_owned(), acme), (MOCK_PROVIDER.to_owned(), mock)])
}

/// A tool server the performer answers for.
pub fn tools() -> ToolServers {
    ToolServers::from_iter(["docs".to_owned()])
}

/// A pack's node type the performer answers for.
pub const PACK_TYPE: &str = "vendor.acme.tools.act";

pub fn packs() -> PackTypes {
    PackTypes::from_iter([(PACK_TYPE, "vendor.acme.tools@1.0.0")])
}

pub fn tenant() -> TenantId {
    TenantId::new("acme")
}

pub fn new_run(workflow: &str, inputs: Value) -> NewRun {
    let Value::Object(inputs) = inputs else {
        panic!("inputs are an object");
    };
    NewRun {
        workflow_id: WorkflowId::new(workflow),
        request: RunRequest {
            owner: Owner {
                tenant: tenant(),
                workspace: None,
                principal: None,
            },
            inputs,
            erased_defaults: Vec::new(),
            untrusted_inputs: Vec::new(),
            sensitive_inputs: Vec::new(),
            options: RunOptions::default(),
            scope_id: None,
            callback_url: None,
            callback_may_answer: false,
            parent: None,
            claimed_parent: None,
            waiting_session: None,
            conformance_role: false,
            execution_model: None,
            isolated_memory: false,
            transport: Transport::Rest,
            trace: None,
            memory: None,
            forked_from: None,
            forked_by: Vec::new(),
            levels_above: 0,
        },
        exclusive_scope: false,
    }
}

impl TestHost {
    pub async fn new() -> Self {
        TestHostBuilder::default().build().await
    }

    pub async fn register(&self, flow: WorkflowBuilder) {
        let document = flow.document();
        let registered = self
            .runtime
            .register(Some(&tenant().into()), &document, Permissions::default())
            .await;
        registered.expect("the workflow is sound");
    }

    /// Registers a document as a host did that did not know today's secrets; now it would be refused.
    pub async fn register_before_secrets(&self, flow: WorkflowBuilder) {
        let earlier = TestHostBuilder {
            store: self.store.reopen(),
            incarnation: 99,
            ..TestHostBuilder::default()
        };
        let earlier = earlier.build().await;
        earlier.register(flow).await;
        earlier.runtime.shutdown(std::time::Duration::ZERO).await;
    }

    pub async fn create(&self, workflow: &str, inputs: Value) -> RunId {
        let created = self.create_with(workflow, inputs, None).await;
        created.expect("the run may start")
    }

    pub async fn create_with(
        &self,
        workflow: &str,
        inputs: Value,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<RunId, SubmitError> {
        self.runtime
            .create_run(new_run(workflow, inputs), idempotency)
            .await
    }

    pub async fn submit(&self, run: &RunId, command: Command) -> Result<Reply, SubmitError> {
        self.runtime
            .submit(&tenant().into(), run, command, None)
            .await
    }

    pub async fn cancel(&self, run: &RunId) -> Result<Reply, SubmitError> {
        let command = Command::Cancel {
            reason: None,
            by: None,
            by_parent: None,
        };
        self.submit(run, command).await
    }

    pub async fn pause(&self, run: &RunId) -> Result<Reply, SubmitError> {
        let command = Command::Pause {
            reason: None,
            policy: DrainPolicy::Immediate,
        };
        self.submit(run, command).await
    }

    pub async fn resume(&self, run: &RunId) -> Result<Reply, SubmitError> {
        self.submit(run, Command::Resume { reason: None }).await
    }

    pub async fn log(&self, run: &RunId) -> Vec<RecordedEvent> {
        let page = self.runtime.events(run, None, usize::MAX).await;
        page.expect("the store answers")
            .expect("the run exists")
            .events
    }

    /// The run folded from its log alone.
    pub async fn folded(&self, run: &RunId) -> Run {
        let stored = self.runtime.find_run(&tenant(), run).await;
        let stored = stored.expect("the store answers").expect("the run exists");
        let definition = self
            .runtime
            .pinned_definition(&stored)
            .await
            .expect("it is pinned");
        let mut folded = Run::new(run.clone(), definition);
        for recorded in self.log(run).await {
            folded.evolve(&recorded);
        }
        folded
    }

    pub async fn status(&self, run: &RunId) -> RunStatus {
        let stored = self.runtime.find_run(&tenant(), run).await;
        stored
            .expect("the store answers")
            .expect("the run exists")
            .row
            .status
    }

    /// A fork of a run that exists.
    pub async fn fork(&self, run: &RunId, mode: ForkMode, from: Seq) -> Result<RunId, SubmitError> {
        let stored = self.runtime.find_run(&tenant(), run).await;
        let stored = stored.expect("the store answers").expect("the run exists");
        let fork_request = ForkRequest {
            mode,
            from_seq: from,
            overlay: RunOptions::default(),
            trace: None,
            conformance_role: false,
        };
        self.runtime.fork_run(&stored, fork_request, None).await
    }

    /// Advances virtual time.
    pub async fn elapse(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Advances virtual time until the run has ended; panics after a thousand seconds.
    pub async fn ended(&self, run: &RunId) -> RunStatus {
        for _ in 0..10_000 {
            let status = self.status(run).await;
            if status.is_terminal() {
                return status;
            }
            self.elapse(100).await;
        }
        panic!(
            "{run} is still {:?} after a thousand seconds",
            self.status(run).await
        );
    }
}

/// Names of the events, for comparing runs.
pub fn names(log: &[RecordedEvent]) -> Vec<String> {
    log.iter()
        .map(|recorded| match serde_json::to_value(&recorded.event) {
            Ok(Value::Object(event)) => name(&event),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn name(event: &Object) -> String {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", text("t"), text("node"))
        .trim_end()
        .to_owned()
}

/// Child runs named in the log, in order.
pub fn children(log: &[RecordedEvent]) -> Vec<RunId> {
    log.iter()
        .filter_map(|recorded| match &recorded.event {
            Event::NodeDispatched { child, .. } => Some(child.clone()),
            _ => None,
        })
        .collect()
}
