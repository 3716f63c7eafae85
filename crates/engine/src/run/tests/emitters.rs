//! Who may speak as an agent, what the hooks of conformance tests make them say, and where an agent
//! elsewhere says its decision comes from.

use super::flow::{Flow, flow};
use super::stage::Stage;
use super::supervising::{staged, terminate, workers};
use super::tools::{caller, result};
use crate::definition::{Definition, Permissions};
use crate::run::AgentPolicy;
use serde_json::{Value, json};
use tandem_record::{Cause, ErrorInfo, Event, Judged, Judgement, NodeId, RunStatus, Said, Seq};

const MOCK: &str = "core.conformance.mock-agent";

fn mock(config: Value) -> Flow {
    flow("conformance-agent").node("act", MOCK, config)
}

/// A supervisor that asks somebody behind an endpoint.
fn asking(id: &str, more: Value) -> Flow {
    let mut config = json!({"endpoint": {"url": "http://brain.test/"}});
    let more = more.as_object().expect("a configuration").clone();
    config.as_object_mut().expect("it is one").extend(more);
    flow(id)
        .node("lead", "core.orchestrator.supervisor", config)
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead")
}

fn started(flow: Flow) -> Stage {
    let mut run = staged(flow);
    run.create(json!({}));
    run
}

fn said(run: &Stage) -> Vec<(Option<Cause>, Said)> {
    let log = run.log().iter();
    log.filter_map(|r| match &r.event {
        Event::Agent(fact) => Some((r.cause.clone(), fact.said.clone())),
        _ => None,
    })
    .collect()
}

