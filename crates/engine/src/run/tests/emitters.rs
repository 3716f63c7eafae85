//! Which nodes may emit agent events, what the hooks of conformance tests emit, and the causes that
//! agents on other hosts report.

use super::harness::RunHarness;
use super::supervising::{staged, terminate, workers};
use super::tools::{caller, result};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::definition::{Definition, Permissions};
use crate::run::AgentPolicy;
use serde_json::{Value, json};
use tandem_record::{
    AgentEventKind, Cause, ErrorInfo, Event, NodeId, RunStatus, Seq, VerificationSubject,
    VerifierVerdict,
};

const MOCK: &str = "core.conformance.mock-agent";

fn mock(config: Value) -> WorkflowBuilder {
    workflow("conformance-agent").node("act", MOCK, config)
}

/// A supervisor that calls an endpoint.
fn asking(id: &str, more: Value) -> WorkflowBuilder {
    let mut config = json!({"endpoint": {"url": "http://brain.test/"}});
    let more = more.as_object().expect("a configuration").clone();
    config.as_object_mut().expect("it is one").extend(more);
    workflow(id)
        .node("lead", "core.orchestrator.supervisor", config)
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead")
}

fn started(workflow: WorkflowBuilder) -> RunHarness {
    let mut run = staged(workflow);
    run.create(json!({}));
    run
}

fn agent_events(run: &RunHarness) -> Vec<(Option<Cause>, AgentEventKind)> {
    let log = run.log().iter();
    log.filter_map(|r| match &r.event {
        Event::Agent(agent_event) => Some((r.cause.clone(), agent_event.kind.clone())),
        _ => None,
    })
    .collect()
}

fn every_agent_event_kind() -> Vec<(&'static str, AgentEventKind)> {
    let text = || "x".to_owned();
    vec![
        (
            "reasoned",
            AgentEventKind::Reasoned {
                reasoning: text(),
                verbosity: text(),
                token_count: None,
            },
        ),
        (
            "reasoning.delta",
            AgentEventKind::ReasoningDelta {
                delta: text(),
                sequence: 0,
            },
        ),
        (
            "toolCalled",
            AgentEventKind::ToolCalled {
                tool: text(),
                call: text(),
                inputs: None,
                transport: None,
                principal: None,
            },
        ),
        (
            "toolReturned",
            AgentEventKind::ToolReturned {
                tool: text(),
                call: text(),
                outcome: None,
                error: Some(ErrorInfo::new("x", "x")),
                duration_ms: None,
                untrusted: false,
            },
        ),
        (
            "handoff",
            AgentEventKind::HandedOff {
                to: text(),
                reason: None,
                context: None,
            },
        ),
        (
            "decided",
            AgentEventKind::Decided {
                decision: json!(1),
                confidence: None,
                reasoning: None,
            },
        ),
        (
            "verified",
            AgentEventKind::Verified {
                verification_subject: VerificationSubject::Decision { decided: Seq(1) },
                verdict: VerifierVerdict::Pass,
                criteria: Vec::new(),
                confidence: None,
                feedback: None,
            },
        ),
    ]
}

