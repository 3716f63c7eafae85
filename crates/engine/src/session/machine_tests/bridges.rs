//! Bridges: how they start, what they relay, what an admin's input does, and how they end.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use crate::session::{Resume, SessionRefusal};
use serde_json::{Value, json};
use std::rc::Rc;
use tandem_record::ProxyId;
use tandem_record::conversation::{
    AdminActor, FlowRecord, ProxyDirection, ProxyInput, ProxyInputSource, SessionCommand,
    SessionEventBody as Body,
};

pub(super) fn settings() -> Value {
    json!({
        "beforeLLM": {"$fn": true},
        "hitl": {"targets": {
            "finance": {"transport": "desk", "address": "fin", "label": "Finance"},
            "legal": {"transport": "desk", "address": "leo", "allowedActors": ["leo"]},
            "self": {"transport": "loopback", "address": "u1"},
        }},
        "adminAuth": {
            "tokens": [],
            "chat": [
                {"transport": "desk", "address": "fin", "actorId": "fin", "role": "boss"},
                {"transport": "desk", "address": "leo", "actorId": "kim", "role": "boss"},
            ],
            "roles": {"boss": ["hitl.proxy.input", "hitl.proxy.stop"]},
        },
    })
}

/// A flow that performs these effects and then says what the last one gave.
pub(super) fn flow(effects: Vec<Value>) -> Code {
    code(move |step, with, _| match effects.get(step) {
        Some(next) => effect(next.clone()),
        None if step == effects.len() => effect(json!({"type": "say", "text": text_of(with)})),
        None => done(),
    })
}

pub(super) fn start(more: Value) -> Value {
    with_fields(
        json!({"type": "interrupt.proxy.start", "target": "finance"}),
        more,
    )
}

pub(super) fn wait(more: Value) -> Value {
    with_fields(json!({"type": "interrupt.proxy.wait"}), more)
}

fn with_fields(mut effect: Value, more: Value) -> Value {
    let fields = effect.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    effect
}

pub(super) fn desk_with(effects: Vec<Value>) -> TestSession {
    let mut desk = TestSession::new(settings(), &[("review", flow(effects))]);
    route_on_start(&mut desk);
    desk.say("start review");
    desk
}

impl TestSession {
    pub(super) fn bridge_id(&self) -> ProxyId {
        self.state().bridge().expect("a bridge").id.clone()
    }

    fn input(&self, id: &str, text: &str, source: ProxyInputSource) -> SessionCommand {
        SessionCommand::ReceiveProxyInput {
            proxy: self.bridge_id(),
            input: Box::new(ProxyInput {
                id: id.into(),
                text: text.to_owned(),
                raw: None,
                source,
            }),
        }
    }

    /// Somebody with the right writes over the API.
    pub(super) fn admin_writes(&mut self, id: &str, text: &str) -> Result<(), SessionRefusal> {
        let actor = AdminActor {
            id: "ana".to_owned(),
            role: Some("boss".to_owned()),
            channel: "ui_api".to_owned(),
            metadata: None,
        };
        let command = self.input(id, text, ProxyInputSource::Actor(actor));
        self.command(command)?;
        self.perform_all();
        Ok(())
    }

    /// Somebody writes in the chat of a desk.
    fn desk_writes(&mut self, address: &str, id: &str, text: &str) {
        let (transport, address) = ("desk".to_owned(), address.to_owned());
        let command = self.input(id, text, ProxyInputSource::Desk { transport, address });
        self.command(command).expect("accepted");
        self.perform_all();
    }

    /// Texts that reached an address.
    pub(super) fn texts_to(&self, address: &str) -> Vec<&str> {
        let routes = self.routes.iter().filter(|(_, to, _)| to == address);
        routes.map(|(_, _, text)| text.as_str()).collect()
    }

    pub(super) fn stops(&self) -> Vec<&str> {
        let stops = self.events.iter().filter_map(|event| match event {
            Body::ProxyStopped { reason, .. } => Some(reason.as_str()),
            _ => None,
        });
        stops.collect()
    }

    pub(super) fn forwards(&self) -> Vec<(ProxyDirection, bool)> {
        let forwards = self.events.iter().filter_map(|event| match event {
            Body::ProxyForwarded {
                direction,
                modified,
                ..
            } => Some((*direction, *modified)),
            _ => None,
        });
        forwards.collect()
    }
}

