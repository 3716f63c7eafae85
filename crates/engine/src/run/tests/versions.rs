//! What an operator may disable: versions of the execution model, agents as a whole, and the types
//! for conformance tests. Disabled features have no effect, and what needs them does not start.

use super::harness::RunHarness;
use super::supervising::{staged, supervised, terminate, workers};
use super::tools::{caller, result};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::{AgentPolicy, Refusal};
use serde_json::{Value, json};
use tandem_record::{Event, RunStatus};

fn capped(version: u64) -> AgentPolicy {
    let policy = AgentPolicy::default().with_model_cap(Some(version));
    policy.expect("a version there is")
}

fn under(policy: AgentPolicy, workflow: WorkflowBuilder) -> RunHarness {
    let mut run = staged(workflow);
    run.agents = policy;
    run
}

fn unsure(mut decision: Value) -> Value {
    decision["confidence"] = json!(0.1);
    decision
}

#[test]
fn low_confidence_decision_is_not_held_below_version_two() {
    // R-0039-11, R-0039-28 (half: version one behaves as it did)
    // R-0044-11 (half: the kind means nothing below version two)
    for kind in [None, Some("clarification"), Some("x-host-tandem-doubt")] {
        for (version, escalated) in [(1, false), (2, true), (6, true)] {
            let policy = AgentPolicy::new(Some(0.9), kind).expect("a known kind");
            let policy = policy
                .with_model_cap(Some(version))
                .expect("a version there is");
            assert_eq!(policy.advertised_floor().is_some(), escalated);
            assert_eq!(policy.advertised_kind().is_some(), escalated);
            let plan = json!([unsure(workers(&["one"])), terminate()]);
            let mut run = under(policy, supervised(plan, json!({})));
            run.create(json!({}));
            let escalations = run.log().iter();
            let escalations =
                escalations.filter(|r| matches!(r.event, Event::ConfidenceEscalated { .. }));
            assert_eq!(
                escalations.count(),
                usize::from(escalated),
                "{kind:?} {version}"
            );
            let children = run.run().view().children.len();
            assert_eq!(children, usize::from(!escalated), "{kind:?} {version}");
        }
    }
}

#[test]
fn decisions_tell_their_iteration_since_version_five() {
    for (version, numbered) in [(1, false), (4, false), (5, true), (6, true)] {
        let mut run = under(capped(version), supervised(json!([terminate()]), json!({})));
        run.create(json!({}));
        let decided = run.log().iter().find_map(|r| match &r.event {
            Event::OrchestratorDecided {
                iteration,
                unnumbered,
                ..
            } => Some((*iteration, !unnumbered)),
            _ => None,
        });
        assert_eq!(decided, Some((1, numbered)), "{version}");
    }
}

#[test]
fn no_agent_events_when_agents_are_disabled() {
    // R-0023-8 (half: no node type emits agent events)
    let off = || AgentPolicy::default().with_agents_supported(false);
    let pinned =
        |workflow: WorkflowBuilder, agent: &str| workflow.with("agent", json!({"agentId": agent}));
    let relay = pinned(workflow("relay").noops("a"), "core.ann");
    let relay = pinned(relay.noops("b"), "core.bob").path("a b");
    let mock = json!({
        "mockReasoning": true, "mockToolCalls": [{"toolId": "t"}],
        "mockHandoff": {"toAgentId": "core.next"}, "mockConfidence": 0.1,
    });
    let mock = workflow("conformance-mock").node("act", "core.conformance.mock-agent", mock);
    for (workflow, answers) in [
        (relay, None),
        (mock, None),
        (
            caller(workflow("tool"), "t", json!({})),
            Some(result("fine", false)),
        ),
    ] {
        let mut run = under(off(), workflow);
        run.create(json!({}));
        if let Some(answer) = answers {
            run.done("t", answer);
        }
        assert_eq!(run.status(), RunStatus::Completed);
        let emitted = run.log().iter().any(|r| matches!(r.event, Event::Agent(_)));
        assert!(!emitted, "{:?}", run.log());
    }
    let plan = json!([workers(&["one"])]);
    match under(off(), supervised(plan, json!({}))).try_create(json!({})) {
        Err(Refusal::CapabilityRequired { capability, .. }) => {
            assert_eq!(capability, "agents.orchestrator");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn older_run_records_no_handoffs_after_agents_are_disabled() {
    let plan = json!([workers(&["one"]), terminate()]);
    let mut run = under(AgentPolicy::default(), supervised(plan, json!({}))).given();
    run.create(json!({}));
    let handoffs = |run: &RunHarness| {
        let log = run.log().iter();
        log.filter(|r| matches!(r.event, Event::Handoff(_))).count()
    };
    let before = handoffs(&run);
    run.agents = AgentPolicy::default().with_agents_supported(false);
    run.child_ended("send", RunStatus::Completed, json!({}));
    assert_eq!(handoffs(&run), before);
    let error = run.run().error().expect("it failed");
    assert_eq!(error.code, "capability_not_provided");
}

#[test]
fn verifier_is_refused_below_version_six() {
    let lead = json!({"mockDispatchPlan": [terminate()],
        "verifier": {"mockVerdicts": ["pass"], "over": ["terminate"]}});
    let checked = || {
        workflow("conformance-checked")
            .node("lead", "core.orchestrator.supervisor", lead.clone())
            .node("send", "core.dispatch", json!({}))
            .path("lead send lead")
    };
    let definition = checked().compile();
    for (version, refused) in [(5, true), (6, false)] {
        let complaint = capped(version).registration_problem(&definition);
        assert_eq!(complaint.is_some(), refused, "{version}");
        let created = under(capped(version), checked()).try_create(json!({}));
        assert_eq!(created.is_err(), refused, "{version}");
    }
}

#[test]
fn run_with_conformance_types_is_refused_when_they_are_disabled() {
    // R-0023-18 (half: no run of a document stored before)
    let mock =
        |workflow: WorkflowBuilder| workflow.node("act", "core.conformance.mock-agent", json!({}));
    let hooked = supervised(json!([terminate()]), json!({}));
    for workflow in [mock(workflow("conformance-mock")), hooked] {
        let mut run = RunHarness::new(workflow);
        run.conformance = false;
        match run.try_create(json!({})) {
            Err(Refusal::TypeRefused { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let later =
        mock(workflow("conformance-later").node("nap", "core.delay", json!({"delayMs": 5})));
    let mut run = RunHarness::started(later.path("nap act"));
    run.conformance = false;
    run.elapse(5);
    let error = run.run().error().expect("it failed");
    assert_eq!(error.code, "typeId_refused");
}
