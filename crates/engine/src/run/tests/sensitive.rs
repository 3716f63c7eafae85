//! What is sensitive in a workflow: given marks in the document, then these places and no others.
//! One line per node with marked ports, `$name` for a variable, `#name` for a channel.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{ChildOutcome, EffectKind, Masking, Sensitivity};

fn lines(found: &Sensitivity) -> Vec<String> {
    let nodes = found.outputs.iter().map(|(node, ports)| {
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        format!("{node} {}", ports.join(" "))
    });
    let variables = found.variables.iter().map(|name| format!("${name}"));
    let channels = found.channels.iter().map(|name| format!("#{name}"));
    nodes.chain(variables).chain(channels).collect()
}

#[track_caller]
fn marks(workflow: WorkflowBuilder, expected: &[&str]) {
    assert_eq!(lines(&workflow.compile().sensitivity), expected);
}

/// A workflow with a sensitive input `s` and a plain one.
fn secretive() -> WorkflowBuilder {
    workflow("w")
        .variable("s", json!({"sensitive": true}))
        .variable("plain", json!({}))
}

fn variable(name: &str) -> Value {
    json!({"type": "variable", "variableName": name})
}

fn output(node: &str, key: &str) -> Value {
    json!({"type": "connection", "nodeId": node, "outputKey": key})
}

fn expression(text: &str) -> Value {
    json!({"type": "expression", "expression": text})
}

fn set(workflow: WorkflowBuilder, id: &str, name: &str) -> WorkflowBuilder {
    workflow.node(id, "core.setVariable", json!({"name": name}))
}

#[test]
fn nothing_is_sensitive_without_marks() {
    let found = workflow("w")
        .variable("v", json!({}))
        .noops("a b")
        .path("a b")
        .compile();
    assert_eq!(*found.sensitivity, Sensitivity::default());
}

#[test]
fn sensitive_inputs_reach_root_nodes() {
    for type_id in [
        "core.noop",
        "core.identity",
        "core.start",
        "core.conditional",
        "core.parallel",
        "core.merge",
    ] {
        let root = secretive().node("a", type_id, json!({}));
        marks(root.noops("b").path("a b"), &["a s", "$s"]);
    }
    // A binding replaces the input of that name.
    let bound = secretive()
        .noops("a")
        .port("s", json!({"type": "static", "value": 1}));
    marks(bound, &["$s"]);
    let plain = secretive().noops("a").port("s", variable("plain"));
    marks(plain, &["$s"]);
}

#[test]
fn a_value_is_followed_over_edges_and_bindings() {
    let hop = |from: &str, to: &str| json!({"sourceOutput": from, "targetInput": to});
    let edges = secretive()
        .noops("a b c d")
        .edge("a", "b", hop("s", "x"))
        .edge("b", "c", hop("x", "y"))
        .edge("c", "d", hop("other", "z"));
    marks(edges, &["a s", "b x", "c y", "$s"]);
    let bindings = secretive()
        .delay("first", 1)
        .noops("a")
        .port("v", variable("s"))
        .port("p", variable("plain"))
        .noops("b")
        .port("v", output("a", "v"))
        .port("p", output("a", "p"))
        .path("first a b");
    marks(bindings, &["a v", "b v", "$s"]);
}

#[test]
fn an_expression_is_as_sensitive_as_what_it_reads() {
    for (text, sensitive) in [
        ("variables.s", true),
        ("variables.s == 'x' || variables.plain", true),
        ("variables.plain", false),
        ("variables", true),
        ("inputs.s", true),
        ("inputs.plain", false),
        ("nodes.a.outputs.s", true),
        ("nodes.a.outputs.plain", false),
        ("nodes.a", true),
        ("nodes.b.outputs.v", false),
        ("nodes", true),
        ("'variables.s'", false),
    ] {
        let reads = secretive()
            .noops("a b c")
            .port("v", expression(text))
            .path("a b c");
        let found = reads.compile();
        let marked = lines(&found.sensitivity).contains(&"c v".to_owned());
        assert_eq!(marked, sensitive, "{text}");
    }
}

#[test]
fn a_variable_that_is_given_the_value_is_sensitive_too() {
    let copied = set(secretive().noops("a"), "set", "copy")
        .variable("copy", json!({}))
        .node("get", "core.getVariable", json!({"name": "copy"}))
        .edge(
            "a",
            "set",
            json!({"sourceOutput": "s", "targetInput": "value"}),
        )
        .path("set get");
    // Sensitivity belongs to a name, also for an input of that name.
    marks(
        copied,
        &["a copy s", "get value", "set value", "$copy", "$s"],
    );
    let fixed = json!({"name": "copy", "value": "fixed"});
    let fixed = secretive()
        .delay("first", 1)
        .node("set", "core.setVariable", fixed)
        .port("value", variable("s"))
        .path("first set");
    marks(fixed, &["$s"]);
}