/// Z-94 (half: a durable id and key, one for a session), Z-193 (half: keys of bridges),
/// Z-97 (half: what a bridge writes in front of texts), Z-99 (half: a wait ends with an input),
/// Z-105 (half: the result of an input), Z-265 (half: the kind of a wait for input)
#[test]
fn bridge_relays_both_ways_and_resumes_the_flow() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    let id = desk.bridge_id();
    assert_eq!(desk.paused_on(), Some("proxy_input"));
    assert_eq!(desk.state().hitl_mode(), Some("proxy"));
    let keys = desk.state().reserved_keys();
    assert_eq!(keys["__zupa.hitl.proxyId"], json!(id));
    assert_eq!(keys["__zupa.hitl.proxyTarget"], "finance");
    assert_eq!(keys["__zupa.hitl.proxyMode"], "mirror");
    desk.say("please hurry");
    assert_eq!(desk.model_calls.len(), 0);
    let label = format!("[Ada #{}] please hurry", id.short());
    assert_eq!(desk.texts_to("fin"), [label]);
    assert_eq!(desk.paused_on(), Some("proxy_input"), "the flow waits on");
    desk.admin_writes("i-1", "fine by me").expect("accepted");
    let to_user = desk.texts_to("u1");
    assert_eq!(to_user[0], "[Finance] fine by me");
    let result: Value = serde_json::from_str(to_user[1]).expect("the result");
    assert_eq!(result["outcome"], "admin_input");
    assert_eq!(result["text"], "fine by me");
    assert_eq!(result["forwardedText"], "fine by me");
    assert_eq!(
        (&result["forwarded"], &result["ended"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(result["actor"]["id"], "ana");
    assert_eq!(
        desk.stops(),
        ["flow_ended"],
        "Z-64: the end of the flow ends it"
    );
    assert_eq!(desk.state().hitl_mode(), None);
    let kinds = desk.events.iter().filter_map(|event| match event {
        Body::InterruptPaused { kind, .. } | Body::InterruptResumed { kind, .. } => Some(kind),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["proxy_wait", "proxy_wait"]);
    let human = desk.state().memory().find(|m| m.author.is_some());
    assert_eq!(human.map(|m| m.text.as_str()), Some("[Finance] fine by me"));
}

/// Z-95 (half: refused, or replaced in one decision), Z-96 (half: only keys of targets),
/// Z-111 (half: the user's own address is no target), Z-100 (half: no wait without a bridge),
/// Z-108 (half: stopping nothing succeeds)
#[test]
fn what_cannot_start_is_refused() {
    let said = |effects: Vec<Value>| {
        let desk = desk_with(effects);
        desk.texts_to("u1").join("|")
    };
    let again = start(json!({"target": "legal"}));
    assert_eq!(said(vec![start(json!({})), again]), "proxy_active");
    for target in ["nope", "fin", "desk:fin", "+551199", "http://127.0.0.1/"] {
        assert_eq!(
            said(vec![start(json!({ "target": target }))]),
            "unknown_target"
        );
    }
    assert_eq!(
        said(vec![start(json!({"target": "self"}))]),
        "target_is_user"
    );
    assert_eq!(said(vec![wait(json!({}))]), "no_proxy");
    let stop = json!({"type": "interrupt.proxy.stop"});
    assert_eq!(said(vec![stop]), r#"{"stopped":false}"#);
    let replace = start(json!({"target": "legal", "replace": true}));
    let desk = desk_with(vec![start(json!({})), replace, wait(json!({}))]);
    let kinds: Vec<String> = desk
        .events
        .iter()
        .filter_map(|event| match event {
            Body::ProxyStarted { bridge, replaces } => {
                Some(format!("{}:{}", bridge.target, replaces.is_some()))
            }
            Body::ProxyStopped { reason, .. } => Some(reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["finance:false", "replaced", "legal:true"]);
}

/// Z-97 (half: modes set the defaults and flags override them), Z-31 (half: answers are forwarded too),
/// Z-107 (half: input nobody waits for is forwarded or kept, up to 100, the oldest first)
#[test]
fn flags_say_what_is_relayed_and_what_is_kept() {
    let ask = json!({"type": "ask", "key": "k", "text": "And?"});
    let mut desk = desk_with(vec![start(json!({})), ask.clone(), wait(json!({}))]);
    desk.admin_writes("i-1", "hello").expect("accepted");
    assert_eq!(desk.texts_to("u1"), ["And?", "[Finance] hello"], "at once");
    assert_eq!(desk.paused_on(), Some("ask"));
    desk.say("my answer");
    assert!(desk.texts_to("fin")[0].ends_with("my answer"));
    assert_eq!(desk.paused_on(), Some("proxy_input"), "it was used up");

    let quiet = start(json!({"mode": "shadow", "autoPrefix": false}));
    let mut desk = desk_with(vec![quiet, ask, wait(json!({})), wait(json!({}))]);
    for n in 0..100 {
        desk.admin_writes(&format!("i-{n}"), &format!("advice {n}"))
            .expect("kept");
    }
    let full = desk.admin_writes("i-100", "one more");
    assert_eq!(full, Err(SessionRefusal::ProxyFull));
    assert_eq!(desk.texts_to("u1"), ["And?"]);
    desk.say("my answer");
    assert_eq!(desk.texts_to("fin"), ["my answer"], "without a label");
    let last = desk.texts_to("u1").last().map(|text| (*text).to_owned());
    let result: Value = serde_json::from_str(&last.expect("said")).expect("the result");
    assert_eq!(result["text"], "advice 1", "the two oldest, one each");
    assert_eq!(result["forwarded"], json!(false));
    assert_eq!(desk.forwards(), [(ProxyDirection::UserToAdmin, false)]);
}

fn filtered(filter: impl Fn(&Value) -> Result<Value, String> + 'static, mode: &str) -> TestSession {
    let marked = wait(json!({"processBeforeForward": {"$fn": true}}));
    let desk = desk_with(vec![start(json!({ "mode": mode })), marked]);
    desk.programs.borrow_mut().filter = Some(Rc::new(filter));
    desk
}

/// Z-102 (half: the filter sees the input), Z-103 (half: what a filter may decide), Z-101 (half: the order),
/// Z-218 (half: the decision is in the journal), Z-219 (half: it reads the keys)
#[test]
fn filter_changes_what_the_user_gets() {
    let answer = json!({"forwardToUser": true, "text": "Approved.", "endProxy": true,
        "reason": "decided"});
    let expected = answer.clone();
    let mut desk = filtered(move |_| Ok(answer.clone()), "shadow");
    desk.admin_writes("i-1", "APPROVE").expect("accepted");
    assert_eq!(desk.texts_to("u1")[0], "[Finance] Approved.");
    assert_eq!(desk.forwards(), [(ProxyDirection::AdminToUser, true)]);
    assert_eq!(desk.stops(), ["decided"]);
    let order: Vec<&str> = desk
        .events
        .iter()
        .filter_map(|event| match event {
            Body::ProxyInputReceived { .. } => Some("received"),
            Body::HookDecided { stage, .. } if stage.as_str() == "processBeforeForward" => {
                Some("filtered")
            }
            Body::ProxyForwarded { .. } => Some("forwarded"),
            Body::ProxyStopped { .. } => Some("stopped"),
            Body::InterruptResumed { .. } => Some("resumed"),
            _ => None,
        })
        .collect();
    let wanted = ["received", "filtered", "forwarded", "stopped", "resumed"];
    assert_eq!(order, wanted);
    let hooks = desk.journal.iter().filter_map(|(_, record)| match record {
        FlowRecord::Hook {
            input, decision, ..
        } => Some((input["text"].clone(), decision.clone())),
        _ => None,
    });
    assert_eq!(hooks.collect::<Vec<_>>(), [(json!("APPROVE"), expected)]);
    let programs = desk.programs.borrow();
    let (input, keys) = &programs.filtered[0];
    assert_eq!(input["target"], "finance");
    assert!(keys.contains_key("__zupa.hitl.proxyId"));
}

/// Z-104 (half: whatever is no decision lets nothing through, and the flow waits on)
#[test]
fn filter_that_gives_no_decision_lets_nothing_through() {
    let answers = [
        Err("leak".to_owned()),
        Ok(Value::Null),
        Ok(json!("yes")),
        Ok(json!({"forwardToUser": "yes"})),
        Ok(json!({"forwardToUsr": false})),
        Ok(json!({"text": 1})),
    ];
    for answer in answers {
        let given = answer.clone();
        let mut desk = filtered(move |_| given.clone(), "mirror");
        desk.admin_writes("i-1", "the secret").expect("accepted");
        assert_eq!(desk.texts_to("u1"), Vec::<&str>::new(), "{answer:?}");
        assert_eq!(desk.paused_on(), Some("proxy_input"), "{answer:?}");
        assert_eq!(desk.failures("processBeforeForward").len(), 1);
        let notices = desk.texts_to("fin");
        assert_eq!(notices.len(), 1, "{answer:?}");
        assert!(notices[0].contains("Not delivered"), "{notices:?}");
    }
    let mut desk = filtered(|_| Ok(json!({})), "mirror");
    desk.admin_writes("i-1", "as it is").expect("accepted");
    assert_eq!(desk.texts_to("u1")[0], "[Finance] as it is");
}

/// Z-101 (half: in the chat of a desk), Z-145 (half: nothing happens before the right is known)
#[test]
fn input_of_a_desk_needs_the_right() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    desk.desk_writes("stranger", "c-1", "APPROVE");
    assert_eq!(desk.texts_to("u1"), Vec::<&str>::new());
    assert_eq!(desk.paused_on(), Some("proxy_input"));
    desk.desk_writes("fin", "c-2", "go on");
    assert_eq!(desk.texts_to("u1")[0], "[Finance] go on");
    let decided: Vec<(bool, Option<String>)> = desk
        .events
        .iter()
        .filter_map(|event| match event {
            Body::AuthorizationDecided(decision) => {
                assert_eq!(decision.action, "hitl.proxy.input");
                assert!(decision.proxy_id.is_some());
                Some((decision.granted, decision.reason.clone()))
            }
            _ => None,
        })
        .collect();
    let denied = (false, Some("no_actor".to_owned()));
    assert_eq!(decided, [denied, (true, None)]);

    let legal = start(json!({"target": "legal"}));
    let mut desk = desk_with(vec![legal, wait(json!({}))]);
    desk.desk_writes("leo", "c-1", "hm");
    assert_eq!(
        desk.paused_on(),
        Some("proxy_input"),
        "not one of its actors"
    );
}

/// Z-14 (half: a session with a bridge), Z-20 (half: turns of an admin's input), Z-32 (half: beside a bridge), Z-119 (half: refused beside a bridge)
#[test]
fn session_with_a_bridge_is_not_idle_and_hooks_may_not_leave_it() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    desk.wait_seconds(60 * 60);
    assert!(desk.state().ended().is_none());
    desk.say("start review");
    assert_eq!(desk.failures("beforeLLM"), ["hitl_active"]);
    assert!(
        desk.texts_to("fin")[0].ends_with("start review"),
        "forwarded all the same"
    );
    let skip = |_: &_| super::harness::value(json!({"action": "skip_llm", "draftReply": "Wait."}));
    desk.functions
        .insert("beforeLLM".to_owned(), Box::new(skip));
    assert_eq!(desk.say("any news?"), ["Wait."]);
    assert_eq!(desk.texts_to("fin").len(), 1, "not forwarded");
    desk.admin_writes("i-1", "fine").expect("accepted");
    let answers = desk
        .texts_to("u1")
        .into_iter()
        .filter(|text| *text == "Wait.");
    assert_eq!(
        answers.count(),
        1,
        "the hook looks at messages of the user only"
    );
}

/// A message that a bridge relayed to here is not relayed again. Z-111 (half: the hop mark)
#[test]
fn relayed_message_is_not_relayed_again() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    let mut message = desk.message("u1", "echo");
    message.relayed = true;
    desk.deliver(message);
    desk.perform_all();
    assert_eq!(desk.texts_to("fin"), Vec::<&str>::new());
}

/// Z-131 (half: a bridge in the state), Z-133 (half: a bridge in the state)
#[test]
fn response_is_reported_with_the_bridge() {
    let say = json!({"type": "say", "text": "One moment."});
    let mut config = settings();
    config["onResponse"] = json!({"$fn": true});
    let effects = vec![start(json!({})), say, wait(json!({}))];
    let mut desk = TestSession::new(config, &[("review", flow(effects))]);
    route_on_start(&mut desk);
    desk.say("start review");
    let id = desk.bridge_id();
    let reports = desk.events.iter().filter_map(|event| match event {
        Body::ReportQueued { call } => Some(&call.args[1]),
        _ => None,
    });
    let reports: Vec<&Value> = reports.collect();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0]["hitlState"], "proxy_active");
    assert_eq!(reports[0]["proxyId"], json!(id));
}

#[test]
fn resume_of_a_wait_is_one_value() {
    let seen = code(|step, with, _| match step {
        0 => effect(start(json!({}))),
        1 => effect(wait(json!({}))),
        _ => {
            assert!(matches!(with, Resume::Value(Some(_))), "{with:?}");
            done()
        }
    });
    let mut desk = TestSession::new(settings(), &[("review", seen)]);
    route_on_start(&mut desk);
    desk.say("start review");
    desk.admin_writes("i-1", "x").expect("accepted");
    assert_eq!(desk.flow_ends(), [None]);
}
