//! Agent events: which node may emit which, in which order, and what a low confidence leads to.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::definition::{ConformanceTypes, Definition, Permissions};
use crate::node::Availability;
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{AgentEventKind, Cause, Command, Event, NodeId, Object, Principal, RunStatus};

fn agent(config: Value) -> WorkflowBuilder {
    workflow("conformance-agent").node("act", "core.conformance.mock-agent", config)
}

fn answer(node: &str, value: Value) -> Command {
    Command::ResolveInterrupt {
        node: NodeId::new(node),
        interrupt: None,
        value,
        by: Some(Principal::new("ana")),
        by_link: false,
        decider: Default::default(),
    }
}

#[test]
fn mock_agent_emits_events_in_contract_order() {
    // R-0023-9 (half: where nothing is held), R-0023-15 (half: where nothing is held)
    // R-0023-4 (half: the mock agent hands over), R-0023-5 (half: the mock agent decides)
    let mut run = RunHarness::started(
        agent(json!({
            "mockReasoning": {"summary": "ignored", "streamChunks": ["one-", "two"]},
            "mockToolCalls": [
                {"toolId": "look", "arguments": {"at": 1}, "result": 2},
                {"toolId": "leap", "error": {"error": "quota", "message": "no more"}}],
            "mockHandoff": {"toAgentId": "core.next"},
            "mockDecision": {"decision": {"go": true}, "confidence": 0.9},
        }))
        .with("agent", json!({"agentId": "core.actor"})),
    );
    run.then(
        "
        run.started
        node.started act
        core.actor delta[0] one-
        core.actor delta[1] two
        core.actor reasoned one-two
        core.actor called look
        core.actor returned look
        core.actor called leap
        core.actor returned leap quota
        core.actor hands off to core.next
        core.actor decided 0.9
        node.completed act
        run.completed
        ",
    );
}

#[test]
fn handoff_sender_is_the_pinned_agent() {
    // R-0023-12
    let config = |id: Value| {
        let mut config = json!({"mockReasoning": true, "mockHandoff": {"toAgentId": "core.next"}});
        config["agentId"] = id;
        agent(config)
    };
    let pin = json!({"agentId": "core.pin.one"});
    let unpinned = config(json!("core.cfg.two"));
    for (workflow, from) in [
        (
            config(json!("core.cfg.two")).with("agent", pin),
            "core.pin.one",
        ),
        (unpinned, "core.cfg.two"),
    ] {
        let lines = RunHarness::started(workflow).lines();
        let handed = format!("{from} hands off to core.next");
        assert!(lines.contains(&handed), "{lines:?}");
        let reasoned = lines.iter().find(|l| l.contains(" reasoned "));
        assert!(
            reasoned.is_some_and(|l| l.starts_with("core.cfg.two")),
            "{lines:?}"
        );
    }
}

#[test]
fn mock_agent_decision_can_be_replaced_by_any_value() {
    let held = || {
        let decision = json!({"decision": {"go": true}, "confidence": 0.2});
        RunHarness::started(agent(json!({"mockDecision": decision}))).given()
    };
    for value in [
        json!({"go": true}),
        json!({"decision": {"go": false}}),
        json!({"kind": "mock"}),
        json!("go"),
        json!({"ratified": true}),
    ] {
        let mut run = held();
        run.when(answer("act", value.clone()));
        assert_eq!(run.status(), RunStatus::Completed, "{value}");
    }
    for value in [json!(null), json!({}), json!({"ratified": "perhaps"})] {
        let refused = held().try_when(answer("act", value.clone()));
        assert!(matches!(refused, Err(Refusal::Invalid(_))), "{value}");
    }
}

