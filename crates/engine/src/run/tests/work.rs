//! The work of decisions: charged by the size of the values they look at, put off above a soft limit,
//! left to the next decision when it is long, and given up above the hard limit.

use super::harness::{NoMemory, RunHarness};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::{
    Context, Decision, Limits, MAX_DECISION_WORK, Memory, MemoryQueryKind, MemoryRead,
    MemoryResult, Need, Undecided, WorkMeter, create,
};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use tandem_record::{Command, EffectKind, MemoryEntry, RunId, RunStatus, Timestamp};

const INLINE: u64 = 2_000_000;

fn begin_with(
    workflow: WorkflowBuilder,
    work: &WorkMeter,
    memory: &dyn Memory,
) -> Result<Decision, Undecided> {
    let request = RunHarness::new(workflow_of_one()).request;
    let context = Context {
        now: Timestamp(5),
        limits: &Limits::default(),
        conformance: true,
        agents: &Default::default(),
        notices: &[],
        definitions: &HashMap::new(),
        memory,
        providers: &Default::default(),
        places: crate::run::TreePlaces::default(),
        tools: &Default::default(),
        packs: &Default::default(),
        model_answers: &NoMemory,
        work,
    };
    let def = workflow.compile();
    create(&def, RunId::new("run-1"), request, None, &context)
}

fn workflow_of_one() -> WorkflowBuilder {
    workflow("any").noops("n")
}

/// The work of the first decision.
fn work_of(workflow: WorkflowBuilder) -> u64 {
    let meter = WorkMeter::unlimited();
    begin_with(workflow, &meter, &NoMemory).expect("it is decided");
    meter.spent()
}

fn list(entries: usize) -> Value {
    Value::from(vec![1; entries])
}

fn default(value: Value) -> Value {
    json!({"type": "array", "defaultValue": value})
}

/// Carries a run on to its end, with a new meter for each decision; how many decisions that took.
fn to_the_end(run: &mut RunHarness) -> usize {
    let mut decisions = 1;
    while run.status() == RunStatus::Running {
        let spent = run.work.spent();
        assert!(spent < MAX_DECISION_WORK / 2, "{spent}");
        let next = run
            .outbox()
            .find(|effect| matches!(effect.kind, EffectKind::Continue));
        let next = next.expect("a note to go on").id.clone();
        run.performed(&next);
        run.work = WorkMeter::with_hard_limit(MAX_DECISION_WORK);
        run.when(Command::Continue);
        decisions += 1;
    }
    decisions
}

/// A node that puts out a list, and an edge with this condition.
fn conditional(entries: usize, condition: &Value) -> WorkflowBuilder {
    workflow("ways")
        .variable("v", default(list(entries)))
        .node("s", "core.identity", json!({}))
        .port("o", json!({"type": "variable", "variableName": "v"}))
        .noops("t")
        .edge("s", "t", json!({"condition": condition}))
}

fn with_title(entries: usize) -> WorkflowBuilder {
    let title = "{{ variables.v == variables.v }}";
    workflow("title")
        .variable("v", default(list(entries)))
        .node(
            "g",
            "core.approvalGate",
            json!({"title": title, "actions": ["accept"]}),
        )
}

fn with_port(entries: usize) -> WorkflowBuilder {
    let expression = json!({"type": "expression", "expression": "variables.v == variables.v"});
    workflow("port")
        .variable("v", default(list(entries)))
        .node("n", "core.noop", json!({}))
        .port("x", expression)
}

#[test]
fn work_follows_the_size_of_the_values_looked_at() {
    let conditions = [
        json!({"type": "expression", "expression": "output.o == output.o"}),
        json!({"type": "contains", "left": "o", "right": {"x": 1}}),
        json!({"type": "regex", "left": "o", "right": "(a|aa)+9$"}),
        json!({"type": "equals", "left": "", "right": {"o": list(50_000)}}),
    ];
    let plain = json!({"type": "truthy", "left": "o"});
    for condition in conditions {
        let work = |n| work_of(conditional(n, &condition)) - work_of(conditional(n, &plain));
        let (few, many) = (work(5_000), work(50_000));
        assert!(
            many >= 8 * few && many >= 15 * 50_000,
            "{condition}: {few} {many}"
        );
    }
    for workflow in [with_title, with_port] {
        let (none, few, many) = (
            work_of(workflow(0)),
            work_of(workflow(5_000)),
            work_of(workflow(50_000)),
        );
        assert!(many - none >= 8 * (few - none), "{none} {few} {many}");
    }
}

#[test]
fn decision_over_the_soft_limit_needs_more_work() {
    let condition = json!({"type": "expression", "expression": "output.o == output.o"});
    for workflow in [
        || {
            conditional(
                150_000,
                &json!({"type": "contains", "left": "o", "right": 2}),
            )
        },
        || with_title(150_000),
        || with_port(150_000),
    ] {
        let meter = WorkMeter::with_limit(INLINE);
        let undecided = begin_with(workflow(), &meter, &NoMemory).expect_err("too much");
        assert_eq!(undecided, Undecided::Needs(Need::MoreWork));
        assert!(meter.spent() <= INLINE);
    }
    let small = WorkMeter::with_limit(INLINE);
    let here = begin_with(conditional(100, &condition), &small, &NoMemory).expect("it fits");
    let elsewhere = WorkMeter::with_hard_limit(MAX_DECISION_WORK);
    let elsewhere = begin_with(conditional(100, &condition), &elsewhere, &NoMemory);
    assert_eq!(here.events, elsewhere.expect("it fits").events);
}

