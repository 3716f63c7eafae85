use super::super::project::event;
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use tandem_record::{
    AgentEvent, AgentEventKind, Cause, EscalationKind, Event, Handoff, HandoffStep, NodeId,
    RecordedEvent, RunId, Sensitivity, Seq, Timestamp, VerificationSubject, VerifierVerdict,
    WorkflowId,
};

fn agent_event(kind: AgentEventKind) -> Event {
    Event::Agent(Box::new(AgentEvent {
        node: NodeId::new("n"),
        agent_id: "core.ann".to_owned(),
        kind,
    }))
}

fn shown(event_: Event, cause: Cause) -> Value {
    let recorded = RecordedEvent {
        seq: Seq(4),
        at: Timestamp(0),
        cause: Some(cause),
        event: event_,
    };
    event(&RunId::new("run-1"), &recorded, &Sensitivity::default())
}

/// Events, and whether they name the host of a cause on another host.
fn events() -> Vec<(Event, bool)> {
    let text = || "x".to_owned();
    let node = || NodeId::new("n");
    let reasoned = AgentEventKind::Reasoned {
        reasoning: text(),
        verbosity: text(),
        token_count: None,
    };
    let called = AgentEventKind::ToolCalled {
        tool: text(),
        call: text(),
        inputs: None,
        transport: None,
        principal: None,
    };
    let returned = AgentEventKind::ToolReturned {
        tool: text(),
        call: text(),
        outcome: None,
        error: None,
        duration_ms: None,
        untrusted: false,
    };
    let handed = AgentEventKind::HandedOff {
        to: text(),
        reason: None,
        context: None,
    };
    let decided = AgentEventKind::Decided {
        decision: json!(1),
        confidence: None,
        reasoning: None,
    };
    let delta = AgentEventKind::ReasoningDelta {
        delta: text(),
        sequence: 0,
    };
    let turn = Event::OrchestratorDecided {
        node: node(),
        agent_id: text(),
        decision: json!({}),
        iteration: 1,
        unnumbered: false,
    };
    let escalated = Event::ConfidenceEscalated {
        node: node(),
        confidence: 0.1,
        floor: 0.5,
        kind: EscalationKind::Escalate,
        worker: None,
        decision: json!({}),
    };
    let handoff = Event::Handoff(Box::new(Handoff {
        node: node(),
        index: 0,
        worker: WorkflowId::new("w"),
        step: HandoffStep::Began,
    }));
    let mut events = vec![(agent_event(delta), false)];
    events.push((Event::RunResumed { reason: None }, false));
    let verified = AgentEventKind::Verified {
        verification_subject: VerificationSubject::Decision { decided: Seq(2) },
        verdict: VerifierVerdict::Pass,
        criteria: Vec::new(),
        confidence: None,
        feedback: None,
    };
    for one in [reasoned, called, returned, handed, decided, verified] {
        events.push((agent_event(one), true));
    }
    events.extend([turn, escalated, handoff].map(|event| (event, true)));
    events
}

#[test]
fn causation_host_is_named_only_for_foreign_causes() {
    // R-0040-1 (half: the listed events may have it)
    // R-0040-2 (half: the projection), R-0040-3 (half: the projection)
    for (event, named) in events() {
        let foreign = Cause::Foreign {
            event: "run-9:2".to_owned(),
            host: "far".to_owned(),
        };
        let far = shown(event.clone(), foreign);
        assert_eq!(far["causationId"], "run-9:2");
        let host = far["payload"].get("causationHostId");
        assert_eq!(host, named.then(|| json!("far")).as_ref(), "{far}");

        for near in [Cause::Event(Seq(3)), Cause::External("run-2:1".to_owned())] {
            let near = shown(event.clone(), near);
            assert_eq!(near["payload"].get("causationHostId"), None, "{near}");
        }
    }
}

/// The payloads that have the field, `agent.verified` by a later extension.
const NAMES_HOST: [&str; 11] = [
    "agent.reasoned",
    "agent.toolCalled",
    "agent.toolReturned",
    "agent.handoff",
    "agent.decided",
    "agent.promptResolved",
    "agent.verified",
    "runOrchestrator.decided",
    "core.workflowChain.event",
    "core.workflowChain.confidence-escalated",
    "prompt.composed",
];

#[test]
fn no_other_recorded_event_names_a_host() {
    // R-0040-1 (half: no other event has it)
    let histories = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/histories");
    let mut types = BTreeSet::new();
    for entry in std::fs::read_dir(histories).expect("recorded logs") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a log");
        let history: Value = serde_json::from_str(&text).expect("JSON");
        for stored in history["events"].as_array().expect("events") {
            let event = Event::deserialize(&stored["body"]["e"]).expect("an event");
            let foreign = Cause::Foreign {
                event: "run-9:2".to_owned(),
                host: "far".to_owned(),
            };
            let far = shown(event, foreign);
            let kind = far["type"].as_str().expect("a type").to_owned();
            let named = far["payload"].get("causationHostId").is_some();
            assert_eq!(named, NAMES_HOST.contains(&kind.as_str()), "{far}");
            types.insert(kind);
        }
    }
    assert!(types.len() > 20, "{types:?}");
}

#[test]
fn verified_event_shows_target_and_verdict_but_no_feedback() {
    let verdict = |verification_subject, criteria| {
        agent_event(AgentEventKind::Verified {
            verification_subject,
            verdict: VerifierVerdict::Revise,
            criteria,
            confidence: Some(0.5),
            feedback: Some("what the secret plan lacks".to_owned()),
        })
    };
    let decision = VerificationSubject::Decision { decided: Seq(2) };
    let output = VerificationSubject::Output {
        index: 0,
        child: RunId::new("run-2"),
    };
    let table = [
        (
            verdict(decision, Vec::new()),
            json!({"agentId": "core.ann", "target": "evt-run-1-2", "verdict": "revise", "confidence": 0.5}),
        ),
        (
            verdict(output, vec!["short".to_owned()]),
            json!({"agentId": "core.ann", "target": "run-2", "verdict": "revise",
                   "criteria": ["short"], "confidence": 0.5}),
        ),
    ];
    for (event, expected) in table {
        let shown = shown(event, Cause::Event(Seq(3)));
        assert_eq!(shown["type"], "agent.verified");
        assert_eq!(shown["payload"], expected);
    }
}