#[test]
fn a_tools_return_is_caused_by_its_call_and_shares_its_id() {
    // R-0023-2 (half: the mock agent emits its calls), R-0023-3 (half: its returns), R-0023-11
    let calls = json!([{"toolId": "a"}, {"toolId": "b"}]);
    let run = RunHarness::started(agent(json!({"mockToolCalls": calls})));
    let emitted: Vec<_> = run
        .log()
        .iter()
        .filter_map(|r| match &r.event {
            Event::Agent(agent_event) => Some((r, &agent_event.kind)),
            _ => None,
        })
        .collect();
    for pair in emitted.chunks(2) {
        let [
            (called, AgentEventKind::ToolCalled { call, .. }),
            (returned, AgentEventKind::ToolReturned { call: same, .. }),
        ] = pair
        else {
            panic!("{pair:?}");
        };
        assert_eq!(returned.cause, Some(Cause::Event(called.seq)));
        assert_eq!(call, same);
    }
    let tools: Vec<&str> = emitted
        .iter()
        .filter_map(|(_, emitted)| match emitted {
            AgentEventKind::ToolCalled { tool, .. } => Some(tool.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(tools, ["a", "b"], "in their order");
    let calls: Vec<&str> = emitted
        .iter()
        .filter_map(|(_, emitted)| match emitted {
            AgentEventKind::ToolCalled { call, .. } => Some(call.as_str()),
            _ => None,
        })
        .collect();
    assert_ne!(calls[0], calls[1]);
}

#[test]
fn agent_id_is_configured_pinned_or_generated() {
    // R-0023-16
    let pin = json!({"agentId": "core.pinned"});
    let emitted = |workflow: WorkflowBuilder| {
        let mut run = RunHarness::started(workflow);
        let lines = run.lines();
        lines[2].split(' ').next().expect("a name").to_owned()
    };
    let config = json!({"agentId": "core.configured", "mockReasoning": true});
    assert_eq!(
        emitted(agent(config).with("agent", pin.clone())),
        "core.configured"
    );
    let config = json!({"mockReasoning": true});
    assert_eq!(
        emitted(agent(config.clone()).with("agent", pin)),
        "core.pinned"
    );
    assert_eq!(emitted(agent(config)), "host:mock-agent:act");
}

#[test]
fn low_confidence_agent_waits_until_ratified() {
    // R-0023-14 (half: below which threshold it waits), R-0023-15 (half: after a person's answer)
    for (confidence, threshold, waits) in [
        (0.69, None, true),
        (0.7, None, false),
        (0.5, Some(0.5), false),
        (0.8, Some(0.9), true),
    ] {
        let mut run = RunHarness::new(agent(json!({"mockConfidence": confidence})));
        if let Some(threshold) = threshold {
            run = run.configured(json!({"escalationThreshold": threshold}));
        }
        run.create(json!({}));
        if !waits {
            assert_eq!(
                run.status(),
                RunStatus::Completed,
                "{confidence} {threshold:?}"
            );
            continue;
        }
        assert_eq!(run.status(), RunStatus::WaitingApproval);
        let held = run.log().iter().find_map(|r| match &r.event {
            Event::NodeSuspended {
                low_confidence,
                reason,
                ..
            } => Some((low_confidence.clone(), reason.clone())),
            _ => None,
        });
        let (low_confidence, reason) = held.expect("suspended");
        let low_confidence = low_confidence.expect("it says why");
        assert_eq!(reason.as_deref(), Some("low-confidence"));
        assert_eq!(low_confidence.agent_id, "host:mock-agent:act");
        assert_eq!(
            (low_confidence.observed, low_confidence.threshold),
            (confidence, threshold.unwrap_or(0.7))
        );
        run.when(answer("act", json!({"ratified": true})));
        assert_eq!(run.status(), RunStatus::Completed);
        let outputs = run.node("act").outputs.as_deref();
        assert_eq!(outputs, Some(&Object::new()));
    }
}

#[test]
fn decision_confidence_overrides_the_shorthand() {
    // R-0023-28 (half: the explicit form is accepted and used)
    for (decided, shorthand, status) in [
        (0.9, 0.1, RunStatus::Completed),
        (0.1, 0.9, RunStatus::WaitingApproval),
    ] {
        let decision = json!({"decision": 1, "confidence": decided});
        let run = RunHarness::started(agent(
            json!({"mockDecision": decision, "mockConfidence": shorthand}),
        ));
        assert_eq!(run.status(), status);
    }
}

#[test]
fn rejected_agent_decision_fails_its_node() {
    let mut run = RunHarness::started(agent(json!({"mockConfidence": 0.1})));
    run.when(answer("act", json!({"rejected": true})));
    assert_eq!(
        run.run().error().expect("failed").code,
        "interrupt_rejected"
    );
}

#[test]
fn low_confidence_supervisor_publishes_only_the_ratified_decision() {
    // R-0023-5 (half: the supervisor decides)
    let held = || {
        let pending = json!({"kind": "terminate", "reason": "tired"});
        RunHarness::started(
            workflow("conformance-held")
                .node(
                    "lead",
                    "core.orchestrator.supervisor",
                    json!({"mockConfidence": 0.5, "mockPendingDecision": pending}),
                )
                .node("send", "core.dispatch", json!({}))
                .path("lead send lead"),
        )
    };
    let mut run = held();
    run.then(
        "
        run.started
        node.started lead
        host:supervisor:lead decided 0.5
        interrupt.requested lead
        node.suspended lead waiting-approval
        ",
    );
    run.when(answer("lead", json!({"ratified": true})));
    let lines = run.lines();
    assert_eq!(
        lines
            .iter()
            .filter(|l| l.starts_with("decided lead #1"))
            .count(),
        1,
        "{lines:?}"
    );
    assert_eq!(run.status(), RunStatus::Completed);

    for replaced in [
        json!({"decision": {"kind": "terminate", "reason": "better"}}),
        json!({"kind": "terminate", "reason": "better"}),
    ] {
        let mut run = held();
        run.when(answer("lead", replaced));
        let outputs = run.run().outputs().expect("completed").clone();
        assert_eq!(outputs["decision"]["reason"], "better");
    }
}

#[test]
fn passthrough_nodes_emit_no_agent_events() {
    // R-0023-6, R-0023-27 (half: a pin alone emits nothing)
    let keys =
        json!({"mockReasoning": true, "mockConfidence": 0.1, "mockDecision": {"decision": 1}});
    let pin = json!({"agentId": "core.same", "modelClass": "chat"});
    for type_id in [
        "core.identity",
        "core.noop",
        "core.flow.noop",
        "core.openwop.flow.noop",
    ] {
        let run = RunHarness::started(
            workflow("conformance-quiet")
                .node("n", type_id, keys.clone())
                .with("agent", pin.clone()),
        );
        let emitted = run.log().iter().any(|r| matches!(r.event, Event::Agent(_)));
        assert!(!emitted, "{type_id}");
        assert_eq!(run.run().view().agent, Some(pin.clone()));
    }
}

#[test]
fn host_node_types_emit_no_agent_events() {
    // R-0023-7
    let body = json!({"agentId": "core.far", "reasoning": "x", "confidence": 0.1});
    let pin = json!({"agentId": "core.near"});
    let mut call = RunHarness::started(
        workflow("conformance-own")
            .http("call", json!({"output": "said"}))
            .with("agent", pin.clone()),
    );
    call.done("call", json!({"status": 200, "body": body}));
    let put = json!({"action": "put", "key": "k", "value": body});
    let note = RunHarness::started(
        workflow("conformance-own")
            .node("note", "vendor.tandem.memory", put)
            .with("agent", pin),
    );
    for run in [call, note] {
        assert_eq!(run.status(), RunStatus::Completed);
        let emitted = run.log().iter().any(|r| matches!(r.event, Event::Agent(_)));
        assert!(!emitted, "{:?}", run.log());
    }
}

#[test]
fn work_passing_between_pinned_agents_is_a_handoff() {
    // R-0023-4 (half: the engine where a pin changes)
    let pinned = |workflow: WorkflowBuilder, id: &str, agent: &str| {
        workflow
            .node(id, "core.noop", json!({}))
            .with("agent", json!({"agentId": agent}))
    };
    let workflow = pinned(workflow("relay"), "a", "core.ann");
    let workflow = pinned(workflow.noops("between"), "b", "core.ann");
    let workflow = pinned(workflow, "c", "core.bob").path("a between b c");
    let mut run = RunHarness::started(workflow);
    let lines = run.lines();
    let handoffs: Vec<&String> = lines.iter().filter(|l| l.contains("hands off")).collect();
    assert_eq!(handoffs, ["core.ann hands off to core.bob"]);
}

#[test]
fn worker_of_another_agent_gets_a_handoff() {
    // R-0023-4 (half: a dispatch node to a worker of another agent)
    let worker = |id: &str, agent: &str| {
        let pin = json!({"agentId": agent});
        workflow(id).noops("n").with("agent", pin)
    };
    let next = |ids: &[&str]| json!({"kind": "next-worker", "nextWorkerIds": ids});
    let agents_workflow = workflow("conformance-supervised")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": [next(&["one", "same", "other"])]}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let mut run = RunHarness::new(agents_workflow)
        .with_workflow(worker("one", "core.ann"))
        .with_workflow(worker("same", "core.ann"))
        .with_workflow(worker("other", "core.bob"));
    run.create(json!({}));
    for _ in 0..3 {
        run.child_ended("send", RunStatus::Completed, json!({}));
    }
    assert_eq!(run.status(), RunStatus::Completed);
    let lines = run.lines();
    let handoffs: Vec<&String> = lines.iter().filter(|l| l.contains("hands off")).collect();
    assert_eq!(handoffs, ["core.ann hands off to core.bob"]);
}

#[test]
fn reasoning_is_omitted_when_verbosity_is_off() {
    // R-0023-1 (half: the mock agent emits reasoning)
    for (verbosity, emitted) in [("off", 0), ("summary", 1), ("full", 1)] {
        let mut run = RunHarness::new(agent(json!({"mockReasoning": true})))
            .configured(json!({"reasoningVerbosity": verbosity}));
        run.create(json!({}));
        let log = run.log().iter();
        let count = log.filter(|r| matches!(r.event, Event::Agent(_))).count();
        assert_eq!(count, emitted, "{verbosity}");
    }
}

#[test]
fn mock_agent_config_is_validated_and_limited_to_conformance_workflows() {
    // R-0023-19 (half: what the schema forbids is refused)
    let table = [
        (json!({"mockConfidence": 1.7}), "mockConfidence"),
        (json!({"extra": 1}), "extra"),
        (json!({"mockHandoff": {}}), "mockHandoff/toAgentId"),
        (
            json!({"mockHandoff": {"toAgentId": "x"}}),
            "mockHandoff/toAgentId",
        ),
        (json!({"mockDecision": {}}), "mockDecision/decision"),
        (
            json!({"mockDecision": {"decision": 1, "confidence": -1}}),
            "mockDecision/confidence",
        ),
        (
            json!({"mockDecision": {"decision": 1, "stray": 1}}),
            "mockDecision/stray",
        ),
        (json!({"agentId": "x"}), "agentId"),
        (
            json!({"mockToolCalls": [{"arguments": {}}]}),
            "mockToolCalls/0/toolId",
        ),
        (
            json!({"mockToolCalls": [{"toolId": "t", "durationMs": -1}]}),
            "mockToolCalls/0/durationMs",
        ),
        (
            json!({"mockToolCalls": [{"toolId": "t", "error": {"error": "e"}}]}),
            "mockToolCalls/0/error/message",
        ),
        (
            json!({"mockReasoning": {"summary": "s", "stray": 1}}),
            "mockReasoning/stray",
        ),
        (json!({"mockReasoning": {}}), "mockReasoning/summary"),
    ];
    for (config, place) in table {
        let refused = Definition::admit(&agent(config).document(), Permissions::default());
        let problems = refused.expect_err(place);
        assert_eq!(problems[0].path, format!("/nodes/0/config/{place}"));
    }
    // Accepted by earlier versions, and so still read where it is stored.
    let failed = |details: Value| {
        let error = json!({"error": "e", "message": "m", "details": details});
        json!({"mockToolCalls": [{"toolId": "t", "error": error}]})
    };
    for (config, place) in [
        (json!({"agentId": null}), "agentId"),
        (json!({"mockConfidence": null}), "mockConfidence"),
        (failed(json!("no")), "mockToolCalls/0/error/details"),
        (failed(json!(null)), "mockToolCalls/0/error/details"),
    ] {
        let document = agent(config).document();
        assert!(Definition::compile(&document, Permissions::default()).is_ok());
        let problems = Definition::admit(&document, Permissions::default()).expect_err(place);
        assert_eq!(problems[0].path, format!("/nodes/0/config/{place}"));
    }
    let sound = agent(failed(json!({"left": 0}))).document();
    assert!(Definition::admit(&sound, Permissions::default()).is_ok());
    let outside = workflow("acme")
        .node("act", "core.conformance.mock-agent", json!({}))
        .document();
    let problems = Definition::compile(&outside, Permissions::default()).expect_err("guarded");
    assert_eq!(
        problems[0].type_id.as_deref(),
        Some("core.conformance.mock-agent")
    );
    let role = Permissions {
        conformance: ConformanceTypes::Everywhere,
        ..Permissions::default()
    };
    assert!(Definition::compile(&outside, role).is_ok());
}

#[test]
fn mock_agent_exists_for_conformance_workflows_and_is_not_advertised() {
    // R-0023-23
    const MOCK: &str = "core.conformance.mock-agent";
    let known = crate::node::node_type(MOCK).expect("it ships with the host");
    assert_eq!(known.availability, Availability::TestOnly);
    assert!(!crate::node::advertised_types().any(|id| id == MOCK));
    let with = |id: &str| {
        let document = workflow(id).node("act", MOCK, json!({})).document();
        Definition::compile(&document, Permissions::default())
    };
    assert!(with("conformance-agent").is_ok());
    for production in ["orders", "my-conformance-agent", "Conformance-agent"] {
        assert!(with(production).is_err(), "{production}");
    }
}
