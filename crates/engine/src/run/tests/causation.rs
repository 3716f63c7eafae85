//! Causes of events where agents decide and people answer: each event names the one that caused it,
//! and every interrupt has its own id.

use super::gates::answer;
use super::harness::RunHarness;
use super::lines;
use super::supervising::{staged, supervised, terminate, workers};
use super::workflow_builder::workflow;
use crate::definition::{Definition, Permissions};
use crate::run::AgentPolicy;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tandem_record::{Cause, Event, ForkMode, RunStatus};

fn low_confidence_decision() -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": ["one"], "confidence": 0.1})
}

/// A supervisor with planned decisions; a low confidence opens an interrupt of this kind.
fn deciding(plan: Value, dispatch: Value, kind: &str) -> RunHarness {
    let mut run = staged(supervised(plan, dispatch));
    run.agents = AgentPolicy::new(None, Some(kind)).expect("a known kind");
    run.create(json!({}));
    run
}

/// The first words of an event's line: its name and its subject.
fn named(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().take(2).collect();
    words.join(" ")
}

/// Events of one name, each with the event that caused it.
fn links(run: &RunHarness, name: &str) -> Vec<(String, String)> {
    let log = run.log();
    let events = log.iter().map(|r| (named(&lines::event(r)), &r.cause));
    let events = events.filter(|(line, _)| line == name);
    events
        .map(|(line, cause)| match cause {
            Some(Cause::Event(seq)) => {
                let at = usize::try_from(seq.0).expect("small");
                (line, named(&lines::event(&log[at])))
            }
            other => panic!("{line} is caused by {other:?}"),
        })
        .collect()
}

#[track_caller]
fn caused(run: &RunHarness, name: &str, causes: &[&str]) {
    let links = links(run, name);
    let found: Vec<&str> = links.iter().map(|(_, cause)| cause.as_str()).collect();
    assert_eq!(found, causes, "what caused {name:?}");
}

#[test]
fn approvals_and_clarifications_emit_both_request_events() {
    let asks = |kind: &str| json!([{"kind": kind, "prompt": "May I?"}, terminate()]);
    let yes = json!({"action": "accept"});
    let by_answers = json!({"askUserRouting": "clarification"});
    for (mut run, value, older) in [
        (
            deciding(json!([low_confidence_decision()]), json!({}), "approval"),
            yes.clone(),
            ["approval.requested", "approval.received"],
        ),
        (
            deciding(asks("escalate"), json!({}), "approval"),
            yes.clone(),
            ["approval.requested", "approval.received"],
        ),
        (
            deciding(
                json!([low_confidence_decision()]),
                json!({}),
                "clarification",
            ),
            json!({"answers": {"proceed": "yes"}}),
            ["clarification.requested", "clarification.resolved"],
        ),
        (
            deciding(
                json!([low_confidence_decision()]),
                json!({}),
                "clarification",
            ),
            yes,
            ["clarification.requested", "clarification.resolved"],
        ),
        (
            deciding(asks("ask-user"), by_answers, "approval"),
            json!({"answers": {"answer": "You may."}}),
            ["clarification.requested", "clarification.resolved"],
        ),
    ] {
        run.when(answer("send", value));
        let about = |line: &String| {
            let name = line.split_whitespace().next().unwrap_or_default();
            let prefixes = ["interrupt.", "approval.", "clarification."];
            let listed = prefixes.iter().any(|prefix| name.starts_with(prefix));
            listed || ["node.suspended", "node.resumed"].contains(&name)
        };
        let lines = run.lines();
        let names: Vec<String> = lines
            .iter()
            .filter(|l| about(l))
            .map(|l| named(l))
            .collect();
        let expected = [
            "interrupt.requested",
            older[0],
            "node.suspended",
            older[1],
            "interrupt.resolved",
            "node.resumed",
        ];
        assert_eq!(names, expected.map(|name| format!("{name} send")));
        // The interrupt causes the answer.
        for name in [older[0], older[1], "interrupt.resolved"] {
            caused(&run, &format!("{name} send"), &["interrupt.requested send"]);
        }
    }
}

#[test]
fn vendor_kind_emits_only_the_interrupt_event() {
    let run = deciding(
        json!([low_confidence_decision()]),
        json!({}),
        "x-host-tandem-doubt",
    );
    for name in ["approval.requested send", "clarification.requested send"] {
        assert!(links(&run, name).is_empty(), "{name}");
    }
}

#[test]
fn back_edge_causes_the_next_iteration() {
    let plan = json!([workers(&["one"]), workers(&["two"]), terminate()]);
    let mut run = staged(supervised(plan, json!({})));
    run.create(json!({}));
    for _ in 0..2 {
        run.child_ended("send", RunStatus::Completed, json!({}));
    }
    assert_eq!(run.status(), RunStatus::Completed);
    let back = "node.completed send";
    caused(
        &run,
        "node.started lead",
        &["run.started {\"mine\":\"before\"}", back, back],
    );

    let nested = workflow("nested")
        .node("outer", "core.loop", json!({"times": 2}))
        .node("inner", "core.loop", json!({"times": 1}))
        .noops("body tail")
        .path("outer inner body inner tail outer");
    let run = RunHarness::started(nested);
    let (into, again) = ("node.completed outer", "node.completed body");
    caused(&run, "node.started inner", &[into, again, into, again]);
    let back = "node.completed tail";
    caused(&run, "node.started outer", &["run.started", back, back]);
}