fn every_kind_of_speech() -> Vec<(&'static str, Said)> {
    let text = || "x".to_owned();
    vec![
        (
            "reasoned",
            Said::Reasoned {
                reasoning: text(),
                verbosity: text(),
                token_count: None,
            },
        ),
        (
            "reasoning.delta",
            Said::ReasoningDelta {
                delta: text(),
                sequence: 0,
            },
        ),
        (
            "toolCalled",
            Said::ToolCalled {
                tool: text(),
                call: text(),
                inputs: None,
                transport: None,
                principal: None,
            },
        ),
        (
            "toolReturned",
            Said::ToolReturned {
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
            Said::HandedOff {
                to: text(),
                reason: None,
                context: None,
            },
        ),
        (
            "decided",
            Said::Decided {
                decision: json!(1),
                confidence: None,
                reasoning: None,
            },
        ),
        (
            "verified",
            Said::Verified {
                judged: Judged::Decision { decided: Seq(1) },
                verdict: Judgement::Pass,
                criteria: Vec::new(),
                confidence: None,
                feedback: None,
            },
        ),
    ]
}

#[test]
fn a_type_says_what_the_protocol_lets_it_say_and_nothing_else() {
    // R-0023-1 (half: nobody else may), R-0023-2 (half: nobody else may)
    // R-0023-3 (half: nobody else may), R-0023-5 (half: nobody else may)
    // R-0023-4 (half: no node but the mock agent by itself)
    let chat = json!({"provider": "acme", "userPrompt": "hi"});
    let put = json!({"action": "put", "key": "k", "value": 1});
    let flow = asking("conformance-all", json!({}))
        .node("mock", MOCK, json!({}))
        .node("same", "core.identity", json!({}))
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .node("chat", "core.llm.chat", chat)
        .node("note", "vendor.tandem.memory", put)
        .http("call", json!({}))
        .noops("noop");
    let run = staged(caller(flow, "tool", json!({})));
    let mut run = run;
    run.create(json!({}));
    let may = |node: &str| -> Vec<&'static str> {
        let ix = run.run().def.index(&NodeId::new(node)).expect("a node");
        let voice = run.run().voice(ix);
        let speech = every_kind_of_speech().into_iter();
        speech
            .filter(|(_, said)| voice.as_ref().is_some_and(|voice| voice.may(said)))
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(may("lead"), ["reasoned", "reasoning.delta", "decided"]);
    assert_eq!(may("tool"), ["toolCalled", "toolReturned"]);
    let all = every_kind_of_speech().into_iter().map(|(name, _)| name);
    let all: Vec<&str> = all.filter(|name| *name != "verified").collect();
    assert_eq!(may("mock"), all);
    // A dispatch node and the engine at a pin hand over in their own names; see `hands off` lines.
    for silent in ["send", "same", "gate", "chat", "note", "call", "noop"] {
        assert!(may(silent).is_empty(), "{silent}");
    }
}

#[test]
fn an_unsure_mock_agent_says_everything_before_it_waits() {
    // R-0023-9
    let mut run = Stage::started(mock(json!({
        "mockDecision": {"decision": {"go": true}, "confidence": 0.2},
        "mockHandoff": {"toAgentId": "core.next"},
        "mockToolCalls": [{"toolId": "look", "result": 2}],
        "mockReasoning": {"summary": "so"},
    })));
    let spoken: Vec<String> = run.lines().into_iter().skip(2).collect();
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
    assert_eq!(spoken, expected);
}

#[test]
fn what_a_mock_agent_reasons_is_its_summary_its_pieces_a_stub_or_nothing() {
    // R-0023-10
    let spoken = |reasoning: Value| {
        let mut run = Stage::started(mock(json!({"mockReasoning": reasoning})));
        let lines = run.lines().into_iter().filter(|l| l.contains("mock-agent"));
        lines
            .map(|l| l.trim_start_matches("host:mock-agent:act ").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(spoken(json!({"summary": "so"})), ["reasoned so"]);
    let pieces = json!({"summary": "so", "streamChunks": ["a", "b"]});
    assert_eq!(spoken(pieces), ["delta[0] a", "delta[1] b", "reasoned ab"]);
    assert!(spoken(json!(false)).is_empty());
    let mut silent = Stage::started(mock(json!({})));
    assert!(!silent.lines().iter().any(|l| l.contains("reasoned")));
    let stub = spoken(json!(true));
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
        let run = Stage::started(mock(config.clone()));
        let told = said(&run);
        let [
            (
                _,
                Said::Decided {
                    decision,
                    confidence: told,
                    ..
                },
            ),
        ] = told.as_slice()
        else {
            panic!("{config}: {told:?}");
        };
        assert_eq!(*told, confidence, "{config}");
        assert!(!decision.is_null(), "{config}");
    }
    assert!(said(&Stage::started(mock(json!({})))).is_empty());
}

#[test]
fn a_live_agents_confidence_gives_way_to_the_test_hooks_both_ways() {
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
        let told = said(&run);
        let [(_, Said::Decided { confidence, .. })] = told.as_slice() else {
            panic!("{told:?}");
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
fn a_pending_decision_is_taken_and_the_live_agent_not_asked() {
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
    // R-0023-19 (half: what the schema allows is taken)
    let call = json!({"toolId": "t", "arguments": {"a": 1}, "result": [1], "durationMs": 2.0});
    let failed = json!({"error": "e", "message": "m", "details": {}});
    let table = [
        json!({}),
        json!({"agentId": "abc"}),
        json!({"mockReasoning": true}),
        json!({"mockReasoning": {"summary": "", "trace": "", "tokenCount": 1.0}}),
        json!({"mockReasoning": {"summary": "s", "tokenCount": 0, "streamChunks": []}}),
        json!({"mockToolCalls": []}),
        json!({"mockToolCalls": [call, {"toolId": "t"}]}),
        json!({"mockToolCalls": [{"toolId": "t", "result": null, "error": failed}]}),
        json!({"mockToolCalls": vec![json!({"toolId": "t"}); 5_000]}),
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
fn a_call_that_failed_returned_nothing_and_whole_numbers_stay_whole() {
    let error = json!({"error": "quota", "message": "no more"});
    let call = json!({"toolId": "t", "result": 2, "error": error, "durationMs": 3.0});
    let run = Stage::started(mock(json!({"mockToolCalls": [call]})));
    let told = said(&run);
    let Some((
        _,
        Said::ToolReturned {
            outcome,
            error,
            duration_ms,
            ..
        },
    )) = told.last()
    else {
        panic!("{told:?}");
    };
    assert_eq!(outcome, &None);
    assert_eq!(error.as_ref().map(|e| e.code.as_str()), Some("quota"));
    assert_eq!(*duration_ms, Some(3));
}

#[test]
fn a_tools_return_names_its_call_also_when_a_server_was_asked() {
    // R-0023-2 (half: a tool node tells of its call), R-0023-3 (half: the return of a tool node)
    let mut run = Stage::started(caller(flow("one"), "t", json!({})));
    run.done("t", result("fine", false));
    let calls: Vec<Seq> = run
        .log()
        .iter()
        .filter(
            |r| matches!(&r.event, Event::Agent(f) if matches!(f.said, Said::ToolCalled { .. })),
        )
        .map(|r| r.seq)
        .collect();
    let told = said(&run);
    let [_, (cause, Said::ToolReturned { .. })] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(*cause, Some(Cause::Event(calls[0])));
}

/// What led to each decision of a run whose agent says `causation`.
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
        Event::Agent(fact) => matches!(fact.said, Said::Decided { .. }),
        Event::OrchestratorDecided { .. } => true,
        _ => false,
    })
    .map(|r| r.cause.clone())
    .collect()
}

#[test]
fn a_decision_made_elsewhere_names_the_event_and_the_host() {
    // R-0040-2 (half: an event of this host is named without it)
    // R-0040-3 (half: a decision an agent elsewhere made)
    // R-0040-17 (half: no such cause is recorded below version three)
    let here = || AgentPolicy::default().on_host("near");
    let far = json!({"hostId": "far.example/runtime", "eventId": "run-7:3"});
    let foreign = Cause::Foreign {
        event: "run-7:3".to_owned(),
        host: "far.example/runtime".to_owned(),
    };
    assert_eq!(causes(here(), &far, None), [Some(foreign.clone())]);
    let stated = causes(here(), &far, Some(0.9));
    assert_eq!(stated[0], Some(foreign), "the first of the two");
    assert!(matches!(stated[1], Some(Cause::Event(_))), "{stated:?}");
    let ours = json!({"hostId": "near", "eventId": "run-7:3"});
    let external = Cause::External("run-7:3".to_owned());
    assert_eq!(causes(here(), &ours, None), [Some(external)]);
    let capped = here().capped(Some(2)).expect("a version");
    let long = json!({"hostId": "far", "eventId": "e".repeat(129)});
    for (policy, told) in [(capped, &far), (here(), &long), (here(), &json!("far"))] {
        let caused = causes(policy, told, None);
        assert!(matches!(caused[..], [Some(Cause::Event(_))]), "{caused:?}");
    }
}
