//! Code that does what a flow may not do.

use super::fixtures::*;
use crate::{FlowReturn, FlowStop};
use serde_json::json;
use std::future::{pending, poll_fn};
use std::task::Poll;
use tandem_engine::flow::FlowError;
use tandem_engine::session::{ProgramStep, Resume};

/// An await of anything but `ctx` fails the run at once.
/// Z-210 (half: a flow in Rust), Z-212 (half: a foreign await), Z-206 (half: a flow in Rust awaits `ctx` only)
#[test]
fn foreign_await_fails_the_run() {
    let (mut run, step) = Driver::start(|_| async move {
        pending::<()>().await;
        Ok(FlowReturn::done())
    });
    assert_eq!(failure(step).code, "foreign_await");
    assert!(run.0.close().is_empty());

    // Also one that would be ready at the next poll, as a timer or a channel may be.
    let (mut run, _) = Driver::start(|ctx| async move {
        ctx.say("first").await?;
        let mut polled = false;
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            match std::mem::replace(&mut polled, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        Ok(FlowReturn::done())
    });
    assert_eq!(failure(run.go_on()).code, "foreign_await");
}

/// Z-65 (half: a panic fails the run and nothing else)
#[test]
fn panic_becomes_an_exception() {
    let (_, step) = Driver::start(|_| async move {
        let empty: Vec<u32> = Vec::new();
        let _ = ctx_free(empty);
        Ok(FlowReturn::done())
    });
    let failed = failure(step);
    assert_eq!(failed.code, "exception");
    assert!(failed.message.contains("no such seat"), "{failed:?}");
}

fn ctx_free(seats: Vec<u32>) -> u32 {
    seats.first().copied().expect("no such seat")
}

#[test]
fn destructor_that_panics_is_survived() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("while dropped");
            }
        }
    }
    let (run, _) = Driver::start(|ctx| async move {
        let _bomb = Bomb;
        ctx.ask("a", "?").await?;
        Ok(FlowReturn::done())
    });
    drop(run);
}

/// Z-116 (half: an effect that is made and not awaited would be an action without its confirmation)
#[test]
fn effect_that_is_not_awaited_fails_the_run() {
    let (_, step) = Driver::start(|ctx| async move {
        drop(ctx.confirm("Pay?"));
        ctx.say("Paid.").await?;
        Ok(FlowReturn::done())
    });
    let failed = failure(step);
    assert_eq!(failed.code, "effect_not_yielded");
    assert!(failed.message.contains("ctx.confirm"), "{failed:?}");

    let (_, step) = Driver::start(|ctx| async move {
        drop(ctx.confirm("Pay?"));
        Ok(FlowReturn::done())
    });
    assert_eq!(failure(step).code, "effect_not_yielded");
}

/// Z-211 (half: effects are strictly one at a time)
#[test]
fn two_effects_at_once_fail_the_run() {
    let (_, step) = Driver::start(|ctx| async move {
        let (mut a, mut b) = (ctx.say("a"), ctx.ask("b", "b"));
        poll_fn(|cx| {
            use std::{future::Future, pin::Pin};
            let first = Pin::new(&mut a).poll(cx).is_ready();
            let second = Pin::new(&mut b).poll(cx).is_ready();
            match first && second {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        Ok(FlowReturn::done())
    });
    let failed = failure(step);
    assert_eq!(failed.code, "effect_not_yielded");
    assert!(failed.message.contains("ctx.ask"), "{failed:?}");
}

#[test]
fn uncaught_errors_fail_the_run_with_their_code() {
    let (mut run, _) = Driver::start(|ctx| async move {
        ctx.tool("pay", json!({})).await?;
        Ok(FlowReturn::done())
    });
    let failed = failure(run.resume(Resume::Throw(FlowError::tool("not_found", "no tool"))));
    assert_eq!(failed.code, "exception");
    assert_eq!(failed.message, "not_found: no tool");

    let (_, step) = Driver::start(|_| async move {
        let number: Result<u32, _> = "x".parse::<u32>();
        number.map_err(FlowStop::failed)?;
        Ok(FlowReturn::done())
    });
    assert_eq!(failure(step).code, "exception");
}

/// Z-209 (half: values of a journal are bounded)
#[test]
fn large_values_fail_the_run() {
    let large = "x".repeat(300 << 10);
    let (mut run, _) = Driver::start(|ctx| async move {
        let text = ctx.ask("a", "?").await?;
        ctx.say(text).await?;
        Ok(FlowReturn::done())
    });
    assert_eq!(failure(run.give(json!(large))).code, "flow_limit");

    let (_, step) = Driver::start(|ctx| async move {
        ctx.say("x".repeat(300 << 10)).await?;
        Ok(FlowReturn::done())
    });
    assert_eq!(failure(step).code, "flow_limit");
}

#[test]
fn answer_to_nothing_is_refused() {
    let (mut run, step) = Driver::start(|_| async { Ok(FlowReturn::done()) });
    assert!(matches!(step, ProgramStep::Returned(_)));
    assert_eq!(failure(run.go_on()).code, "exception");
    let (mut run, _) = Driver::start(|ctx| async move {
        ctx.say("a").await?;
        Ok(FlowReturn::done())
    });
    assert_eq!(failure(run.answer(json!(1))).code, "exception");
}
