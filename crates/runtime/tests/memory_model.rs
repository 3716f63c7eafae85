//! Compares the memory of a run at each of its events with a model.
//!
//! The store answers with a query over one journal. The model copies the whole memory at every
//! event: slow and simple. Random run trees write, delete, let entries expire, wait, compact notes
//! and are forked. Afterwards both must agree at every event of every run, and no note is lost,
//! duplicated or restored.

#[path = "memory_model/model.rs"]
mod model;

use model::{Model, VisibleEntries};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::{
    Command, Event, ForkMode, MemoryEntry, MemoryOrigin, NodeId, RecordedEvent, RunId, RunStatus,
    Seq,
};
use tandem_runtime::Limits;
use tandem_store::{MemoryQuery, MemoryView, ReadMemory};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, children, new_run, tenant};
use tandem_testkit::{WorkflowBuilder, wf};
use tokio::test;

const SEEDS: u64 = 1_000;
const KEYS: [&str; 3] = ["a", "b", "c"];
const SCOPES: [&str; 2] = ["one", "two"];
/// Number of notes above which the oldest are compacted.
const ABOVE: [u64; 3] = [2, 3, 6];
/// Variable with the id of the note a workflow wrote last.
const LAST: &str = "last";

/// One random history and its model.
struct RandomHistory {
    seed: u64,
    rng: SmallRng,
    host: TestHost,
    model: Model,
    /// Root runs in the order of creation; their descendants are in the model.
    roots: Vec<RunId>,
    written: u32,
}

impl RandomHistory {
    async fn new(seed: u64) -> Self {
        let above = ABOVE[seed as usize % ABOVE.len()];
        let plan = TestHostBuilder {
            limits: Limits {
                compact_above: Some(above),
                ..Limits::default()
            },
            ..TestHostBuilder::default()
        };
        let host = plan.build();
        let mut history = Self {
            seed,
            rng: SmallRng::seed_from_u64(seed),
            host: host.await,
            model: Model::new(above),
            roots: Vec::new(),
            written: 0,
        };
        let leaf = history.flow("leaf", &[]);
        history.host.register(leaf).await;
        let middle = history.flow("middle", &["leaf"]);
        history.host.register(middle).await;
        for root in ["root-0", "root-1"] {
            let flow = history.flow(root, &["leaf", "middle"]);
            history.host.register(flow).await;
        }
        history
    }

    /// A sequence of two to six random steps.
    fn flow(&mut self, id: &str, below: &[&str]) -> WorkflowBuilder {
        let mut flow = wf(id);
        let (mut path, mut noted) = (String::new(), false);
        for step in 0..self.rng.random_range(2..=6) {
            let node = format!("n{step}");
            path.push_str(&format!("{node} "));
            let key = KEYS[self.rng.random_range(0..KEYS.len())];
            flow = match self.rng.random_range(0..16) {
                10..14 => {
                    noted = true;
                    self.written += 1;
                    let mut config =
                        json!({"action": "put", "value": self.written, "output": LAST});
                    if self.rng.random_bool(0.2) {
                        config["ttlSeconds"] = json!(self.rng.random_range(1..40));
                    }
                    flow.node(&node, "vendor.tandem.memory", config)
                }
                14 if noted => {
                    let config = json!({"action": "delete", "keyFrom": LAST});
                    flow.node(&node, "vendor.tandem.memory", config)
                }
                15 => flow.node(&node, "vendor.tandem.memory", json!({"action": "list"})),
                0..4 => {
                    self.written += 1;
                    let mut config = json!({"action": "put", "key": key, "value": self.written});
                    if self.rng.random_bool(0.3) {
                        config["ttlSeconds"] = json!(self.rng.random_range(1..40));
                    }
                    flow.node(&node, "vendor.tandem.memory", config)
                }
                4 => {
                    let config = json!({"action": "delete", "key": key});
                    flow.node(&node, "vendor.tandem.memory", config)
                }
                5 | 6 => {
                    let config = json!({"action": "get", "key": key});
                    flow.node(&node, "vendor.tandem.memory", config)
                }
                7 => flow.node(&node, "core.approvalGate", json!({"title": "ok?"})),
                _ if !below.is_empty() => {
                    let child = below[self.rng.random_range(0..below.len())];
                    let isolated = self.rng.random_bool(0.2);
                    let isolation = if isolated { "isolated" } else { "shared" };
                    flow.call(&node, child, json!({"memoryScopeIsolation": isolation}))
                }
                _ => flow.noop(&node),
            };
        }
        flow.path(path.trim()).settings(json!({"timeout": 0}))
    }

