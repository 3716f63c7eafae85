//! What a flow hands out, in which order, and how it is closed.

use super::fixtures::*;
use crate::{Ask, Confirm, Escalate, FlowReturn, FlowStop, RustFlow, Wait, WorkflowRun};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::flow::FlowEffect;
use tandem_engine::session::ProgramStep;

#[test]
fn flow_is_driven_from_effect_to_effect() {
    let (mut run, step) = Driver::start(|ctx| async move {
        let date = ctx.ask("date", "When?").await?;
        if !ctx.confirm(Confirm::new(format!("Book {date}?"))).await? {
            return ctx.end("user_declined").await;
        }
        let made = ctx.tool("create", json!({ "date": date })).await?;
        ctx.say(format!("Booked {}.", made["id"])).await?;
        Ok(FlowReturn::because("booked"))
    });
    let ask = json!({ "type": "ask", "key": "date", "text": "When?" });
    assert_eq!(step, ProgramStep::Yielded(ask));
    let confirm = json!({ "type": "interrupt.confirm", "question": "Book Monday?" });
    assert_eq!(run.give(json!("Monday")), ProgramStep::Yielded(confirm));
    let tool = json!({ "type": "tool", "name": "create", "args": { "date": "Monday" } });
    assert_eq!(run.give(json!(true)), ProgramStep::Yielded(tool));
    assert_eq!(run.give(json!({ "id": 7 })), say_step("Booked 7."));
    let returned = ProgramStep::Returned(json!({ "reason": "booked" }));
    assert_eq!(run.go_on(), returned);
    assert!(run.0.close().is_empty());
}

/// Z-114 (half: in Rust), Z-115 (half: in Rust): the methods yield the canonical effects.
#[test]
fn methods_yield_what_the_engine_reads() {
    let (mut run, mut step) = Driver::start(|ctx| async move {
        let reminded = Ask::new("when", "When?").reminder(600, "Still there?");
        ctx.ask_with(reminded).await?;
        let sure = Confirm::new("Sure?")
            .id("sure")
            .timeout_seconds(300)
            .positive(["yes", "ok"])
            .negative(["no"])
            .reminder(60, "Well?");
        ctx.confirm(sure).await?;
        let schema = json!({ "type": "object" });
        let asked = Confirm::new("Which?").response_schema(schema);
        ctx.confirm_as::<Value>(asked).await?;
        let refund = Escalate::async_resolution("refund")
            .id("refund")
            .priority("high")
            .metadata(json!({ "eur": 700 }))
            .timeout_seconds(60);
        ctx.escalate(refund).await?;
        ctx.wait(Wait::admin_resolution().timeout_seconds(30))
            .await?;
        ctx.wait(Wait::live_handback()).await?;
        ctx.wait(Wait::confirm_response()).await?;
        ctx.wait(Wait::timeout(5)).await?;
        let workflow = WorkflowRun::new("w").input(json!(1)).timeout_seconds(9);
        ctx.run_workflow(workflow.detached()).await?;
        ctx.perform(json!({ "type": "interrupt.proxy.stop" }))
            .await?;
        ctx.handoff("other", json!({ "a": 1 })).await
    });
    let results = [
        json!("later"),
        json!(false),
        json!({ "a": 1 }),
        json!({ "escalationId": "e", "mode": "async_resolution", "status": "open", "createdAt": "t" }),
        json!({ "outcome": "resolved", "approved": true }),
        json!({ "outcome": "handed_back" }),
        json!({ "outcome": "positive", "value": true }),
        json!({ "outcome": "elapsed" }),
        json!({ "runId": "r", "status": "running" }),
        json!({ "stopped": false }),
    ];
    let mut types = Vec::new();
    for result in results {
        let ProgramStep::Yielded(effect) = &step else {
            panic!("no effect: {step:?}");
        };
        types.push(FlowEffect::parse(effect).expect("an effect").type_name());
        step = run.give(result);
    }
    let handoff = json!({ "type": "handoff", "to": "other", "input": { "a": 1 } });
    assert_eq!(step, ProgramStep::Yielded(handoff));
    assert_eq!(
        types,
        [
            "ask",
            "interrupt.confirm",
            "interrupt.confirm",
            "interrupt.escalate",
            "interrupt.wait",
            "interrupt.wait",
            "interrupt.wait",
            "interrupt.wait",
            "workflow.run",
            "interrupt.proxy.stop",
        ]
    );
}

#[test]
fn calls_of_the_context_are_handed_out_and_answered() {
    let (mut run, step) = Driver::start(|ctx| async move {
        let before = ctx.kv().get("visits").await?;
        ctx.kv().set("visits", json!(2)).await?;
        ctx.say(format!("{before}")).await?;
        Ok(FlowReturn::done())
    });
    let get = ProgramStep::HostCall {
        name: "session.kv.get".to_owned(),
        args: vec![json!("visits")],
    };
    assert_eq!(step, get);
    let set = ProgramStep::HostCall {
        name: "session.kv.set".to_owned(),
        args: vec![json!("visits"), json!(2)],
    };
    assert_eq!(run.answer(json!(1)), set);
    assert_eq!(run.answer(Value::Null), say_step("1"));
}

