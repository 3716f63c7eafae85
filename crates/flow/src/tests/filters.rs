//! Bridges in Rust: their effects, and the filter of a wait for input.

use super::fixtures::*;
use crate::{FilterContext, FlowReturn, FlowStop, InputDecision, ProxyStart, ProxyWait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_engine::flow::FlowEffect;
use tandem_engine::session::ProgramStep;

fn input(text: &str) -> Value {
    json!({"proxyId": "pxy-1", "target": "finance", "text": text})
}

fn no_keys() -> BTreeMap<String, Value> {
    BTreeMap::new()
}

fn effect(step: &ProgramStep) -> &Value {
    match step {
        ProgramStep::Yielded(effect) => effect,
        other => panic!("{other:?}"),
    }
}

/// Z-114 (half: bridges in Rust), Z-115 (half: bridges in Rust)
#[test]
fn methods_of_bridges_yield_the_canonical_effects() {
    let (mut run, step) = Driver::start(|ctx| async move {
        let start = ProxyStart::shadow("finance")
            .replace()
            .timeout_seconds(60)
            .forward_admin_messages(true)
            .auto_prefix(false);
        let started = ctx.proxy_to_admin(start).await?;
        let wait = ProxyWait::new()
            .timeout_seconds(30)
            .escalate_on_timeout()
            .timeout_message_to_user("Nobody answers.");
        let got = ctx.proxy_wait(wait).await?;
        let stopped = ctx.stop_proxy("done").await?;
        let said = format!("{} {} {}", started.proxy_id, got.outcome, stopped.stopped);
        Ok(FlowReturn::because(said))
    });
    let start = json!({"type": "interrupt.proxy.start", "target": "finance", "mode": "shadow",
        "replace": true, "timeoutSeconds": 60, "forwardAdminMessages": true, "autoPrefix": false});
    assert_eq!(effect(&step), &start);
    let step = run.give(
        json!({"proxyId": "pxy-1", "target": "finance", "mode": "shadow",
        "startedAt": "t"}),
    );
    let wait = json!({"type": "interrupt.proxy.wait", "timeoutSeconds": 30,
        "timeoutBehavior": "fallback_escalation", "timeoutMessageToUser": "Nobody answers."});
    assert_eq!(effect(&step), &wait);
    let step = run.give(json!({"outcome": "timed_out", "timedOut": true, "proxyId": "pxy-1"}));
    let stop = json!({"type": "interrupt.proxy.stop", "reason": "done"});
    assert_eq!(effect(&step), &stop);
    let step = run.give(json!({"stopped": true, "proxyId": "pxy-1"}));
    let returned = json!({"reason": "pxy-1 timed_out true"});
    assert_eq!(step, ProgramStep::Returned(returned));
}

/// Z-102 (half: in Rust), Z-103 (half: in Rust), Z-219 (half: in Rust, it reads)
#[test]
fn filter_decides_while_the_flow_waits() {
    let (mut run, step) = Driver::start(|ctx| async move {
        let wait = ctx.proxy_wait(ProxyWait::new()).before_forward(
            |input, context: FilterContext| async move {
                let name = context.key("name");
                Ok(match input.text.as_str() {
                    "APPROVE" => InputDecision::forward().text(format!("Approved for {name}.")),
                    "secret" => InputDecision::hold().end_proxy("leak"),
                    _ => InputDecision::unchanged(),
                })
            },
        );
        let got = wait.await?;
        Ok(FlowReturn::because(got.text.unwrap_or_default()))
    });
    let marked = json!({"type": "interrupt.proxy.wait", "processBeforeForward": {"$fn": true}});
    assert_eq!(effect(&step), &marked);
    let parsed = FlowEffect::parse(&marked).expect("an effect");
    assert!(matches!(parsed, FlowEffect::ProxyWait(wait) if wait.process_before_forward));
    let keys = BTreeMap::from([("name".to_owned(), json!("Ada"))]);
    let approved = run.0.filter_input(&input("APPROVE"), &keys);
    let expected = json!({"forwardToUser": true, "text": "Approved for \"Ada\"."});
    assert_eq!(approved, Ok(expected));
    let held = run.0.filter_input(&input("secret"), &keys);
    let expected = json!({"forwardToUser": false, "endProxy": true, "reason": "leak"});
    assert_eq!(held, Ok(expected));
    assert_eq!(run.0.filter_input(&input("hm"), &keys), Ok(json!({})));
    let step = run.give(json!({"outcome": "admin_input", "proxyId": "pxy-1", "text": "hm"}));
    assert_eq!(step, ProgramStep::Returned(json!({"reason": "hm"})));
}

/// Z-104 (half: in Rust, whatever fails gives no decision and the flow waits on)
#[test]
fn failing_filter_leaves_the_flow_where_it_waits() {
    let (mut run, _) = Driver::start(|ctx| async move {
        let wait = ctx
            .proxy_wait(ProxyWait::new())
            .before_forward(|input, _| async move {
                match input.text.as_str() {
                    "fail" => Err(FlowStop::failed("no")),
                    "panic" => panic!("at once"),
                    "wait" => {
                        std::future::pending::<()>().await;
                        Ok(InputDecision::forward())
                    }
                    _ => Ok(InputDecision::forward()),
                }
            });
        wait.await?;
        Ok(FlowReturn::done())
    });
    for (text, why) in [("fail", "no"), ("panic", "at once"), ("wait", "awaits")] {
        let refused = run.0.filter_input(&input(text), &no_keys());
        let refused = refused.expect_err(text);
        assert!(refused.contains(why), "{refused}");
    }
    let bad = run.0.filter_input(&json!({"text": 1}), &no_keys());
    assert!(bad.is_err());
    assert!(run.0.filter_input(&input("x"), &no_keys()).is_ok());
    let given = json!({"outcome": "stopped", "proxyId": "pxy-1"});
    assert_eq!(run.give(given), ProgramStep::Returned(Value::Null));
}

/// Where a flow waits without a filter nothing is decided.
#[test]
fn wait_without_a_filter_decides_nothing() {
    let (mut run, _) = Driver::start(|ctx| async move {
        ctx.proxy_wait(ProxyWait::new()).await?;
        Ok(FlowReturn::done())
    });
    assert!(run.0.filter_input(&input("x"), &no_keys()).is_err());
}