#[test]
fn entry_that_holds_a_sensitive_value_is_sensitive_where_it_is_read() {
    let flow = secretive()
        .variable("free", json!({}))
        .delay("first", 1)
        .node(
            "put",
            "vendor.tandem.memory",
            json!({"action": "put", "key": "k", "valueFrom": "s"}),
        )
        .node(
            "get",
            "vendor.tandem.memory",
            json!({"action": "get", "key": "k", "output": "plain"}),
        )
        .node(
            "other",
            "vendor.tandem.memory",
            json!({"action": "get", "key": "z", "output": "free"}),
        )
        .path("first put get other");
    marks(flow, &["get value", "$plain", "$s"]);
}

#[test]
fn loops_are_followed_until_nothing_is_new() {
    // Each round moves the value one variable further, against the order of the nodes.
    let rounds = secretive().node("loop", "core.loop", json!({"times": 3}));
    let rounds = set(rounds, "one", "c").port("value", variable("b"));
    let rounds = set(rounds, "two", "b").port("value", variable("a"));
    let rounds = set(rounds, "three", "a").port("value", variable("s"));
    marks(
        rounds.path("loop one two three loop"),
        &[
            "one value",
            "three value",
            "two value",
            "$a",
            "$b",
            "$c",
            "$s",
        ],
    );
    let items = secretive()
        .node("loop", "core.loop", json!({"itemVariable": "each"}))
        .port("items", variable("s"))
        .noops("body")
        .port("x", variable("each"))
        .path("loop body loop");
    marks(items, &["body x", "loop item", "$each", "$s"]);
}

#[test]
fn channels_propagate_sensitivity() {
    let kept = secretive()
        .channel("log", json!({"reducer": "append"}))
        .node("write", "core.channelWrite", json!({"channelName": "log"}))
        .port("value", variable("s"))
        .noops("read")
        .port("x", expression("channels.log[0]"))
        .path("write read");
    marks(kept, &["read x", "$s", "#log"]);
}

#[test]
fn sensitive_output_port_and_its_variable_are_both_marked() {
    let answer = workflow("w")
        .http("call", json!({"output": "answer"}))
        .with("outputSensitivity", json!({"body": true}))
        .noops("b")
        .port("x", variable("answer"))
        .path("call b");
    marks(answer, &["b x", "call body", "$answer"]);
    let answer = workflow("w")
        .variable("answer", json!({"sensitive": true}))
        .http("call", json!({"output": "answer"}));
    marks(answer, &["call body", "$answer"]);
}

#[test]
fn external_answers_are_not_sensitive_by_default() {
    let asks = secretive()
        .http("call", json!({}))
        .port("body", variable("s"))
        .node("model", "core.llm.chat", json!({"provider": "acme"}))
        .port("userPrompt", variable("s"))
        .node("act", "vendor.acme.act", json!({}))
        .port("x", variable("s"))
        .delay("wait", 1)
        .port("x", variable("s"))
        .noops("last")
        .port("a", output("call", "body"))
        .port("b", output("model", "content"))
        .path("call model act wait last");
    marks(asks, &["$s"]);
}

#[test]
fn edited_artifact_keeps_its_sensitivity() {
    let gate = |config: Value| secretive().node("gate", "core.approvalGate", config);
    let asked = gate(json!({})).noops("next");
    let asked = asked
        .port("x", output("gate", "artifactData"))
        .port("y", output("gate", "action"))
        .path("gate next");
    marks(asked, &["gate artifactData", "next x", "$s"]);
    marks(gate(json!({"artifactData": {"a": 1}})), &["$s"]);
}

#[test]
fn child_receives_sensitivity_and_masks_by_its_own_rules() {
    let mapping = json!({
        "inputMapping": {"given": "copy", "other": "plain"},
        "outputMapping": {"back": "made"},
    });
    let parent = || {
        set(secretive(), "keep", "copy")
            .port("value", variable("s"))
            .call("sub", "child", mapping.clone())
            .noops("after")
            .port("x", variable("back"))
            .path("keep sub after")
    };
    let created = |workflow: WorkflowBuilder| {
        let mut run = RunHarness::new(workflow).with_workflow(flow_of_child("mask"));
        run.create(json!({"s": "hush", "plain": "x"}));
        run.created_children()
            .next()
            .expect("a child")
            .request
            .clone()
    };
    marks(parent(), &["after x", "keep value", "$back", "$copy", "$s"]);
    let request = created(parent());
    assert_eq!(request.sensitive_inputs, ["given"]);
    let open = json!({"complianceConfig": {"maskingMode": "passthrough"}});
    let request_of_open = created(parent().key("metadata", open));
    assert!(request_of_open.sensitive_inputs.is_empty());

    for (mode, shown) in [("hash", Masking::Hash), ("passthrough", Masking::Mask)] {
        let mut child = RunHarness::new(flow_of_child(mode)).child_under(&["w"], &["made"]);
        child.request.sensitive_inputs = request.sensitive_inputs.clone();
        child.create(json!({"given": "hush", "other": "x"}));
        let found = child.run().sensitivity();
        assert_eq!(lines(&found), ["n given", "$given"]);
        assert_eq!(found.mode, shown);
        assert_eq!(lines(&child.run().definition().sensitivity), [""; 0]);
    }
}

