//! The values on a node's ports: every kind of binding, edges, expressions.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};

/// A sink that outputs the value of one port, after a node `a` (outputs `n: 1`) and a node `off`
/// that never ran.
fn with_port(binding: Value) -> WorkflowBuilder {
    workflow("ports")
        .variable("known", json!({"defaultValue": "v"}))
        .variable("unset", json!({}))
        .node("a", "core.identity", json!({}))
        .port("n", json!({"type": "static", "value": 1}))
        .noops("off")
        .with("disabled", json!(true))
        .node("sink", "core.identity", json!({}))
        .port("p", binding)
        .path("a sink")
}

/// The sink's outputs, or why it failed.
fn got(binding: Value) -> Value {
    let mut run = RunHarness::new(with_port(binding));
    run.create(json!({"given": true}));
    match run.run().error() {
        Some(error) => json!(error.code),
        None => json!(run.node("sink").outputs),
    }
}

#[test]
fn each_kind_of_binding() {
    let variable = |name: &str, optional: bool| json!({"type": "variable", "variableName": name, "optional": optional});
    let connection = |node: &str, key: &str, optional: bool| json!({"type": "connection", "nodeId": node, "outputKey": key, "optional": optional});
    let expression = |text: &str| json!({"type": "expression", "expression": text});
    let cases = [
        (
            json!({"type": "static", "value": {"k": [null]}}),
            json!({"p": {"k": [null]}}),
        ),
        (variable("known", false), json!({"p": "v"})),
        (variable("given", false), json!({"p": true})),
        (variable("unset", false), json!({})),
        (variable("nowhere", true), json!({})),
        (variable("nowhere", false), json!("input_unresolved")),
        (connection("a", "n", false), json!({"p": 1})),
        (connection("a", "other", true), json!({})),
        (connection("a", "other", false), json!("input_unresolved")),
        (connection("off", "n", true), json!({})),
        (connection("off", "n", false), json!("input_unresolved")),
        (
            expression("nodes.a.outputs.n == 1 && inputs.given"),
            json!({"p": true}),
        ),
        (expression("variables.known"), json!({"p": "v"})),
        (expression("variables.nowhere.deep"), json!({"p": null})),
        (
            expression("'orl' in 'world' && inputs.given"),
            json!({"p": true}),
        ),
        (expression("variables.known < 3"), json!({"p": false})),
    ];
    for (binding, wanted) in cases {
        assert_eq!(got(binding.clone()), wanted, "{binding}");
    }
}

#[test]
fn a_root_starts_from_the_inputs_and_bindings_win() {
    let workflow = workflow("root")
        .node("root", "core.identity", json!({}))
        .port("a", json!({"type": "static", "value": "bound"}));
    let mut run = RunHarness::new(workflow);
    run.create(json!({"a": "given", "b": "given"}));
    run.then(
        r#"
            run.started {"a":"given","b":"given"}
            node.started root
            node.completed root {"a":"bound","b":"given"}
            run.completed {"a":"bound","b":"given"}
        "#,
    );
}

#[test]
fn edges_carry_named_ports_and_bindings_override_them() {
    let workflow = workflow("edges")
        .node("a", "core.identity", json!({}))
        .port("output", json!({"type": "static", "value": "plain"}))
        .port("x", json!({"type": "static", "value": "named"}))
        .node("b", "core.identity", json!({}))
        .port("over", json!({"type": "static", "value": "bound"}))
        .edge("a", "b", json!({}))
        .edge("a", "b", json!({"sourceOutput": "x", "targetInput": "y"}))
        .edge(
            "a",
            "b",
            json!({"sourceOutput": "x", "targetInput": "over"}),
        )
        .edge(
            "a",
            "b",
            json!({"sourceOutput": "nothing", "targetInput": "z"}),
        );
    let mut run = RunHarness::started(workflow);
    run.then(
        r#"
            run.started
            node.started a
            node.completed a {"output":"plain","x":"named"}
            node.started b
            node.completed b {"input":"plain","over":"bound","y":"named"}
            run.completed {"input":"plain","over":"bound","y":"named"}
        "#,
    );
}

#[test]
fn absent_binding_removes_the_edge_value() {
    let workflow = workflow("absent")
        .variable("unset", json!({}))
        .node("a", "core.identity", json!({}))
        .port("output", json!({"type": "static", "value": 1}))
        .node("b", "core.identity", json!({}))
        .port(
            "input",
            json!({"type": "variable", "variableName": "unset"}),
        )
        .edge("a", "b", json!({}));
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started a
            node.completed a {"output":1}
            node.started b
            node.completed b
            run.completed
        "#,
    );
}

#[test]
fn an_unresolved_port_fails_the_node_after_it_started() {
    let mut run = RunHarness::new(with_port(
        json!({"type": "variable", "variableName": "nowhere"}),
    ));
    run.create(json!({}));
    run.then(
        r#"
            run.started {"known":"v"}
            node.started a
            node.completed a {"n":1}
            node.skipped off disabled
            node.started sink
            node.failed sink input_unresolved
            run.failed input_unresolved sink
        "#,
    );
}

#[test]
fn expressions_on_edges_see_the_sources_output_and_the_run() {
    let when = |text: &str| json!({"condition": {"type": "expression", "expression": text}});
    let workflow = workflow("edges")
        .variable("limit", json!({"type": "number", "defaultValue": 3}))
        .channel("log", json!({"reducer": "counter", "default": 5}))
        .node("a", "core.identity", json!({}))
        .port("n", json!({"type": "static", "value": 4}))
        .noops("over under channel broken")
        .edge("a", "over", when("output.n > variables.limit"))
        .edge("a", "under", when("output.n <= variables.limit"))
        .edge(
            "a",
            "channel",
            when("channels.log == 5 && nodes['a'].outputs.n == 4"),
        )
        .edge("a", "broken", when("output.n > 'text'"));
    RunHarness::started(workflow).then(
        r#"
            run.started {"limit":3}
            node.started a
            node.completed a {"n":4}
            node.started over
            node.completed over
            node.skipped under condition
            node.started channel
            node.completed channel
            node.skipped broken condition
            run.completed {"channel":{},"over":{}}
        "#,
    );
}
