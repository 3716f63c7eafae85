//! Channels: every reducer, expiry, limits, access, schemas.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::NodeStatus;

/// Writes each value to channel `c`, one node after the other.
fn writes(declaration: Option<Value>, values: &[Value]) -> WorkflowBuilder {
    let mut workflow = workflow("writes");
    if let Some(declaration) = declaration {
        workflow = workflow.channel("c", declaration);
    }
    let ids: Vec<String> = (0..values.len()).map(|i| format!("w{i}")).collect();
    for (id, value) in ids.iter().zip(values) {
        workflow = workflow.write(id, "c", value.clone());
    }
    workflow.path(&ids.join(" "))
}

/// The channel after those writes, or why one was refused.
fn folded(declaration: Value, values: &[Value]) -> Value {
    let run = RunHarness::started(writes(Some(declaration), values));
    match run.run().error() {
        Some(error) => json!(error.code),
        None => json!(run.run().view().channels.expect("declared")["c"]),
    }
}

#[test]
fn every_reducer() {
    let reducer = |name: &str| json!({"reducer": name});
    let entry = |key: &str, id: &str, n: i32| json!({key: id, "n": n});
    let cases = [
        (
            reducer("replace"),
            vec![json!(1), json!("two")],
            json!("two"),
        ),
        (
            reducer("append"),
            vec![json!(1), json!([2])],
            json!([1, [2]]),
        ),
        (
            reducer("merge"),
            vec![json!({"a": 1, "b": 1}), json!({"b": 2})],
            json!({"a": 1, "b": 2}),
        ),
        (
            reducer("merge"),
            vec![json!([1])],
            json!("validation_error"),
        ),
        (reducer("counter"), vec![json!(5), json!(-7)], json!(-2)),
        (
            reducer("counter"),
            vec![json!("5")],
            json!("validation_error"),
        ),
        (
            reducer("votes"),
            vec![
                entry("userId", "u", 1),
                entry("userId", "w", 2),
                entry("userId", "u", 3),
            ],
            json!([{"userId": "w", "n": 2}, {"userId": "u", "n": 3}]),
        ),
        (
            reducer("feedback"),
            vec![json!("a"), json!("b")],
            json!(["a", "b"]),
        ),
        (
            reducer("message"),
            vec![
                entry("messageId", "m", 1),
                entry("messageId", "m", 2),
                entry("messageId", "o", 3),
            ],
            json!([{"messageId": "m", "n": 1}, {"messageId": "o", "n": 3}]),
        ),
        (
            reducer("vendor.acme.max"),
            vec![json!(9), json!(1)],
            json!(1),
        ),
        (
            json!({"reducer": "append", "default": ["seed"]}),
            vec![json!(1)],
            json!(["seed", 1]),
        ),
    ];
    for (declaration, values, wanted) in cases {
        assert_eq!(
            folded(declaration.clone(), &values),
            wanted,
            "{declaration}"
        );
    }
}

#[test]
fn bounds_drop_the_oldest_or_refuse() {
    let bounded = |reducer: &str| json!({"reducer": reducer, "maxSize": 2});
    let three = [json!(1), json!(2), json!(3)];
    assert_eq!(folded(bounded("append"), &three), json!([2, 3]));
    assert_eq!(folded(bounded("feedback"), &three), json!([2, 3]));
    let keys = [json!({"a": 1}), json!({"b": 1}), json!({"a": 2})];
    assert_eq!(folded(bounded("merge"), &keys), json!({"a": 2, "b": 1}));
    let more = [json!({"a": 1}), json!({"b": 1}), json!({"c": 1})];
    assert_eq!(folded(bounded("merge"), &more), json!("validation_error"));
    let votes = [
        json!({"userId": "a"}),
        json!({"userId": "b"}),
        json!({"userId": "c"}),
    ];
    assert_eq!(folded(bounded("votes"), &votes), json!("validation_error"));
}

#[test]
fn a_schema_describes_the_entry_or_the_whole() {
    let entries = json!({"reducer": "append", "schema": {"type": "string"}});
    assert_eq!(folded(entries.clone(), &[json!("ok")]), json!(["ok"]));
    assert_eq!(
        folded(entries, &[json!("ok"), json!(1)]),
        json!("validation_error")
    );
    let whole = json!({"reducer": "append", "schema": {"type": "array", "maxItems": 2}});
    assert_eq!(folded(whole.clone(), &[json!(1), json!(2)]), json!([1, 2]));
    assert_eq!(
        folded(whole, &[json!(1), json!(2), json!(3)]),
        json!("validation_error")
    );
}