    async fn step(&mut self) {
        match self.rng.random_range(0..10) {
            0..4 => self.create().await,
            4..8 => self.answer().await,
            _ => self.fork().await,
        }
        // All work ends, and some entries expire.
        let pause = self.rng.random_range(1..15_000);
        self.host.elapse(50).await;
        self.observe().await;
        self.host.elapse(pause).await;
    }

    async fn create(&mut self) {
        let workflow = format!("root-{}", self.rng.random_range(0..2));
        let scope = SCOPES[self.rng.random_range(0..SCOPES.len())];
        let mut new = new_run(&workflow, json!({}));
        new.request.scope_id = Some(scope.to_owned());
        let run = self.host.runtime.create_run(new, None).await;
        let run = run.expect("the run may start");
        self.model.begin(&run, scope);
        self.roots.push(run);
    }

    /// Answers a gate of a random waiting run.
    async fn answer(&mut self) {
        let mut open: Vec<(RunId, NodeId)> = Vec::new();
        for run in self.model.runs() {
            let folded = self.host.folded(&run).await;
            let questions = folded.open_questions().into_iter();
            open.extend(questions.map(|q| (run.clone(), q.node)));
        }
        if open.is_empty() {
            return;
        }
        let (run, node) = open.swap_remove(self.rng.random_range(0..open.len()));
        let command = Command::ResolveInterrupt {
            node,
            interrupt: None,
            value: json!({"action": "accept"}),
            by: None,
            by_link: false,
            decider: Default::default(),
        };
        self.host.submit(&run, command).await.expect("it was open");
    }

    async fn fork(&mut self) {
        let runs = self.model.runs();
        if runs.is_empty() {
            return;
        }
        let source = runs[self.rng.random_range(0..runs.len())].clone();
        let stored = self.host.runtime.find_run(&tenant(), &source).await;
        let stored = stored.expect("the store answers").expect("the run exists");
        let from_seq = Seq(self.rng.random_range(0..=stored.head.0));
        let mode = if self.rng.random_bool(0.5) {
            ForkMode::Replay
        } else {
            ForkMode::Branch
        };
        let fork = self.host.fork(&source, mode, from_seq).await;
        let fork = fork.unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
        self.model.fork(&fork, &source, from_seq, mode);
        self.roots.push(fork);
    }

    /// Feeds the model with the new events, in the order they happened.
    async fn observe(&mut self) {
        for root in self.roots.clone() {
            self.follow(&root).await;
        }
    }

    /// The new events of a run and its children: its own up to each dispatch, then the child's,
    /// then its own again.
    async fn follow(&mut self, run: &RunId) {
        let log = self.host.log(run).await;
        for child in self.model.own_children(run, &children(&log), &log) {
            if !self.exists(&child).await || self.model.caught_up(&child) {
                continue;
            }
            let dispatch = log.iter().position(
                |r| matches!(&r.event, Event::NodeDispatched { child: c, .. } if *c == child),
            );
            let dispatch = dispatch.expect("the child was dispatched");
            self.catch_up(run, &log[..=dispatch]).await;
            if !self.model.contains(&child) {
                let isolated = self.isolated(&child).await;
                let at = Seq(dispatch as u64);
                self.model.begin_child(&child, run, at, isolated);
            }
            Box::pin(self.follow(&child)).await;
            let ended = self.host.status(&child).await.is_terminal();
            self.model.mark(&child, ended);
        }
        self.catch_up(run, &log).await;
    }

    async fn exists(&self, run: &RunId) -> bool {
        let found = self.host.runtime.find_run(&tenant(), run).await;
        found.expect("the store answers").is_some()
    }

    async fn isolated(&self, child: &RunId) -> bool {
        let log = self.host.log(child).await;
        match &log[0].event {
            Event::RunStarted { request, .. } => {
                let memory = request.memory.as_ref().expect("runs say where they read");
                memory.scope == MemoryOrigin::isolated(child)
            }
            other => panic!("{other:?} begins no run"),
        }
    }