#[test]
fn ask_user_node_completion_is_caused_by_the_decision() {
    let plan = json!([{"kind": "ask-user", "prompt": "Which city?"}]);
    for (routing, value) in [
        ("conversation", json!({"operation": "close"})),
        ("clarification", json!({"answers": {"answer": "Oslo"}})),
    ] {
        let dispatch = json!({"askUserRouting": routing});
        let mut run = deciding(plan.clone(), dispatch, "approval");
        run.when(answer("send", value));
        let ended = links(&run, "node.completed send");
        assert_eq!(ended[0].1, "decided lead", "{routing}");
    }
}

#[test]
fn two_questions_of_one_execution_have_two_ids() {
    let prompts = json!({"kind": "ask-user", "prompt": "p?"});
    let edit = json!({"action": "edit-accept", "editedArtifactData": prompts});
    // The replacement counts as a decision of the plan.
    let again = json!([
        low_confidence_decision(),
        terminate(),
        low_confidence_decision()
    ]);
    for routing in ["conversation", "clarification"] {
        let dispatch = json!({"askUserRouting": routing});
        let mut run = deciding(again.clone(), dispatch, "approval");
        let close = match routing {
            "conversation" => json!({"operation": "close"}),
            _ => json!({"answers": {"answer": "a"}}),
        };
        for value in [edit.clone(), close.clone(), edit.clone(), close] {
            run.when(answer("send", value));
        }
        let interrupts = run.log().iter().filter_map(|r| match &r.event {
            Event::InterruptRequested { interrupt, .. } => Some((**interrupt).clone()),
            _ => None,
        });
        let interrupts: Vec<_> = interrupts.collect();
        let keys: Vec<&str> = interrupts.iter().map(|i| i.key.as_str()).collect();
        let numbered = (1..=4).map(|n| format!("run-1:send:{n}"));
        assert_eq!(keys, numbered.collect::<Vec<_>>(), "{routing}");
        let ids: BTreeSet<_> = interrupts.iter().map(|i| &i.id).collect();
        assert_eq!(ids.len(), interrupts.len(), "{routing}");
        if routing == "conversation" {
            assert_eq!(interrupts[1].data["conversationId"], keys[1]);
        }
        // The second interrupt of each iteration is caused by the replacement decision.
        let causes = ["escalated 0.1<0.5", "decided lead"];
        let causes: Vec<&str> = causes.into_iter().cycle().take(4).collect();
        caused(&run, "interrupt.requested send", &causes);
    }
}

#[test]
fn fork_questions_have_their_own_ids() {
    let prompts = json!({"kind": "ask-user", "prompt": "p?"});
    let edit = json!({"action": "edit-accept", "editedArtifactData": prompts});
    let dispatch = json!({"askUserRouting": "clarification"});
    let plan = json!([
        low_confidence_decision(),
        terminate(),
        low_confidence_decision()
    ]);
    let mut run = deciding(plan, dispatch, "approval");
    let answers = json!({"answers": {"answer": "a"}});
    for value in [edit.clone(), answers, edit] {
        run.when(answer("send", value));
    }
    for from in 1..=run.log().len() as u64 {
        let fork = run.fork(ForkMode::Branch, from);
        let interrupts = fork.log().iter().filter_map(|r| match &r.event {
            Event::InterruptRequested { interrupt, .. } => {
                Some((interrupt.id.clone(), interrupt.key.clone()))
            }
            _ => None,
        });
        let interrupts: Vec<_> = interrupts.collect();
        let ids: BTreeSet<_> = interrupts.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), interrupts.len(), "from {from}: {interrupts:?}");
        let keys: BTreeSet<_> = interrupts.iter().map(|(_, key)| key).collect();
        assert_eq!(keys.len(), interrupts.len(), "from {from}: {interrupts:?}");
    }
}

#[test]
fn null_dispatch_settings_and_invalid_planned_decisions_are_refused() {
    let plan = |decision: Value| supervised(json!([decision]), json!({}));
    let dispatch = |config: Value| supervised(json!([terminate()]), config);
    let unnamed = json!({"kind": "terminate", "successCriteria": [{"key": "", "met": true}]});
    let mut table = vec![
        (
            dispatch(json!({"perWorkerInputMappings": {"one": null}})),
            "1/config/perWorkerInputMappings/one".to_owned(),
        ),
        (
            dispatch(json!({"perWorkerOutputMappings": {"one": null}})),
            "1/config/perWorkerOutputMappings/one".to_owned(),
        ),
        (
            plan(unnamed),
            "0/config/mockDispatchPlan/0/successCriteria/0/key".to_owned(),
        ),
    ];
    for key in [
        "askUserRouting",
        "workerDispatchModel",
        "fanOutPolicy",
        "iterationCap",
        "inputMapping",
        "outputMapping",
        "perWorkerInputMappings",
        "perWorkerOutputMappings",
    ] {
        table.push((dispatch(json!({ key: null })), format!("1/config/{key}")));
    }
    for (workflow, place) in table {
        let document = workflow.document();
        let stored = Definition::compile(&document, Permissions::default());
        assert!(stored.is_ok(), "what is stored stays readable: {place}");
        let problems = Definition::admit(&document, Permissions::default()).expect_err(&place);
        assert_eq!(problems[0].path, format!("/nodes/{place}"));
    }
    let sound = dispatch(json!({"inputMapping": {}, "perWorkerInputMappings": {"one": {}}}));
    assert!(Definition::admit(&sound.document(), Permissions::default()).is_ok());
}