/// Z-211 (half: concurrent calls of the context are answered in program order)
#[test]
fn concurrent_calls_are_handed_out_in_order() {
    let (mut run, step) = Driver::start(|ctx| async move {
        let (a, b) = both(ctx.kv().get("a"), ctx.kv().get("b")).await;
        ctx.say(format!("{} {}", a?, b?)).await?;
        Ok(FlowReturn::done())
    });
    let call = |key: &str| ProgramStep::HostCall {
        name: "session.kv.get".to_owned(),
        args: vec![json!(key)],
    };
    assert_eq!(step, call("a"));
    assert_eq!(run.answer(json!(1)), call("b"));
    assert_eq!(run.answer(json!(2)), say_step("1 2"));
}

/// Awaits two futures at once.
async fn both<A: Future + Unpin, B: Future + Unpin>(mut a: A, mut b: B) -> (A::Output, B::Output) {
    let (mut left, mut right) = (None, None);
    std::future::poll_fn(move |cx| {
        use std::{pin::Pin, task::Poll};
        if left.is_none()
            && let Poll::Ready(value) = Pin::new(&mut a).poll(cx)
        {
            left = Some(value);
        }
        if right.is_none()
            && let Poll::Ready(value) = Pin::new(&mut b).poll(cx)
        {
            right = Some(value);
        }
        match (left.take(), right.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (left, right) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

/// Z-63 (half: closing unwinds the code; effects it requests meanwhile are not performed)
#[test]
fn closed_flow_unwinds_and_its_effects_are_ignored() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let (mut run, _) = Driver::start(move |ctx| {
        let noted = noted.clone();
        async move {
            let asked = ctx.ask("a", "?").await;
            noted.lock().push(asked.clone());
            let said = ctx.say("Goodbye.").await;
            noted.lock().push(said.map(|()| String::new()));
            asked?;
            Ok(FlowReturn::done())
        }
    });
    let ignored = run.0.close();
    assert_eq!(ignored, [json!({ "type": "say", "text": "Goodbye." })]);
    assert_eq!(*seen.lock(), [Err(FlowStop::Closed), Err(FlowStop::Closed)]);
    assert!(run.0.close().is_empty());
}

#[test]
fn flow_that_ignores_its_end_is_dropped() {
    let (mut run, _) = Driver::start(|ctx| async move {
        loop {
            let _ = ctx.say("again").await;
        }
    });
    assert_eq!(run.0.close().len(), 100);
}

/// Z-207 (half: time and randomness are the same when the flow is run again)
#[test]
fn time_and_randomness_follow_the_run() {
    let seen = || {
        let (mut run, step) = Driver::start(|ctx| async move {
            let first = format!("{} {} {}", ctx.now().0, ctx.random(), ctx.uuid());
            ctx.say(first).await?;
            let second = format!("{} {} {}", ctx.now().0, ctx.random(), ctx.uuid());
            ctx.say(second).await?;
            Ok(FlowReturn::done())
        });
        (step, run.go_on())
    };
    let (first, second) = seen();
    assert_ne!(first, second);
    assert_eq!((first, second), seen());
}

#[test]
fn context_shows_the_data_of_the_turn() {
    let (mut run, step) = Driver::start(|ctx| async move {
        let shown = |ctx: &crate::FlowContext| {
            let message = ctx.inbound().map(|message| message["body"].to_string());
            let user = ctx.user()["externalUserId"].to_string();
            json!([
                user,
                message,
                ctx.answers(),
                ctx.flow_run_id(),
                ctx.flow_id()
            ])
            .to_string()
        };
        ctx.ask("a", shown(&ctx)).await?;
        ctx.say(shown(&ctx)).await?;
        Ok(FlowReturn::done())
    });
    let text = |step: ProgramStep| match step {
        ProgramStep::Yielded(effect) => effect["text"].as_str().unwrap_or_default().to_owned(),
        other => panic!("no effect: {other:?}"),
    };
    assert_eq!(text(step), r#"["\"u1\"","\"book\"",{},"flow-1","booking"]"#);
    let patch = json!({ "inbound": null, "answers": { "b": "no" } });
    let patch = patch.as_object().cloned().unwrap_or_default();
    let with = tandem_engine::session::Resume::Value(Some(json!("yes")));
    let step = run.0.resume(with, &patch, NOW);
    assert_eq!(
        text(step),
        r#"["\"u1\"",null,{"a":"yes","b":"no"},"flow-1","booking"]"#
    );
}

#[test]
fn registration_is_what_the_agent_is_compiled_with() {
    let flow = RustFlow::new("booking", 2, |_ctx, (): ()| async {
        Ok(FlowReturn::done())
    });
    let flow = flow
        .description("Books")
        .input_schema(json!({ "type": "object" }))
        .as_tool("book");
    let loaded = flow.loaded();
    assert_eq!(loaded.flow_id, "booking");
    assert_eq!(loaded.version, "rust:2");
    assert!(crate::is_rust_version(&loaded.version));
    assert_eq!(loaded.description.as_deref(), Some("Books"));
    assert_eq!(loaded.as_tool, Some(json!({ "alias": "book" })));
    assert_eq!(loaded.input_schema, Some(json!({ "type": "object" })));
}
