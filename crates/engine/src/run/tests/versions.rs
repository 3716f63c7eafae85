//! What an operator may leave out: versions of the execution model, agents as a whole, and the types
//! for conformance tests. What is left out is not done, and what needs it does not start.

use super::flow::{Flow, flow};
use super::stage::Stage;
use super::supervising::{staged, supervised, terminate, workers};
use super::tools::{caller, result};
use crate::run::{AgentPolicy, Refusal};
use serde_json::{Value, json};
use tandem_record::{Event, RunStatus};

fn capped(version: u64) -> AgentPolicy {
    let policy = AgentPolicy::default().capped(Some(version));
    policy.expect("a version there is")
}

fn under(policy: AgentPolicy, flow: Flow) -> Stage {
    let mut run = staged(flow);
    run.agents = policy;
    run
}

fn unsure(mut decision: Value) -> Value {
    decision["confidence"] = json!(0.1);
    decision
}

#[test]
fn below_version_two_an_unsure_decision_is_carried_out_as_before() {
    // R-0039-11, R-0039-28 (half: version one behaves as it did)
    // R-0044-11 (half: the kind means nothing below version two)
    for kind in [None, Some("clarification"), Some("x-host-tandem-doubt")] {
        for (version, escalated) in [(1, false), (2, true), (6, true)] {
            let policy = AgentPolicy::new(Some(0.9), kind).expect("a known kind");
            let policy = policy.capped(Some(version)).expect("a version there is");
            assert_eq!(policy.advertised_floor().is_some(), escalated);
            assert_eq!(policy.advertised_kind().is_some(), escalated);
            let plan = json!([unsure(workers(&["one"])), terminate()]);
            let mut run = under(policy, supervised(plan, json!({})));
            run.create(json!({}));
            let told = run.log().iter();
            let told = told.filter(|r| matches!(r.event, Event::ConfidenceEscalated { .. }));
            assert_eq!(told.count(), usize::from(escalated), "{kind:?} {version}");
            let begun = run.run().view().children.len();
            assert_eq!(begun, usize::from(!escalated), "{kind:?} {version}");
        }
    }
}

#[test]
fn without_agents_nobody_speaks_as_one() {
    // R-0023-8 (half: no type says anything)
    let off = || AgentPolicy::default().switched(false);
    let pinned = |flow: Flow, agent: &str| flow.with("agent", json!({"agentId": agent}));
    let relay = pinned(flow("relay").noops("a"), "core.ann");
    let relay = pinned(relay.noops("b"), "core.bob").path("a b");
    let mock = json!({
        "mockReasoning": true, "mockToolCalls": [{"toolId": "t"}],
        "mockHandoff": {"toAgentId": "core.next"}, "mockConfidence": 0.1,
    });
    let mock = flow("conformance-mock").node("act", "core.conformance.mock-agent", mock);
    for (flow, answers) in [
        (relay, None),
        (mock, None),
        (
            caller(flow("tool"), "t", json!({})),
            Some(result("fine", false)),
        ),
    ] {
        let mut run = under(off(), flow);
        run.create(json!({}));
        if let Some(answer) = answers {
            run.done("t", answer);
        }
        assert_eq!(run.status(), RunStatus::Completed);
        let spoke = run.log().iter().any(|r| matches!(r.event, Event::Agent(_)));
        assert!(!spoke, "{:?}", run.log());
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
fn a_run_from_before_agents_were_switched_off_says_no_more_of_its_workers() {
    let plan = json!([workers(&["one"]), terminate()]);
    let mut run = under(AgentPolicy::default(), supervised(plan, json!({}))).given();
    run.create(json!({}));
    let told = |run: &Stage| {
        let log = run.log().iter();
        log.filter(|r| matches!(r.event, Event::Handoff(_))).count()
    };
    let before = told(&run);
    run.agents = AgentPolicy::default().switched(false);
    run.child_ended("send", RunStatus::Completed, json!({}));
    assert_eq!(told(&run), before);
    let error = run.run().error().expect("it failed");
    assert_eq!(error.code, "capability_not_provided");
}

#[test]
fn a_critic_is_refused_below_version_six() {
    let lead = json!({"mockDispatchPlan": [terminate()],
        "verifier": {"mockVerdicts": ["pass"], "over": ["terminate"]}});
    let checked = || {
        flow("conformance-checked")
            .node("lead", "core.orchestrator.supervisor", lead.clone())
            .node("send", "core.dispatch", json!({}))
            .path("lead send lead")
    };
    let definition = checked().compile();
    for (version, refused) in [(5, true), (6, false)] {
        let complaint = capped(version).complaint(&definition);
        assert_eq!(complaint.is_some(), refused, "{version}");
        let created = under(capped(version), checked()).try_create(json!({}));
        assert_eq!(created.is_err(), refused, "{version}");
    }
}

#[test]
fn without_conformance_types_no_run_that_uses_them_starts_or_goes_on() {
    // R-0023-18 (half: no run of a document stored before)
    let mock = |flow: Flow| flow.node("act", "core.conformance.mock-agent", json!({}));
    let hooked = supervised(json!([terminate()]), json!({}));
    for flow in [mock(flow("conformance-mock")), hooked] {
        let mut run = Stage::new(flow);
        run.conformance = false;
        match run.try_create(json!({})) {
            Err(Refusal::TypeRefused { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let later = mock(flow("conformance-later").node("nap", "core.delay", json!({"delayMs": 5})));
    let mut run = Stage::started(later.path("nap act"));
    run.conformance = false;
    run.elapse(5);
    let error = run.run().error().expect("it failed");
    assert_eq!(error.code, "typeId_refused");
}