#[test]
fn node_type_emits_only_the_agent_events_it_is_authorized_for() {
    // R-0023-1 (half: no other node may), R-0023-2 (half: no other node may)
    // R-0023-3 (half: no other node may), R-0023-5 (half: no other node may)
    // R-0023-4 (half: no other node emits it by itself)
    let chat = json!({"provider": "acme", "userPrompt": "hi"});
    let put = json!({"action": "put", "key": "k", "value": 1});
    let workflow = asking("conformance-all", json!({}))
        .node("mock", MOCK, json!({}))
        .node("same", "core.identity", json!({}))
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .node("chat", "core.llm.chat", chat)
        .node("note", "vendor.tandem.memory", put)
        .http("call", json!({}))
        .noops("noop");
    let run = staged(caller(workflow, "tool", json!({})));
    let mut run = run;
    run.create(json!({}));
    let may = |node: &str| -> Vec<&'static str> {
        let ix = run.run().def.index(&NodeId::new(node)).expect("a node");
        let emitter = run.run().agent_emitter(ix);
        let speech = every_agent_event_kind().into_iter();
        speech
            .filter(|(_, kind)| {
                emitter
                    .as_ref()
                    .is_some_and(|emitter| emitter.may_emit(kind))
            })
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(may("lead"), ["reasoned", "reasoning.delta", "decided"]);
    assert_eq!(may("tool"), ["toolCalled", "toolReturned"]);
    let all = every_agent_event_kind().into_iter().map(|(name, _)| name);
    let all: Vec<&str> = all.filter(|name| *name != "verified").collect();
    assert_eq!(may("mock"), all);
    // A dispatch node and the engine at a pin emit handoffs in their own names; see `hands off`
    // lines.
    for silent in ["send", "same", "gate", "chat", "note", "call", "noop"] {
        assert!(may(silent).is_empty(), "{silent}");
    }
}

#[test]
fn low_confidence_mock_agent_emits_all_events_before_it_waits() {
    // R-0023-9
    let mut run = RunHarness::started(mock(json!({
        "mockDecision": {"decision": {"go": true}, "confidence": 0.2},
        "mockHandoff": {"toAgentId": "core.next"},
        "mockToolCalls": [{"toolId": "look", "result": 2}],
        "mockReasoning": {"summary": "so"},
    })));
    let emitted: Vec<String> = run.lines().into_iter().skip(2).collect();
    let who = "host:mock-agent:act";
    let expected = [
        format!("{who} reasoned so"),
        format!("{who} called look"),
        format!("{who} returned look"),
        format!("{who} hands off to core.next"),
        format!("{who} decided 0.2"),
        "interrupt.requested act".to_owned(),
        "node.suspended act waiting-approval".to_owned(),
    ];
    assert_eq!(emitted, expected);
}