fn flow_of_child(mode: &str) -> WorkflowBuilder {
    let config = json!({"complianceConfig": {"maskingMode": mode}});
    workflow("child").noops("n").key("metadata", config)
}

fn errors(workflow: WorkflowBuilder) -> Vec<String> {
    let found = workflow.compile();
    let errors = found.sensitivity.errors.iter();
    errors.map(ToString::to_string).collect()
}

#[test]
fn errors_of_nodes_that_handle_sensitive_values_are_sensitive() {
    let http = json!({"url": "https://example.com"});
    let given = |type_id: &str, config: Value, port: &str| {
        let workflow = secretive().noops("first").path("first n");
        let workflow = workflow.node("n", type_id, config);
        workflow.port(port, variable("s"))
    };
    for workflow in [
        given("core.delay", json!({}), "delayMs"),
        given("vendor.tandem.http", json!({}), "url"),
        given("core.channelWrite", json!({"channelName": "c"}), "value"),
    ] {
        assert_eq!(errors(workflow), ["first", "n"]);
    }
    for (type_id, config) in [
        (
            "core.subWorkflow",
            json!({"workflowId": "x", "inputMapping": {"y": "s"}}),
        ),
        (
            "vendor.tandem.memory",
            json!({"action": "get", "keyFrom": "s"}),
        ),
        (
            "vendor.tandem.memory",
            json!({"action": "put", "key": "k", "valueFrom": "s"}),
        ),
    ] {
        let workflow = secretive().noops("first").path("first n");
        assert_eq!(errors(workflow.node("n", type_id, config)), ["first", "n"]);
    }
    let lead = json!({"endpoint": {"url": "https://example.com"}, "prompt": "p"});
    let dispatch = |from: &str| {
        let workflow = secretive().node("lead", "core.orchestrator.supervisor", lead.clone());
        let mapping = json!({"inputMapping": {"y": from}});
        errors(workflow.node("n", "core.dispatch", mapping).path("lead n"))
    };
    assert!(dispatch("s").contains(&"n".to_owned()));
    assert!(!dispatch("plain").contains(&"n".to_owned()));
    let marked = workflow("w").node("n", "vendor.tandem.http", http.clone());
    let marked = marked.with("outputSensitivity", json!({"body": true}));
    assert_eq!(errors(marked), ["n"]);
    let plain = secretive().noops("first").path("first n");
    let plain = plain.node("n", "vendor.tandem.http", http);
    assert_eq!(errors(plain), ["first"]);
    let own = secretive().node("n", "core.fail", json!({"message": "m"}));
    assert_eq!(errors(own), [""; 0], "it repeats its configuration only");
}

#[test]
fn error_outputs_propagate_sensitivity() {
    let workflow = secretive()
        .node("n", "core.delay", json!({}))
        .port("delayMs", variable("s"))
        .noops("m")
        .port("why", output("n", "error"))
        .path("n m");
    marks(workflow, &["m why", "$s"]);
}

#[test]
fn child_reports_the_code_of_a_sensitive_error() {
    for (sensitive, shown) in [(true, false), (false, true)] {
        let child = workflow("child")
            .variable("d", json!({"sensitive": sensitive}))
            .node("n", "core.subWorkflow", json!({"workflowId": "gone"}))
            .port("x", variable("d"));
        let mut run = RunHarness::new(child).child_under(&["w"], &[]);
        run.create(json!({"d": "hush"}));
        let own = run.run().error().expect("it failed").clone();
        assert!(
            own.message.contains("gone"),
            "the run's own log holds all of it"
        );
        let reported = run.outbox().find_map(|effect| match &effect.kind {
            EffectKind::NotifyParent {
                outcome: ChildOutcome::Ended { error, .. },
                ..
            } => error.clone(),
            _ => None,
        });
        let reported = reported.expect("the parent is told");
        assert_eq!(reported.code, own.code);
        assert_eq!(reported.message.contains("gone"), shown, "{reported:?}");
    }
}

#[test]
fn messages_do_not_quote_values() {
    let delay = workflow("w").node("n", "core.delay", json!({}));
    let write = |reducer: &str| {
        let workflow = workflow("w").channel("c", json!({"reducer": reducer}));
        workflow.node("n", "core.channelWrite", json!({"channelName": "c"}))
    };
    for (workflow, port) in [
        (delay, "delayMs"),
        (write("counter"), "value"),
        (write("merge"), "value"),
    ] {
        let mut run = RunHarness::new(workflow);
        run.create(json!({port: "hush"}));
        let error = run.run().error().expect("the run failed").clone();
        assert_eq!(error.code, "validation_error");
        assert!(!error.message.contains("hush"), "{error:?}");
        assert!(error.message.contains("text"), "{error:?}");
    }
}
