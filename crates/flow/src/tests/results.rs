//! What effects give back to a flow.

use super::fixtures::*;
use crate::{Confirm, Escalate, FlowReturn, FlowTask, RustFlow, Wait};
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_engine::flow::FlowError;
use tandem_engine::session::{ProgramStep, Resume};

#[test]
fn confirmation_is_true_only_for_yes() {
    for (result, expected) in [
        (json!(true), "true"),
        (json!(false), "false"),
        (Value::Null, "false"),
    ] {
        let (mut run, _) = Driver::start(|ctx| async move {
            let yes = ctx.confirm("Sure?").await?;
            ctx.say(yes.to_string()).await?;
            Ok(FlowReturn::done())
        });
        assert_eq!(run.give(result), say_step(expected));
    }
}

#[derive(Debug, Deserialize)]
struct Choice {
    size: u32,
}

#[test]
fn payload_is_read_as_its_type() {
    let start = || {
        Driver::start(|ctx| async move {
            let asked = Confirm::new("Which?").response_schema(json!({ "type": "object" }));
            let choice: Option<Choice> = ctx.confirm_as(asked).await?;
            ctx.say(format!("{:?}", choice.map(|choice| choice.size)))
                .await?;
            Ok(FlowReturn::done())
        })
        .0
    };
    assert_eq!(start().give(json!({ "size": 4 })), say_step("Some(4)"));
    assert_eq!(start().give(Value::Null), say_step("None"));
    let failed = failure(start().give(json!({ "size": "big" })));
    assert_eq!(failed.code, "exception");
    assert!(failed.message.contains("another shape"), "{failed:?}");
}

#[test]
fn escalation_and_its_resolution_are_typed() {
    let (mut run, _) = Driver::start(|ctx| async move {
        let opened = ctx.escalate(Escalate::async_resolution("refund")).await?;
        let decided = ctx.wait(Wait::admin_resolution()).await?;
        let data = decided.action_data.unwrap_or_default();
        ctx.say(format!(
            "{} {} {} {}",
            opened.escalation_id, decided.outcome, decided.approved, data
        ))
        .await?;
        Ok(FlowReturn::done())
    });
    run.give(json!({ "escalationId": "e1", "mode": "async_resolution", "status": "open", "createdAt": "t" }));
    let resolved = json!({
        "outcome": "resolved", "escalationId": "e1", "approved": true, "actionData": 5,
        "resolvedBy": "ana", "resolvedAt": "t", "queuedInbound": [],
    });
    assert_eq!(run.give(resolved), say_step("e1 resolved true 5"));
}

/// Z-58 (half: a failed tool is an error that the flow may handle)
#[test]
fn thrown_error_can_be_handled() {
    let (mut run, _) = Driver::start(|ctx| async move {
        match ctx.tool("pay", json!({})).await {
            Err(stop) if stop.code() == Some("timeout") => ctx.say("Later.").await?,
            other => drop(other?),
        }
        Ok(FlowReturn::done())
    });
    let error = FlowError::tool("timeout", "took too long");
    assert_eq!(run.resume(Resume::Throw(error)), say_step("Later."));
}

#[test]
fn input_is_read_as_its_type() {
    let flow = RustFlow::new(
        "booking",
        1,
        |ctx: crate::FlowContext, input: Choice| async move {
            ctx.say(input.size.to_string()).await?;
            Ok(FlowReturn::done())
        },
    );
    let begun = FlowTask::start(&flow, &start(Some(json!({ "size": 3 }))), NOW, true);
    assert_eq!(begun.expect("a start").1, say_step("3"));
    for wrong in [None, Some(json!({ "size": "big" }))] {
        let refused = FlowTask::start(&flow, &start(wrong), NOW, true);
        let refused = refused.err().expect("no start");
        assert_eq!(refused.code, "invalid_input");
    }
}

#[test]
fn flow_without_reason_returns_nothing() {
    let (_, step) = Driver::start(|_| async { Ok(FlowReturn::done()) });
    assert_eq!(step, ProgramStep::Returned(Value::Null));
}
