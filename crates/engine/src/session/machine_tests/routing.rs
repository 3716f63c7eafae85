//! The flow router where the model fails, and where it must not choose.

use super::harness::{TestSession, code, done, effect};
use serde_json::json;
use tandem_record::conversation::{
    ChatAnswer, ChatToolCall, CodeError, EscalationMode, RouterReason, SessionEventBody as Body,
};

fn desk(fallback: &str) -> TestSession {
    let greeting = code(|step, _, _| match step {
        0 => effect(json!({"type": "say", "text": "Welcome."})),
        _ => done(),
    });
    let config = json!({"outputSchema": {"type": "object", "required": ["reply"]},
        "flowRouter": {"mode": "schema_flow", "field": "intent", "fallback": fallback}});
    TestSession::new(config, &[("greeting", greeting)])
}

fn decisions(desk: &TestSession) -> Vec<(RouterReason, bool)> {
    let decided = desk.events.iter().filter_map(|event| match event {
        Body::RouterDecided {
            reason,
            fallback_used,
            ..
        } => Some((*reason, *fallback_used)),
        _ => None,
    });
    decided.collect()
}

/// Z-139 (half: schema_flow when the model fails), Z-141 (half: the fallback when the model fails)
#[test]
fn fallback_flow_starts_when_the_model_fails() {
    let down = CodeError {
        code: "failed".to_owned(),
        message: "down".to_owned(),
    };
    let nonsense = ChatAnswer {
        text: Some("not an object".to_owned()),
        ..ChatAnswer::default()
    };
    let misfit = ChatAnswer {
        structured: Some(json!({"intent": 7})),
        ..ChatAnswer::default()
    };
    for answer in [Err(down), Ok(nonsense), Ok(misfit)] {
        let mut desk = desk("greeting");
        desk.answers.push_back(answer.clone());
        assert_eq!(desk.say("hi"), ["Welcome."], "{answer:?}");
        assert_eq!(decisions(&desk), [(RouterReason::ParseError, true)]);
        // Without a flow to fall back to there is only the fallback reply.
        let mut desk = self::desk("classic");
        desk.answers.push_back(answer);
        assert_eq!(desk.say("hi"), [desk.agent.texts.fallback_reply.clone()]);
        assert_eq!(decisions(&desk), [(RouterReason::ParseError, true)]);
    }
}

/// Z-142 (half: a turn that calls a person starts no flow over the open escalation)
#[test]
fn structured_answer_chooses_no_flow_while_a_person_is_awaited() {
    let mut desk = desk("greeting");
    desk.agent.hitl.human.offer_tool = true;
    desk.agent.hitl.human.mode = EscalationMode::AsyncResolution;
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: "talk_to_human".to_owned(),
            args: json!({}),
        }],
        ..ChatAnswer::default()
    }));
    desk.answers.push_back(Ok(ChatAnswer {
        structured: Some(json!({"reply": "They come.", "intent": "greeting"})),
        ..ChatAnswer::default()
    }));
    assert_eq!(desk.say("a person, please"), ["They come."]);
    assert!(decisions(&desk).is_empty());
    assert!(desk.state().flow().is_none());
}