#[test]
fn mock_reasoning_is_a_summary_chunks_a_stub_or_absent() {
    // R-0023-10
    let emitted = |reasoning: Value| {
        let mut run = RunHarness::started(mock(json!({"mockReasoning": reasoning})));
        let lines = run.lines().into_iter().filter(|l| l.contains("mock-agent"));
        lines
            .map(|l| l.trim_start_matches("host:mock-agent:act ").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(emitted(json!({"summary": "so"})), ["reasoned so"]);
    let pieces = json!({"summary": "so", "streamChunks": ["a", "b"]});
    assert_eq!(emitted(pieces), ["delta[0] a", "delta[1] b", "reasoned ab"]);
    assert!(emitted(json!(false)).is_empty());
    let mut silent = RunHarness::started(mock(json!({})));
    assert!(!silent.lines().iter().any(|l| l.contains("reasoned")));
    let stub = emitted(json!(true));
    assert!(
        stub.len() == 1 && stub[0].len() > "reasoned ".len(),
        "{stub:?}"
    );
}

#[test]
fn a_mock_agent_decides_once_by_either_key() {
    // R-0023-13
    for (config, confidence) in [
        (json!({"mockDecision": {"decision": {"go": 1}}}), None),
        (
            json!({"mockDecision": {"decision": {"go": 1}, "confidence": 1}}),
            Some(1.0),
        ),
        (json!({"mockConfidence": 0.8}), Some(0.8)),
        (json!({"mockConfidence": 0.1}), Some(0.1)),
    ] {
        let run = RunHarness::started(mock(config.clone()));
        let events = agent_events(&run);
        let [
            (
                _,
                AgentEventKind::Decided {
                    decision,
                    confidence: decided,
                    ..
                },
            ),
        ] = events.as_slice()
        else {
            panic!("{config}: {events:?}");
        };
        assert_eq!(*decided, confidence, "{config}");
        assert!(!decision.is_null(), "{config}");
    }
    assert!(agent_events(&RunHarness::started(mock(json!({})))).is_empty());
}

#[test]
fn mock_confidence_overrides_live_confidence() {
    // R-0023-24
    for (live, hook, status) in [
        (Some(0.9), 0.2, RunStatus::WaitingApproval),
        (Some(0.2), 0.9, RunStatus::Completed),
        (None, 0.2, RunStatus::WaitingApproval),
    ] {
        let mut run = started(asking("conformance-live", json!({"mockConfidence": hook})));
        let mut body = json!({"decision": terminate()});
        if let Some(live) = live {
            body["confidence"] = json!(live);
        }
        run.done("lead", json!({"status": 200, "body": body}));
        let events = agent_events(&run);
        let [(_, AgentEventKind::Decided { confidence, .. })] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(*confidence, Some(hook), "said {live:?}");
        assert_eq!(run.status(), status, "{live:?} and {hook}");
    }
    let mut run = started(asking("live", json!({})));
    let body = json!({"decision": terminate(), "confidence": 0.2});
    run.done("lead", json!({"status": 200, "body": body}));
    assert_eq!(
        run.status(),
        RunStatus::WaitingApproval,
        "without the hook its own counts"
    );
}

#[test]
fn pending_decision_is_used_without_calling_the_live_agent() {
    // R-0023-25
    let hook = json!({"mockPendingDecision": terminate()});
    let mut run = started(asking("conformance-pending", hook));
    let lines = run.lines();
    assert!(!lines.iter().any(|l| l.contains("http")), "{lines:?}");
    assert_eq!(run.status(), RunStatus::Completed);
    let outputs = run.run().outputs().expect("completed").clone();
    assert_eq!(outputs["decision"], terminate());
}

#[test]
fn what_the_published_schema_allows_of_a_mock_agent_is_accepted() {
    // R-0023-19 (half: what the schema allows is accepted)
    let call = json!({"toolId": "t", "arguments": {"a": 1}, "result": [1], "durationMs": 2.0});
    let failed = json!({"error": "e", "message": "m", "details": {}});
    let table = [
        json!({}),
        json!({"agentId": "abc"}),
        json!({"mockReasoning": true}),
        json!({"mockReasoning": {"summary": "", "trace": "", "tokenCount": 1.0}}),
        json!({"mockReasoning": {"summary": "s", "tokenCount": 0, "streamChunks": []}}),
        json!({"mockToolCalls": []}),
        json!({"mockToolCalls": [call, {"toolId": "t"}, {"toolId": "t", "result": null}]}),
        json!({"mockToolCalls": [{"toolId": "", "result": 1}]}),
        json!({"mockToolCalls": [{"toolId": "t", "result": null, "error": failed}]}),
        json!({"mockToolCalls": vec![json!({"toolId": "t", "result": 1}); 5_000]}),
        json!({"mockHandoff": {"toAgentId": "abc", "reason": "", "context": null}}),
        json!({"mockDecision": {"decision": null, "confidence": 0, "reasoning": ""}}),
        json!({"mockConfidence": 1}),
    ];
    for config in table {
        let document = mock(config.clone()).document();
        let admitted = Definition::admit(&document, Permissions::default());
        assert!(
            admitted.is_ok(),
            "{admitted:?} {}",
            &config.to_string()[..60.min(config.to_string().len())]
        );
    }
    for fraction in [json!(1.5), json!(-1.0), json!("1")] {
        let config = json!({"mockReasoning": {"summary": "s", "tokenCount": fraction}});
        assert!(Definition::admit(&mock(config).document(), Permissions::default()).is_err());
    }
}

#[test]
fn failed_tool_call_has_no_outcome_and_integers_stay_integers() {
    let error = json!({"error": "quota", "message": "no more"});
    let call = json!({"toolId": "t", "result": 2, "error": error, "durationMs": 3.0});
    let run = RunHarness::started(mock(json!({"mockToolCalls": [call]})));
    let events = agent_events(&run);
    let Some((
        _,
        AgentEventKind::ToolReturned {
            outcome,
            error,
            duration_ms,
            ..
        },
    )) = events.last()
    else {
        panic!("{events:?}");
    };
    assert_eq!(outcome, &None);
    assert_eq!(error.as_ref().map(|e| e.code.as_str()), Some("quota"));
    assert_eq!(*duration_ms, Some(3));
}

#[test]
fn tool_server_return_is_caused_by_its_call() {
    // R-0023-2 (half: a tool node emits its call), R-0023-3 (half: the return of a tool node)
    let mut run = RunHarness::started(caller(workflow("one"), "t", json!({})));
    run.done("t", result("fine", false));
    let calls: Vec<Seq> = run
        .log()
        .iter()
        .filter(
            |r| matches!(&r.event, Event::Agent(f) if matches!(f.kind, AgentEventKind::ToolCalled { .. })),
        )
        .map(|r| r.seq)
        .collect();
    let events = agent_events(&run);
    let [_, (cause, AgentEventKind::ToolReturned { .. })] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(*cause, Some(Cause::Event(calls[0])));
}

/// The cause of each decision of a run whose agent reports `causation`.
fn causes(policy: AgentPolicy, causation: &Value, confidence: Option<f64>) -> Vec<Option<Cause>> {
    let mut run = staged(asking("far", json!({})));
    run.agents = policy;
    run.create(json!({}));
    let mut body = json!({"decision": workers(&["one"]), "causation": causation});
    if let Some(confidence) = confidence {
        body["confidence"] = json!(confidence);
    }
    run.done("lead", json!({"status": 200, "body": body}));
    let log = run.log().iter();
    log.filter(|r| match &r.event {
        Event::Agent(agent_event) => matches!(agent_event.kind, AgentEventKind::Decided { .. }),
        Event::OrchestratorDecided { .. } => true,
        _ => false,
    })
    .map(|r| r.cause.clone())
    .collect()
}

#[test]
fn foreign_decision_names_the_event_and_the_host() {
    // R-0040-2 (half: an event of this host is named without it)
    // R-0040-3 (half: a decision of an agent on another host)
    // R-0040-17 (half: no such cause is recorded below version three)
    let here = || AgentPolicy::default().with_host_id("near");
    let far = json!({"hostId": "far.example/runtime", "eventId": "run-7:3"});
    let foreign = Cause::Foreign {
        event: "run-7:3".to_owned(),
        host: "far.example/runtime".to_owned(),
    };
    assert_eq!(causes(here(), &far, None), [Some(foreign.clone())]);
    let stated = causes(here(), &far, Some(0.9));
    assert_eq!(stated[0], Some(foreign), "the first of the two");
    assert!(matches!(stated[1], Some(Cause::Event(_))), "{stated:?}");
    // Of this host: the first event of the run that asks, and events that are not in its log.
    let named = |event: &str| json!({"hostId": "near", "eventId": event});
    let first = named("evt-run-1-0");
    assert_eq!(causes(here(), &first, None), [Some(Cause::Event(Seq(0)))]);
    for missing in [
        "run-7:3",
        "evt-run-7-3",
        "-",
        "evt-run-1-99",
        "evt-run-1-00",
    ] {
        let caused = causes(here(), &named(missing), None);
        assert!(
            matches!(caused[..], [Some(Cause::Event(Seq(1..)))]),
            "{missing}: {caused:?}"
        );
    }
    let capped = here().with_model_cap(Some(2)).expect("a version");
    let long = json!({"hostId": "far", "eventId": "e".repeat(129)});
    for (policy, causation) in [(capped, &far), (here(), &long), (here(), &json!("far"))] {
        let caused = causes(policy, causation, None);
        assert!(matches!(caused[..], [Some(Cause::Event(_))]), "{caused:?}");
    }
}
