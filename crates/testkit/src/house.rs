//! A runtime on a memory store, with a clock that follows tokio's paused time and a scripted world.

use crate::{
    FailingStore, Faults, Flow, Script, ScriptedCourier, ScriptedWorld, Seen, SimClock, SimIds,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    Command, DrainPolicy, Event, ForkMode, Object, Owner, Recorded, Reply, RunId, RunOptions,
    RunRequest, RunStatus, Seq, TenantId, Timestamp, Transport, WorkflowId,
};
use tandem_runtime::{
    AgentPolicy, Answering, Clock, ForkRequest, Limits, MOCK_PROVIDER, NewRun, PackTypes,
    Permissions, Provider, Providers, Redactor, Retention, Run, Runtime, RuntimeConfig,
    SubmitError, ToolServers,
};
use tandem_store::Store;
use tandem_store::memory::MemoryStore;

pub struct House {
    pub store: MemoryStore,
    pub faults: Arc<Faults>,
    pub world: Arc<ScriptedWorld>,
    pub courier: Arc<ScriptedCourier>,
    pub runtime: Runtime,
}

/// How the next house is built.
pub struct Plan {
    pub store: MemoryStore,
    pub faults: Faults,
    pub script: Script,
    pub courier: Arc<ScriptedCourier>,
    pub clock: Arc<dyn Clock>,
    pub redactor: Redactor,
    pub retention: Retention,
    pub limits: Limits,
    pub agents: AgentPolicy,
    pub providers: Providers,
    pub packs: PackTypes,
    /// Which process this is on its store; each gives its own ids.
    pub life: u64,
    pub max_effects: usize,
    pub cached_runs: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            store: MemoryStore::new(),
            faults: Faults::none(),
            script: Script {
                trouble: 0,
                broken: 0,
                slowest_ms: 0,
            },
            courier: Arc::default(),
            clock: Arc::new(SimClock::starting_at(Timestamp(1_800_000_000_000))),
            redactor: Redactor::default(),
            retention: Retention::default(),
            limits: Limits::default(),
            agents: AgentPolicy::default(),
            providers: providers(),
            packs: packs(),
            life: 1,
            max_effects: 256,
            cached_runs: 2048,
        }
    }
}

impl Plan {
    pub async fn build(self) -> House {
        let faults = Arc::new(self.faults);
        let seen = Arc::new(Seen::default());
        let world = Arc::new(ScriptedWorld::new(1, self.script, Arc::clone(&seen)));
        let opened: Arc<dyn Store> = Arc::new(self.store.reopen());
        let store = FailingStore::new(opened, Arc::clone(&faults), seen);
        let mut config = RuntimeConfig::new(Arc::new(store), Arc::clone(&world) as Arc<_>);
        config.courier = Some(Arc::clone(&self.courier) as Arc<_>);
        config.clock = self.clock;
        config.ids = Arc::new(SimIds::new(self.life));
        config.redactor = self.redactor;
        config.retention = self.retention;
        config.limits = self.limits;
        config.agents = self.agents;
        config.providers = self.providers;
        config.conformance = true;
        config.tools = tools();
        config.packs = self.packs;
        config.max_effects = self.max_effects;
        config.cached_runs = self.cached_runs;
        House {
            store: self.store,
            faults,
            world,
            courier: self.courier,
            runtime: Runtime::start(config).await.expect("the store opens"),
        }
    }
}

/// A model the world answers for, and the one that answers by program.
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

/// A tool server the world answers for.
pub fn tools() -> ToolServers {
    ToolServers::from_iter(["docs".to_owned()])
}

/// A type the world answers for as a pack would.
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
            conformance_role: false,
            execution_model: None,
            isolated_memory: false,
            transport: Transport::Rest,
            trace: None,
            memory: None,
            forked_from: None,
        },
        exclusive_scope: false,
    }
}

impl House {
    pub async fn new() -> Self {
        Plan::default().build().await
    }

    pub async fn register(&self, flow: Flow) {
        let document = flow.document();
        let registered = self
            .runtime
            .register(Some(&tenant().into()), &document, Permissions::default())
            .await;
        registered.expect("the workflow is sound");
    }

    pub async fn create(&self, workflow: &str, inputs: Value) -> RunId {
        let created = self.create_with(workflow, inputs, None).await;
        created.expect("the run may start")
    }

    pub async fn create_with(
        &self,
        workflow: &str,
        inputs: Value,
        answering: Option<Answering>,
    ) -> Result<RunId, SubmitError> {
        self.runtime
            .create_run(new_run(workflow, inputs), answering)
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

    pub async fn log(&self, run: &RunId) -> Vec<Recorded> {
        let page = self.runtime.events(run, None, usize::MAX).await;
        page.expect("the store answers")
            .expect("the run exists")
            .events
    }

    /// The run folded from its log alone.
    pub async fn folded(&self, run: &RunId) -> Run {
        let stored = self.runtime.find_run(&tenant(), run).await;
        let stored = stored.expect("the store answers").expect("the run exists");
        let definition = self.runtime.pinned(&stored).await.expect("it is pinned");
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
        let asked = ForkRequest {
            mode,
            from_seq: from,
            overlay: RunOptions::default(),
            trace: None,
            conformance_role: false,
        };
        self.runtime.fork_run(&stored, asked, None).await
    }

    /// Lets virtual time pass.
    pub async fn elapse(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Lets virtual time pass until the run has ended; a year is too long.
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

/// Names of the events, for comparing the course of a run.
pub fn names(log: &[Recorded]) -> Vec<String> {
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

/// Runs a node's child names, in order.
pub fn children(log: &[Recorded]) -> Vec<RunId> {
    log.iter()
        .filter_map(|recorded| match &recorded.event {
            Event::NodeDispatched { child, .. } => Some(child.clone()),
            _ => None,
        })
        .collect()
}