    async fn catch_up(&mut self, run: &RunId, log: &[RecordedEvent]) {
        for recorded in log.iter().skip(self.model.events_applied(run)) {
            if let Event::NodeCompleted { outputs, .. } = &recorded.event
                && let Some(Value::Array(listed)) = outputs.get("entries")
            {
                let listed = listed.iter();
                let got: VisibleEntries = listed
                    .map(|e| {
                        (
                            e["key"].as_str().unwrap_or("").to_owned(),
                            e["value"].clone(),
                        )
                    })
                    .collect();
                let expected = self.model.visible_entries(run, recorded.at);
                assert_eq!(got, expected, "{:?} listed", (self.seed, run, recorded.seq));
            }
            if let Event::NodeCompleted { node, outputs, .. } = &recorded.event
                && let Some(got) = outputs.get("value")
            {
                let key = self.key_of(run, node).await;
                let expected = self.model.read(run, &key, recorded.at);
                let expected = expected.unwrap_or(Value::Null);
                let place = (self.seed, run, recorded.seq);
                assert_eq!(*got, expected, "{place:?} read {key}");
            }
            self.model.event(run, recorded);
        }
    }

    async fn key_of(&self, run: &RunId, node: &NodeId) -> String {
        let stored = self.host.runtime.find_run(&tenant(), run).await;
        let stored = stored.expect("the store answers").expect("the run exists");
        let definition = self
            .host
            .runtime
            .pinned_definition(&stored)
            .await
            .expect("pinned");
        let nodes = &definition.document.nodes;
        let config = nodes.iter().find(|n| n.id == *node).map(|n| &n.config);
        let key = config.and_then(|c| c.get("key")?.as_str());
        key.expect("a node that reads names its key").to_owned()
    }

    /// Every permanent note is in its scope exactly once, alone or in a compacted one.
    async fn check_no_note_lost(&self) {
        for scope in SCOPES {
            let everything = MemoryView {
                tenant: tenant(),
                scope: MemoryOrigin::scope_of(None, Some(scope)),
                start: u64::MAX,
                segments: Vec::new(),
            };
            let query = MemoryQuery::default();
            let rows = self.host.store.memory_entries(&everything, &query).await;
            let mut kept: Vec<String> = Vec::new();
            for row in rows.expect("the store answers") {
                let body = row.body.expect("it is there");
                let entry: MemoryEntry = serde_json::from_str(&body).expect("an entry");
                if entry.is_note() && entry.expires_at.is_none() {
                    let text = MemoryEntry::text_of(&entry.value);
                    kept.extend(text.lines().map(str::to_owned));
                }
            }
            kept.sort_unstable();
            assert_eq!(kept, self.model.notes(scope), "seed {}", self.seed);
        }
    }

    /// Compares every run at every event.
    async fn compare(&self) {
        for run in self.model.runs() {
            let log = self.host.log(&run).await;
            let stored = self.host.runtime.find_run(&tenant(), &run).await;
            let stored = stored.expect("the store answers").expect("the run exists");
            for (at, recorded) in (0..).map(Seq).zip(&log) {
                let visible = self.host.runtime.run_memory(&stored, Some(at), None).await;
                let visible = visible.expect("the store answers").entries;
                let visible: VisibleEntries =
                    visible.into_iter().map(|e| (e.key, e.value)).collect();
                let expected = self.model.view(&run, at, recorded.at);
                assert_eq!(visible, expected, "seed {} run {run} at {at}", self.seed);
            }
            let now = self.host.runtime.clock().now();
            let visible = self.host.runtime.run_memory(&stored, None, None).await;
            let visible = visible.expect("the store answers").entries;
            let visible: BTreeMap<String, Value> =
                visible.into_iter().map(|e| (e.key, e.value)).collect();
            let expected = self.model.view(&run, Seq(log.len() as u64), now);
            assert_eq!(visible, expected, "seed {} run {run} now", self.seed);
        }
    }
}

#[test(start_paused = true)]
async fn memory_at_every_event_matches_the_model() {
    // R-0039-15 (half: at every event of random run trees)
    // R-0039-16 (half: at every event of random run trees), R-0039-20, R-0039-21, R-0039-30
    let first: u64 = std::env::var("TANDEM_MODEL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(0);
    let (mut forks, mut ended, mut collapsed) = (0, 0, 0);
    for seed in first..first + SEEDS {
        let mut history = RandomHistory::new(seed).await;
        for _ in 0..7 {
            history.step().await;
        }
        history.compare().await;
        history.check_no_note_lost().await;
        collapsed += history.model.collapsed();
        forks += history.model.forks();
        for root in &history.roots {
            ended += usize::from(history.host.status(root).await == RunStatus::Completed);
        }
        history
            .host
            .runtime
            .shutdown(std::time::Duration::ZERO)
            .await;
    }
    assert!(forks > 500 && ended > 1_000, "{forks} forks, {ended} ended");
    assert!(collapsed > 300, "{collapsed} compactions");
}