#[test]
fn step_over_the_hard_limit_fails_the_run_at_that_step() {
    let flow = || conditional(2_000, &json!({"type": "contains", "left": "o", "right": 2}));
    let needed = work_of(flow());
    let meter = WorkMeter::with_hard_limit(needed - 10_000);
    let decision = begin_with(flow(), &meter, &NoMemory).expect("it is decided");
    assert_eq!(decision.after.status(), RunStatus::Failed);
    let error = decision.after.error().expect("it failed");
    assert_eq!(error.code, "decision_work_exceeded");
    // The first node was not affected.
    let kinds = decision.events.iter().map(|e| format!("{:?}", e.event));
    assert!(
        kinds
            .into_iter()
            .any(|event| event.starts_with("NodeCompleted"))
    );
}

#[test]
fn work_nobody_waits_for_is_stopped() {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let meter = WorkMeter::with_hard_limit(MAX_DECISION_WORK).stopped_by(stop);
    let undecided = begin_with(with_port(10), &meter, &NoMemory).expect_err("stopped");
    assert_eq!(undecided, Undecided::Needs(Need::MoreWork));
}

#[test]
fn many_costly_conditions_are_decided_in_parts() {
    let never = json!({"type": "expression", "expression":
        format!("!({})", vec!["output.o == output.o"; 40].join(" && "))});
    let mut flow = workflow("many")
        .variable("v", default(list(50_000)))
        .node("s", "core.identity", json!({}))
        .port("o", json!({"type": "variable", "variableName": "v"}));
    for n in 0..20 {
        let id = format!("t{n}");
        flow = flow.noops(&id).edge("s", &id, json!({"condition": never}));
    }
    let mut run = RunHarness::new(flow);
    run.work = WorkMeter::with_hard_limit(MAX_DECISION_WORK);
    run.create(json!({}));
    let decisions = to_the_end(&mut run);
    assert_eq!(run.status(), RunStatus::Completed);
    assert!((2..20).contains(&decisions), "{decisions}");
}

/// A memory with as many notes of this size.
struct Notes(MemoryResult);

impl Notes {
    fn new(count: usize, bytes: usize) -> Self {
        let note = |n| MemoryEntry {
            id: format!("m{n}"),
            memory_ref: "default".to_owned(),
            key: format!("m{n}"),
            value: json!("y".repeat(bytes)),
            tags: Vec::new(),
            written_at: Timestamp(1),
            expires_at: None,
            agent: None,
            sensitive: false,
        };
        Self(MemoryResult::Entries((0..count).map(note).collect()))
    }
}

impl Memory for Notes {
    fn read_memory(&self, read: &MemoryRead) -> Option<Cow<'_, MemoryResult>> {
        assert_eq!(read.what, MemoryQueryKind::All);
        Some(Cow::Borrowed(&self.0))
    }
}

#[test]
fn memory_search_is_charged_by_the_bytes_it_scans() {
    let search = || {
        let config = json!({"action": "search", "text": "zzzzq", "limit": 500});
        workflow("seek").node("m", "vendor.tandem.memory", config)
    };
    let work = |count, bytes| {
        let meter = WorkMeter::unlimited();
        begin_with(search(), &meter, &Notes::new(count, bytes)).expect("it is decided");
        meter.spent()
    };
    let none = work(0, 0);
    let scanned = work(100, 10_000) - none;
    assert!((1_000_000..20_000_000).contains(&scanned), "{scanned}");
    assert!(work(1_000, 10_000) - none >= 9 * scanned);
    let meter = WorkMeter::with_limit(INLINE);
    let undecided = begin_with(search(), &meter, &Notes::new(100, 60_000)).expect_err("too much");
    assert_eq!(undecided, Undecided::Needs(Need::MoreWork));
}

/// A loop that appends to a channel in every round.
fn appends(rounds: u64, value: &Value) -> WorkflowBuilder {
    workflow("appends")
        .node(
            "l",
            "core.loop",
            json!({"times": rounds, "maxIterations": rounds}),
        )
        .node("b", "core.channelWrite", json!({"channelName": "ch"}))
        .port("value", value.clone())
        .path("l b l")
}

#[test]
fn work_of_appending_to_a_channel_does_not_grow_with_it() {
    let value = json!({"type": "static", "value": "x".repeat(1_000)});
    let (few, many) = (work_of(appends(20, &value)), work_of(appends(100, &value)));
    assert!(many <= 6 * few, "{few} {many}");
}

#[test]
fn round_over_a_list_is_charged_for_its_copy() {
    let rounds = |size| {
        let mut items: Vec<Value> = (0..20).map(Value::from).collect();
        items.push(list(size));
        workflow("items")
            .variable("v", default(Value::from(items)))
            .node("l", "core.loop", json!({"itemVariable": "it"}))
            .port("items", json!({"type": "variable", "variableName": "v"}))
            .noops("b")
            .path("l b l")
    };
    let (small, large) = (work_of(rounds(10)), work_of(rounds(1_000)));
    assert!(large - small >= 20 * 1_000 * 32, "{small} {large}");
}

#[test]
fn channel_that_doubles_is_stopped_before_it_is_too_large() {
    let value = json!({"type": "expression", "expression": "channels"});
    let mut run = RunHarness::new(appends(60, &value));
    run.limits.max_state_bytes = 4 * 1024 * 1024;
    run.create(json!({}));
    to_the_end(&mut run);
    assert_eq!(run.status(), RunStatus::Failed);
    let error = run.run().error().expect("it failed");
    assert_eq!(error.code, "run_state_too_large");
    assert!(run.run().size().memory <= 2 * run.limits.max_state_bytes);
    let held = tandem_record::Size::of(run.run().state()).memory;
    assert!(held <= run.limits.max_state_bytes, "{held}");
}
