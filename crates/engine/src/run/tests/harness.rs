//! One run in a test harness: it takes commands at chosen times and gives lines. It keeps the
//! store's side (timers, outbox, log) by applying each decision, and checks after every one of them
//! that
//! - sequence numbers have no gap, times do not go back, and nothing follows a terminal event,
//! - folding the log from the start gives the decision's state, also through JSON,
//! - the timers and node effects set so far are exactly those the state requires.

mod apply;
mod forks;
mod lookups;

pub(super) use lookups::{NoMemory, packs};

use super::lines;
use super::providers::providers;
use super::workflow_builder::WorkflowBuilder;
use crate::definition::Definition;
use crate::model::Providers;
use crate::pack::PackTypes;
use crate::run::{
    AgentPolicy, Context, Limits, NewChildRun, NoticeRule, Refusal, ReplayedModelAnswer, Run,
    TreePlaces, Undecided, create, decide,
};
use crate::tool::ToolServers;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tandem_record::{
    ChildOutcome, Command, Effect, EffectId, Event, NodeId, Object, Owner, ParentLink,
    RecordedEvent, Reply, RunId, RunOptions, RunRequest, RunStatus, Seq, TenantId, TimerKey,
    Timestamp, Transport, WorkflowId,
};
use tandem_schema::Meter;

const START: Timestamp = Timestamp(1_000_000);

pub(super) struct RunHarness {
    def: Arc<Definition>,
    workflows: HashMap<WorkflowId, Arc<Definition>>,
    pub(super) limits: Limits,
    pub(super) agents: AgentPolicy,
    pub(super) notices: Vec<NoticeRule>,
    /// The host has types for conformance tests.
    pub(super) conformance: bool,
    pub(super) now: Timestamp,
    pub(super) providers: Providers,
    pub(super) tools: ToolServers,
    pub(super) packs: PackTypes,
    /// The answer of a provider that answers by program to a replay.
    pub(super) replayed_answer: ReplayedModelAnswer,
    pub(super) work: Meter,
    pub(super) request: RunRequest,
    run: Option<Run>,
    log: Vec<RecordedEvent>,
    timers: BTreeMap<TimerKey, Timestamp>,
    outbox: BTreeMap<EffectId, Effect>,
    /// Children that were created and have not reported since.
    created_children: BTreeMap<RunId, NewChildRun>,
    /// Lines that have not been compared yet.
    unread: Vec<String>,
}

pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

