//! How flow code ends: results and failures as the engine sees them.

use super::fixtures::*;
use tandem_engine::flow::FlowError;
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::Object;
use tandem_record::conversation::FlowFailure;
use tandem_runtime::conversation::AgentHost;

/// The first step of a flow with this body.
fn first_step(body: &str) -> ProgramStep {
    let desk = flow_desk(body);
    let started = desk.agents.start_program(&desk.flow_start("f"), NOW);
    started.expect("a start").1
}

fn failure(step: ProgramStep) -> FlowFailure {
    match step {
        ProgramStep::Failed(failure) => failure,
        other => panic!("no failure: {other:?}"),
    }
}

/// Codes of `flow.failed`.
/// Z-65 (half: its code), Z-116 (half: its code), Z-209 (half: its code), Z-210 (half: its code)
#[test]
fn failures_have_the_codes_of_the_interface() {
    let table = [
        ("throw new Error('boom');", "exception", "boom"),
        ("throw 'a text';", "exception", "a text"),
        ("null.x;", "exception", "TypeError"),
        ("for (;;) {}", "flow_limit", "CPU"),
        (
            "const all = []; for (;;) all.push(new Array(1e5).fill(0));",
            "flow_limit",
            "heap",
        ),
        ("await new Promise(() => {});", "foreign_await", "promise"),
        (
            "await ctx.confirm({ question: 'Sure?' });",
            "effect_not_yielded",
            "ctx.confirm()",
        ),
    ];
    for (body, code, message) in table {
        let failure = failure(first_step(body));
        assert_eq!(failure.code, code, "{body}");
        assert!(
            failure.message.contains(message),
            "{body}: {}",
            failure.message
        );
    }
}

/// A runtime error that the flow did not catch keeps the code `exception`; the message begins with its own code.
#[test]
fn uncaught_runtime_error_begins_with_its_own_code() {
    let desk = flow_desk("yield { type: 'tool', name: 'pay', args: {} };");
    let (mut program, _) = desk
        .agents
        .start_program(&desk.flow_start("f"), NOW)
        .expect("a start");
    let thrown = Resume::Throw(FlowError::tool("timeout", "too slow"));
    let failure = failure(program.resume(thrown, &Object::new(), NOW));
    assert_eq!(
        (failure.code.as_str(), failure.message.as_str()),
        ("exception", "timeout: too slow")
    );
}

#[test]
fn failure_names_the_place_in_the_authors_file() {
    let failure = failure(first_step(
        "const a: number = 1;\nthrow new Error(String(a));",
    ));
    let details = failure.details.expect("a position");
    assert_eq!(
        (&details["file"], &details["line"]),
        (&"flows/f.ts".into(), &3.into())
    );
}

#[test]
fn returned_value_is_given_back() {
    let step = first_step("return { reason: 'done' };");
    assert_eq!(
        step,
        ProgramStep::Returned(serde_json::json!({"reason": "done"}))
    );
}

#[test]
fn flow_of_an_unknown_agent_or_version_does_not_start() {
    let desk = flow_desk("");
    let mut start = desk.flow_start("f");
    start.version = "0".repeat(64);
    let failure = desk
        .agents
        .start_program(&start, NOW)
        .err()
        .expect("a failure");
    assert!(failure.message.contains("is not loaded"), "{failure:?}");
    start.agent_id = "nobody".into();
    assert!(desk.agents.start_program(&start, NOW).is_err());
}

/// A program that is driven wrongly fails instead of hanging or panicking.
#[test]
fn misuse_is_a_failure() {
    let desk = flow_desk("yield { type: 'say', text: 'x' };");
    let (mut program, _) = desk
        .agents
        .start_program(&desk.flow_start("f"), NOW)
        .expect("a start");
    failure(program.resume(Resume::Host(Ok(None)), &Object::new(), NOW));
    assert!(matches!(
        program.resume(Resume::Value(None), &Object::new(), NOW),
        ProgramStep::Returned(_)
    ));
    failure(program.resume(Resume::Value(None), &Object::new(), NOW));
    assert_eq!(program.close(), Vec::<serde_json::Value>::new());
}

/// Z-209 (half: a result that is too large for the journal fails the run)
#[test]
fn huge_result_is_a_limit() {
    let desk = flow_desk("yield { type: 'ask', key: 'k', text: 'K?' };");
    let (mut program, _) = desk
        .agents
        .start_program(&desk.flow_start("f"), NOW)
        .expect("a start");
    let huge = Resume::Value(Some("x".repeat(300_000).into()));
    assert_eq!(
        failure(program.resume(huge, &Object::new(), NOW)).code,
        "flow_limit"
    );
}
