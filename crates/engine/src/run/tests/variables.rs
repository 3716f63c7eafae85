//! The variables of a run: defaults, inputs, what nodes change, what a run refuses.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::json;

fn greeting() -> WorkflowBuilder {
    workflow("greet")
        .variable("name", json!({"defaultValue": "world"}))
        .variable("polite", json!({"type": "boolean", "defaultValue": null}))
        .variable("title", json!({}))
        .noops("hello")
}

#[test]
fn defaults_under_inputs_and_unknown_keys_kept() {
    let mut run = RunHarness::new(greeting());
    run.create(json!({"name": "Ada", "extra": [1]}));
    run.then(
        r#"
            run.started {"extra":[1],"name":"Ada","polite":null}
            node.started hello
            node.completed hello {"extra":[1],"name":"Ada"}
            run.completed {"extra":[1],"name":"Ada"}
        "#,
    );
    RunHarness::started(greeting()).then(
        r#"
            run.started {"name":"world","polite":null}
            node.started hello
            node.completed hello
            run.completed
        "#,
    );
}

#[test]
fn an_erased_default_leaves_the_variable_unset() {
    let mut run = RunHarness::new(greeting());
    run.request.erased_defaults = vec!["name".to_owned()];
    run.create(json!({}));
    run.then(
        r#"
            run.started {"polite":null}
            node.started hello
            node.completed hello
            run.completed
        "#,
    );
}

fn missing(refused: Result<(), Refusal>) -> Vec<String> {
    match refused {
        Err(Refusal::Invalid(problems)) => problems.into_iter().map(|p| p.path).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn missing_required_input_is_refused() {
    let needs = |id: &str| {
        let workflow = workflow(id)
            .variable("a", json!({"type": "number", "required": true}))
            .variable(
                "b",
                json!({"type": "number", "required": true, "defaultValue": 1}),
            )
            .noops("n");
        RunHarness::new(workflow)
    };
    for inputs in [json!({}), json!({"a": null})] {
        assert_eq!(missing(needs("needs").try_create(inputs)), ["/inputs/a"]);
    }
    assert_eq!(needs("needs").try_create(json!({"a": 1})), Ok(()));
    let mut child = needs("needs").child_under(&["parent"], &[]);
    assert_eq!(missing(child.try_create(json!({}))), ["/inputs/a"]);
    let test = needs("conformance-needs").try_create(json!({}));
    assert_eq!(
        test,
        Ok(()),
        "published scenarios start these without inputs"
    );
}

#[test]
fn inputs_have_the_types_the_workflow_declares() {
    let values = [
        ("string", json!("text")),
        ("number", json!(1.5)),
        ("boolean", json!(false)),
        ("object", json!({"a": 1})),
        ("array", json!([1])),
    ];
    for (kind, _) in &values {
        let typed = || {
            RunHarness::new(
                workflow("typed")
                    .variable("v", json!({"type": kind}))
                    .noops("n"),
            )
        };
        for (of, value) in &values {
            let created = typed().try_create(json!({"v": value, "more": value}));
            match of == kind {
                true => assert_eq!(created, Ok(()), "{value} as {kind}"),
                false => assert_eq!(missing(created), ["/inputs/v"], "{value} as {kind}"),
            }
        }
        assert_eq!(typed().try_create(json!({"v": null})), Ok(()), "left unset");
    }
    let odd = workflow("odd")
        .variable("a/b", json!({"type": "string"}))
        .noops("n");
    let refused = RunHarness::new(odd).try_create(json!({"a/b": 1}));
    assert_eq!(missing(refused), ["/inputs/a~1b"]);
}

#[test]
fn inputs_do_not_set_channels() {
    let workflow = workflow("chan")
        .channel("log", json!({"reducer": "append"}))
        .noops("n");
    assert_eq!(
        missing(RunHarness::new(workflow).try_create(json!({"log": 1}))),
        ["/inputs/log"]
    );
}

#[test]
fn archived_workflow_starts_no_runs() {
    for status in ["archived", "inactive"] {
        let workflow = workflow("old").key("status", json!(status)).noops("n");
        assert_eq!(
            missing(RunHarness::new(workflow).try_create(json!({}))),
            ["/workflowId"]
        );
    }
    for status in ["active", "draft"] {
        let workflow = workflow("fine").key("status", json!(status)).noops("n");
        assert_eq!(RunHarness::new(workflow).try_create(json!({})), Ok(()));
    }
}

#[test]
fn configurable_follows_the_workflows_own_schema() {
    let schema = json!({"type": "object", "properties": {"mode": {"enum": ["a", "b"]}},
        "additionalProperties": false});
    let picky = || {
        workflow("picky")
            .key("configurableSchema", schema.clone())
            .noops("n")
    };
    assert_eq!(
        RunHarness::new(picky())
            .configured(json!({"mode": "a"}))
            .try_create(json!({})),
        Ok(())
    );
    let refused = RunHarness::new(picky())
        .configured(json!({"mode": "c"}))
        .try_create(json!({}));
    assert_eq!(missing(refused), ["/configurable/mode"]);
}

#[test]
fn setting_and_getting() {
    let workflow = workflow("set")
        .node("put", "core.setVariable", json!({"name": "x", "value": 1}))
        .node("port", "core.setVariable", json!({"name": "x"}))
        .port("value", json!({"type": "static", "value": "two"}))
        .node("clear", "core.setVariable", json!({"name": "x"}))
        .node("get", "core.getVariable", json!({"name": "x"}))
        .path("put port clear get");
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started put
            variable.changed x: unset -> 1
            node.completed put {"value":1}
            node.started port
            variable.changed x: 1 -> "two"
            node.completed port {"value":"two"}
            node.started clear
            variable.changed x: "two" -> unset
            node.completed clear
            node.started get
            node.completed get {"value":null}
            run.completed {"value":null}
        "#,
    );
}

#[test]
fn a_channel_is_not_a_variable() {
    let workflow = workflow("set")
        .channel("log", json!({"reducer": "append"}))
        .node(
            "put",
            "core.setVariable",
            json!({"name": "log", "value": 1}),
        );
    RunHarness::started(workflow).then(
        "
            run.started
            node.started put
            node.failed put validation_error
            run.failed validation_error put
        ",
    );
}

/// The harness compares the fold of the log, read back from JSON, with the live state.
#[test]
fn a_variable_set_to_null_is_not_an_unset_one() {
    let workflow = workflow("nulls")
        .node(
            "set",
            "core.setVariable",
            json!({"name": "x", "value": null}),
        )
        .node("get", "core.getVariable", json!({"name": "x"}))
        .path("set get");
    let run = RunHarness::started(workflow);
    assert_eq!(run.run().view().variables.get("x"), Some(&json!(null)));
}