impl RunHarness {
    pub(super) fn new(workflow: WorkflowBuilder) -> Self {
        let def = workflow.compile();
        let workflows = HashMap::from([(def.id().clone(), Arc::clone(&def))]);
        Self {
            def,
            workflows,
            limits: Limits::default(),
            agents: AgentPolicy::default(),
            notices: Vec::new(),
            conformance: true,
            now: START,
            providers: providers(),
            tools: ToolServers::from_iter(["docs".to_owned()]),
            packs: packs(),
            replayed_answer: ReplayedModelAnswer::Exhausted,
            work: Meter::unlimited(),
            request: RunRequest {
                owner: Owner {
                    tenant: TenantId::new("acme"),
                    workspace: None,
                    principal: None,
                },
                inputs: Object::new(),
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
            run: None,
            log: Vec::new(),
            timers: BTreeMap::new(),
            outbox: BTreeMap::new(),
            created_children: BTreeMap::new(),
            unread: Vec::new(),
        }
    }

    /// A run of `workflow` without inputs.
    pub(super) fn started(workflow: WorkflowBuilder) -> Self {
        let mut harness = Self::new(workflow);
        harness.create(json!({}));
        harness
    }

    /// Another workflow that children may run.
    pub(super) fn with_workflow(mut self, workflow: WorkflowBuilder) -> Self {
        let def = workflow.compile();
        self.workflows.insert(def.id().clone(), def);
        self
    }

    pub(super) fn configured(mut self, configurable: Value) -> Self {
        self.request.options.configurable = Some(object(configurable));
        self
    }

    /// The run is a child at node `call` of another run.
    pub(super) fn child_under(mut self, lineage: &[&str], harvest: &[&str]) -> Self {
        self.request.parent = Some(ParentLink {
            root: None,
            run_id: RunId::new("run-parent"),
            node_id: NodeId::new("call"),
            dispatched_at: Seq(2),
            lineage: lineage.iter().map(|id| WorkflowId::new(*id)).collect(),
            harvest: harvest.iter().map(|name| (*name).to_owned()).collect(),
            cause: tandem_record::ParentCause::SubWorkflow,
        });
        self
    }

    pub(super) fn create(&mut self, inputs: Value) {
        self.try_create(inputs).expect("the run may start");
    }

    pub(super) fn try_create(&mut self, inputs: Value) -> Result<(), Refusal> {
        self.request.inputs = object(inputs);
        let context = self.context();
        let id = RunId::new("run-1");
        match create(&self.def, id, self.request.clone(), None, &context) {
            Ok(decision) => {
                self.take(decision);
                Ok(())
            }
            Err(Undecided::Refused(refusal)) => Err(refusal),
            Err(Undecided::Needs(need)) => panic!("{need:?} was looked up already"),
        }
    }

    pub(super) fn when(&mut self, command: Command) -> Reply {
        self.try_when(command).expect("the command is accepted")
    }

    pub(super) fn try_when(&mut self, command: Command) -> Result<Reply, Refusal> {
        let fired = match &command {
            Command::FireTimer(key) => Some(key.clone()),
            _ => None,
        };
        match decide(self.run(), &command, &self.context()) {
            Ok(decision) => {
                let reply = decision.reply.clone();
                if let Some(key) = fired {
                    self.check_fired(&key, &decision);
                }
                self.take(decision);
                Ok(reply)
            }
            Err(Undecided::Refused(refusal)) => Err(refusal),
            Err(Undecided::Needs(need)) => panic!("{need:?} was looked up already"),
        }
    }

    /// Compares the events since the last comparison.
    #[track_caller]
    pub(super) fn then(&mut self, expected: &str) {
        let expected: Vec<&str> = expected
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        let actual = std::mem::take(&mut self.unread);
        assert!(
            actual == expected,
            "\n--- expected\n{}\n--- happened\n{}\n",
            expected.join("\n"),
            actual.join("\n")
        );
    }

    /// Takes the lines so far without comparing them.
    pub(super) fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unread)
    }

    pub(super) fn given(mut self) -> Self {
        self.unread.clear();
        self
    }

    /// Advances the time and fires every timer in the millisecond it is due.
    pub(super) fn elapse(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        loop {
            let next = self.timers.iter().min_by_key(|(_, due)| **due);
            let Some((key, due)) = next.filter(|(_, due)| **due <= end) else {
                break;
            };
            let (key, due) = (key.clone(), *due);
            self.now = self.now.max(due);
            self.fire(key.clone());
            assert_ne!(
                self.timers.get(&key),
                Some(&due),
                "{key:?} fired and still stands"
            );
        }
        self.now = end;
    }

    /// Timers that are due, the earliest first.
    pub(super) fn due_keys(&self) -> Vec<TimerKey> {
        let due = self.timers.iter().filter(|(_, due)| **due <= self.now);
        let mut due: Vec<_> = due.map(|(key, due)| (*due, key.clone())).collect();
        due.sort();
        due.into_iter().map(|(_, key)| key).collect()
    }

    /// Timers that are set, with the time left.
    pub(super) fn timers(&self) -> Vec<String> {
        let timers = self.timers.iter();
        timers
            .filter(|(key, _)| **key != TimerKey::RunDeadline)
            .map(|(key, due)| format!("{} +{}", lines::timer(key), due.ms_since(self.now)))
            .collect()
    }

    pub(super) fn run(&self) -> &Run {
        self.run.as_ref().expect("the run was created")
    }

    pub(super) fn status(&self) -> RunStatus {
        self.run().status()
    }

    pub(super) fn node(&self, node: &str) -> &crate::run::scheduling::NodeState {
        self.run().node(self.index(node))
    }

    pub(super) fn index(&self, node: &str) -> usize {
        let ix = self.def.index(&NodeId::new(node));
        ix.expect("a node of the workflow")
    }

    pub(super) fn definition(&self) -> Arc<Definition> {
        Arc::clone(&self.def)
    }

    pub(super) fn log(&self) -> &[RecordedEvent] {
        &self.log
    }

    pub(super) fn outbox(&self) -> impl Iterator<Item = &Effect> {
        self.outbox.values()
    }

    pub(super) fn created_children(&self) -> impl Iterator<Item = &NewChildRun> {
        self.created_children.values()
    }

    /// A child reports how it ended, if its parent expects a report.
    pub(super) fn child_ends(&mut self, child: &RunId, status: RunStatus) {
        let Some(new_child) = self.created_children.remove(child) else {
            return;
        };
        let parent = new_child.request.parent.expect("a child has a parent");
        let outcome = ChildOutcome::Ended {
            child: child.clone(),
            status,
            variables: Object::new(),
            untrusted: Vec::new(),
            error: None,
        };
        self.child_reports(parent.node_id.as_str(), outcome);
    }

    /// An effect that does not belong to a node was performed.
    pub(super) fn performed(&mut self, effect: &EffectId) {
        self.outbox.remove(effect);
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            now: self.now,
            limits: &self.limits,
            agents: &self.agents,
            notices: &self.notices,
            conformance: self.conformance,
            definitions: &self.workflows,
            memory: &NoMemory,
            providers: &self.providers,
            tools: &self.tools,
            places: self.places(),
            packs: &self.packs,
            model_answers: &self.replayed_answer,
            work: &self.work,
        }
    }

    /// What its tree has left, if no other run of it started any.
    fn places(&self) -> TreePlaces {
        let children = self
            .log
            .iter()
            .filter(|r| matches!(r.event, Event::NodeDispatched { .. }));
        TreePlaces {
            reserved: self
                .limits
                .max_descendants
                .saturating_sub(children.count() as u64),
            is_full: true,
        }
    }

    /// Changes recorded events.
    pub(super) fn tamper(&mut self, change: impl Fn(&mut Event)) {
        let log = self.log.iter_mut();
        log.for_each(|recorded| change(&mut recorded.event));
    }
}