#[test]
fn access_is_by_node_or_type() {
    let writers = |writers: Value| json!({"reducer": "append", "access": {"writers": writers}});
    let denied = json!("channel_access_denied");
    let wrote = json!([1]);
    assert_eq!(folded(writers(json!(["w0"])), &[json!(1)]), wrote);
    assert_eq!(folded(writers(json!(["core.*"])), &[json!(1)]), wrote);
    assert_eq!(folded(writers(json!(["*"])), &[json!(1)]), wrote);
    assert_eq!(
        folded(writers(json!(["other", "vendor.*"])), &[json!(1)]),
        denied
    );
    assert_eq!(folded(writers(json!([])), &[json!(1)]), denied);
    let private = json!({"reducer": "append", "access": "private"});
    assert_eq!(folded(private, &[json!(1)]), denied);
    let readers_only = json!({"reducer": "append", "access": {"readers": []}});
    assert_eq!(folded(readers_only, &[json!(1)]), wrote);
}

#[test]
fn reading_a_channel_without_access_fails_the_node() {
    let bound = json!({"type": "variable", "variableName": "c"});
    let one = json!({"type": "expression", "expression": "channels.c"});
    let all = json!({"type": "expression", "expression": "1 == 2 || channels == null"});
    let gets = ("core.getVariable", json!({"name": "c"}), None);
    let identity = |port: Value| ("core.identity", json!({}), Some(port));
    for (kind, config, port) in [identity(bound), identity(one), identity(all), gets] {
        let mut workflow = workflow("reads").channel(
            "c",
            json!({"reducer": "append", "access": {"readers": ["friend"]}}),
        );
        for node in ["friend", "stranger"] {
            workflow = workflow.node(node, kind, config.clone());
            if let Some(port) = &port {
                workflow = workflow.port("p", port.clone());
            }
        }
        let run = RunHarness::started(workflow.path("friend stranger"));
        assert_eq!(run.node("friend").status, NodeStatus::Completed, "{port:?}");
        let denied = run.node("stranger").error.as_ref().map(|e| e.code.as_str());
        assert_eq!(denied, Some("channel_access_denied"), "{kind} {port:?}");
    }
}

#[test]
fn expired_entries_are_dropped_at_the_next_write() {
    let workflow = workflow("ages")
        .node(
            "a",
            "core.channelWrite",
            json!({"channelName": "c", "value": "a", "ttlMs": 300}),
        )
        .delay("nap", 301)
        .node(
            "b",
            "core.channelWrite",
            json!({"channelName": "c", "value": "b", "ttlMs": 300}),
        )
        .path("a nap b");
    let mut run = RunHarness::started(workflow);
    run.then(
        r#"
            run.started
            node.started a
            channel.written c append {"_ts":1000000,"value":"a"}
            node.completed a
            node.started nap sleep=301
        "#,
    );
    assert_eq!(
        run.run().view().variables["c"],
        json!([{"value": "a", "_ts": 1_000_000}])
    );
    run.elapse(301);
    run.then(
        r#"
            node.completed nap {"waitedMs":301}
            node.started b
            channel.written c append {"_ts":1000301,"value":"b"}
            node.completed b
            run.completed
        "#,
    );
    let view = run.run().view();
    assert_eq!(
        view.variables["c"],
        json!([{"value": "b", "_ts": 1_000_301}])
    );
    assert_eq!(view.channels.expect("written")["c"], view.variables["c"]);
}

#[test]
fn expired_vote_makes_room_for_another() {
    let workflow = workflow("votes")
        .channel("c", json!({"reducer": "votes", "ttlMs": 100, "maxSize": 1}))
        .write("first", "c", json!({"userId": "a"}))
        .delay("nap", 200)
        .write("second", "c", json!({"userId": "b"}))
        .path("first nap second");
    let mut run = RunHarness::started(workflow).given();
    run.elapse(200);
    run.then(
        r#"
            node.completed nap {"waitedMs":200}
            node.started second
            channel.written c votes {"_ts":1000200,"value":{"userId":"b"}}
            node.completed second
            run.completed
        "#,
    );
}

#[test]
fn undeclared_channel_uses_the_reducer_of_the_write() {
    let workflow = workflow("free")
        .node(
            "w",
            "core.channelWrite",
            json!({"channelName": "n", "reducer": "counter", "value": 2}),
        )
        .node(
            "again",
            "core.channelWrite",
            json!({"channelName": "n", "reducer": "counter"}),
        )
        .port("value", json!({"type": "static", "value": 3}))
        .node("read", "core.identity", json!({}))
        .port("n", json!({"type": "variable", "variableName": "n"}))
        .path("w again read");
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started w
            channel.written n counter 2
            node.completed w
            node.started again
            channel.written n counter 3
            node.completed again
            node.started read
            node.completed read {"n":5}
            run.completed {"n":5}
        "#,
    );
}

#[test]
fn a_write_without_a_channel_fails_its_node() {
    let workflow = workflow("nameless").node("w", "core.channelWrite", json!({"value": 1}));
    RunHarness::started(workflow).then(
        "
            run.started
            node.started w
            node.failed w validation_error
            run.failed validation_error w
        ",
    );
}
