//! Functions inside effects (§10.6).

use super::fixtures::*;
use crate::{Argument, FlowStep, ParkedCallStep, ScriptLimits};
use serde_json::json;

const REVIEW: &str = "
    let seen = 0;
    const result = yield { type: 'interrupt.proxy.wait', timeoutSeconds: 5, processBeforeForward: async (input, hook) => {
      seen += 1;
      const name = await hook.session.kv.get('name');
      if (input.text.includes('APPROVE')) return { forwardToUser: true, text: `Approved for ${name}` };
      return { forwardToUser: false, reason: [typeof hook.session.kv.set, typeof hook.confirm, typeof hook.resources, hook.input.amount].join() };
    } };
    yield ctx.say(`${result} ${seen}`);";

fn input(text: &str) -> Vec<Argument> {
    vec![
        Argument::Data(json!({"proxyId": "p", "text": text})),
        Argument::Context,
    ]
}

/// Z-102 (half: the function of a parked effect is called any number of times; the flow stays parked),
/// Z-218 (half: the function of a parked effect is called any number of times; the flow stays parked)
#[test]
fn function_of_a_parked_effect_is_called() {
    let mut run = flow_with(
        REVIEW,
        json!({"input": {"amount": 700}}),
        ScriptLimits::default(),
    );
    assert_eq!(
        effect(run.next(None))["processBeforeForward"],
        json!({"$fn": true})
    );
    for _ in 0..2 {
        let step = run.call_parked_fn("/processBeforeForward", &input("APPROVE"));
        let ParkedCallStep::HostCalls(calls) = step else {
            panic!("{step:?}")
        };
        assert_eq!((calls.len(), calls[0].name.as_str()), (1, "session.kv.get"));
        let step = run.answer_parked(calls[0].index, Ok(&json!("Ana")));
        assert_eq!(
            step,
            ParkedCallStep::Returned(json!({"forwardToUser": true, "text": "Approved for Ana"}))
        );
    }
    assert_eq!(say_text(run.next(Some(&json!("go")))), "go 2");
}

/// Z-219 (half: inside the function `ctx` reads; there are no effects, sends or writes)
#[test]
fn context_of_a_parked_function_only_reads() {
    let mut run = flow_with(
        REVIEW,
        json!({"input": {"amount": 700}}),
        ScriptLimits::default(),
    );
    run.next(None);
    let ParkedCallStep::HostCalls(calls) =
        run.call_parked_fn("/processBeforeForward", &input("no"))
    else {
        panic!("a call")
    };
    let step = run.answer_parked(calls[0].index, Ok(&json!(null)));
    assert_eq!(
        step,
        ParkedCallStep::Returned(
            json!({"forwardToUser": false, "reason": "undefined,undefined,undefined,700"})
        )
    );
}

/// Z-104 (half: one that throws or never answers leaves the flow parked; one that exceeds a limit ends the instance)
#[test]
fn failing_parked_function_leaves_the_flow_parked() {
    let body = "yield { type: 'x', a: async () => { throw new Error('no'); }, b: () => new Promise(() => {}), c: () => { for (;;) {} }, d: 1 }; yield ctx.say('on');";
    let mut run = flow(body);
    run.next(None);
    let code = |step: ParkedCallStep| match step {
        ParkedCallStep::Failed(failure) => failure.code.as_str(),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(run.call_parked_fn("/a", &[])), "exception");
    assert_eq!(code(run.call_parked_fn("/b", &[])), "foreign_await");
    assert_eq!(code(run.call_parked_fn("/d", &[])), "exception");
    assert_eq!(code(run.call_parked_fn("/missing/deep", &[])), "exception");
    assert!(run.is_usable());
    assert_eq!(say_text(run.next(None)), "on");
    let mut run = flow(body);
    run.next(None);
    assert_eq!(code(run.call_parked_fn("/c", &[])), "flow_limit");
    assert!(!run.is_usable());
}

/// Z-102 (half: a generator in the place of a function is marked, so that the caller can refuse it)
#[test]
fn generators_in_effects_are_marked() {
    let mut run = flow(
        "yield { type: 'x', f: async function* () {}, g: function* () {}, h: async () => {} };",
    );
    let generator = json!({"$fn": true, "generator": true});
    assert_eq!(
        effect(run.next(None)),
        json!({"type": "x", "f": generator, "g": generator, "h": {"$fn": true}})
    );
}

/// §10.6: a Standard Schema validates in the parked instance; a JSON Schema literal stays data.
#[test]
fn standard_schema_validates_in_the_parked_instance() {
    let mut run = flow(
        "const schema = { '~standard': { version: 1, vendor: 'own', validate: async (v) =>
            typeof v === 'number' ? { value: v * 2 } : { issues: [{ message: 'a number', path: [] }] } } };
         yield { type: 'interrupt.confirm', question: '?', responseSchema: schema, other: { type: 'number' } };",
    );
    let confirm = effect(run.next(None));
    assert_eq!(
        confirm["responseSchema"],
        json!({"$standard": true, "vendor": "own"})
    );
    assert_eq!(confirm["other"], json!({"type": "number"}));
    assert_eq!(
        run.validate_parked("/responseSchema", &json!(4)),
        ParkedCallStep::Returned(json!({"value": 8}))
    );
    let refused = run.validate_parked("/responseSchema", &json!("x"));
    assert_eq!(
        refused,
        ParkedCallStep::Returned(json!({"issues": [{"message": "a number", "path": []}]}))
    );
    assert!(matches!(
        run.validate_parked("/other", &json!(1)),
        ParkedCallStep::Failed(_)
    ));
}

/// §10.6: a replay of the journal recreates the closure.
#[test]
fn replay_recreates_the_closure() {
    let (set, _) = source_of(
        "export async function* main(ctx) { const name = yield ctx.ask('n', 'Name?');
           yield ctx.waitForAdminInput({ processBeforeForward: async (i) => ({ text: i.text + name }) }); }",
    );
    for _ in 0..2 {
        let mut run = start(set.clone(), "main", json!({}), ScriptLimits::default());
        run.next(None);
        assert!(matches!(run.next(Some(&json!("Ana"))), FlowStep::Effect(_)));
        let step = run.call_parked_fn("/processBeforeForward", &input("hi "));
        assert_eq!(step, ParkedCallStep::Returned(json!({"text": "hi Ana"})));
    }
}
