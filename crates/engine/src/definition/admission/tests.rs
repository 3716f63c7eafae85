//! The rules of registration beyond those of compiling.

mod reported;

use super::super::{Definition, Permissions, Problem, child_references};
use serde_json::{Value, json};

fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0},
        "config": config, "inputs": {}})
}

fn document(nodes: Vec<Value>, edges: Vec<Value>) -> Value {
    json!({
        "id": "flow", "name": "Flow", "version": "1.0", "metadata": {}, "settings": {},
        "triggers": [], "variables": [{"name": "customer", "type": "string"}],
        "channels": {"log": {"reducer": "append"}}, "nodes": nodes, "edges": edges,
    })
}

fn edge(source: &str, target: &str, extra: Value) -> Value {
    let mut edge =
        json!({"id": format!("{source}-{target}"), "sourceNodeId": source, "targetNodeId": target});
    for (key, value) in extra.as_object().into_iter().flatten() {
        edge[key] = value.clone();
    }
    edge
}

fn lenient() -> Permissions<'static> {
    Permissions {
        unknown_settings: true,
        ..Permissions::default()
    }
}

fn warned(document: &Value) -> Vec<String> {
    let admitted = Definition::admit(document, Permissions::default());
    let warnings = admitted.expect("only warnings").warnings;
    assert!(warnings.iter().all(|w| w.warning));
    warnings.into_iter().map(|w| w.path).collect()
}

fn refused(document: &Value, permissions: Permissions<'_>) -> Vec<Problem> {
    Definition::admit(document, permissions).expect_err("refused")
}

#[test]
fn unknown_setting_is_refused_or_warned_and_stored_documents_still_compile() {
    let flow = document(
        vec![node(
            "gate",
            "core.approvalGate",
            json!({"requiredApproval": 2}),
        )],
        vec![],
    );
    let problems = refused(&flow, Permissions::default());
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].path, "/nodes/0/config/requiredApproval");
    assert!(
        problems[0]
            .message
            .contains("did you mean `requiredApprovals`?")
    );
    let admitted = Definition::admit(&flow, lenient()).expect("a warning");
    assert_eq!(admitted.warnings[0].path, problems[0].path);
    assert!(
        Definition::compile(&flow, Permissions::default()).is_ok(),
        "stored before"
    );
}

#[test]
fn unknown_keys_stay_refused_where_a_published_schema_forbids_them() {
    let lead = node(
        "lead",
        "core.orchestrator.supervisor",
        json!({"endpoint": {"url": "http://a.test"}}),
    );
    let send = node("send", "core.dispatch", json!({"fanOutPolcy": "reject"}));
    let flow = document(vec![lead, send], vec![edge("lead", "send", json!({}))]);
    let problems = refused(&flow, lenient());
    assert!(
        !problems[0].warning && problems[0].message.contains("`fanOutPolicy`"),
        "{problems:?}"
    );
}

#[test]
fn undefined_names_are_warned_about_wherever_they_are_read() {
    let mut reads = node("reads", "core.noop", json!({}));
    reads["inputs"] = json!({
        "a": {"type": "variable", "variableName": "custmer"},
        "b": {"type": "expression", "expression": "variables.customer == variables.total"},
        "c": {"type": "expression", "expression": "channels.log && channels.lag"},
        "d": {"type": "expression", "expression": "nodes.nobody.outputs.x"},
        "e": {"type": "expression", "expression": "inputs.anything"},
    });
    let flow = document(
        vec![
            reads,
            node("get", "core.getVariable", json!({"name": "set"})),
            node("miss", "core.getVariable", json!({"name": "unset"})),
            node(
                "set",
                "core.setVariable",
                json!({"name": "set", "value": 1}),
            ),
            node("loop", "core.loop", json!({"while": "variables.going"})),
            node(
                "keep",
                "vendor.tandem.memory",
                json!({"action": "put", "valueFrom": "nothing"}),
            ),
            node(
                "call",
                "core.subWorkflow",
                json!({"workflowId": "w", "inputMapping": {"x": "gone"},
                "outputMapping": {"made": "y"}}),
            ),
            node("made", "core.getVariable", json!({"name": "made"})),
        ],
        vec![edge(
            "get",
            "miss",
            json!({"condition": {"type": "expression", "expression": "variables.flag"}}),
        )],
    );
    let mut expected = [
        "/edges/0/condition/expression",
        "/nodes/0/inputs/a/variableName",
        "/nodes/0/inputs/b/expression",
        "/nodes/0/inputs/c/expression",
        "/nodes/0/inputs/d/expression",
        "/nodes/2/config/name",
        "/nodes/3/config/name",
        "/nodes/4/config/while",
        "/nodes/5/config/valueFrom",
        "/nodes/6/config/inputMapping/x",
        "/nodes/6/config/outputMapping/made",
    ];
    expected.sort_unstable();
    let mut found = warned(&flow);
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn unreachable_nodes_are_warned_about() {
    let mut off = node("off", "core.noop", json!({}));
    off["disabled"] = json!(true);
    let mut tolerated = node("tolerated", "core.fail", json!({}));
    tolerated["settings"] = json!({"onError": "continue"});
    let noop = |id: &str| node(id, "core.noop", json!({}));
    let plain = || json!({});
    let rule = |rule: &str| json!({"triggerRule": rule});
    let flow = document(
        vec![
            off,                                   // 0
            noop("after-off"),                     // 1: never
            noop("after-that"),                    // 2: never
            noop("either"),                        // 3
            node("fails", "core.fail", json!({})), // 4
            noop("after-failure"),                 // 5: never
            noop("rescue"),                        // 6
            noop("cleanup"),                       // 7
            tolerated,                             // 8
            noop("after-tolerated"),               // 9
            noop("start"),                         // 10
        ],
        vec![
            edge("off", "after-off", plain()),
            edge("after-off", "after-that", plain()),
            edge("off", "either", plain()),
            edge("start", "either", plain()),
            edge("fails", "after-failure", plain()),
            edge("fails", "rescue", rule("any_failed")),
            edge("off", "cleanup", rule("all_complete")),
            edge("tolerated", "after-tolerated", plain()),
        ],
    );
    assert_eq!(warned(&flow), ["/nodes/1", "/nodes/2", "/nodes/5"]);
}

#[test]
fn template_with_undefined_names_is_refused_with_its_path() {
    let table = [
        ("{{ variables.custmer }}", "did you mean `customer`?"),
        ("{{ secrets.key }}", "nothing an expression can read"),
        ("{{ nodes.nobody.outputs.x }}", "no node"),
        ("{{ variables.customer", "has no }}"),
        ("{{ now() }}", "at character"),
    ];
    for (text, why) in table {
        let asks = node(
            "ask",
            "core.clarificationGate",
            json!({"questions": [{"id": "q", "question": text}]}),
        );
        let data =
            json!({"artifactId": "a", "artifactType": "t", "actions": ["accept"], "title": text});
        for (asking, place) in [
            (
                node("gate", "core.approvalGate", json!({"title": text})),
                "title",
            ),
            (
                node("gate", "core.approvalGate", json!({"description": text})),
                "description",
            ),
            (asks, "questions/0/question"),
            (
                node(
                    "any",
                    "core.interrupt",
                    json!({"kind": "approval", "data": data}),
                ),
                "data/title",
            ),
        ] {
            let problems = refused(&document(vec![asking], vec![]), Permissions::default());
            assert_eq!(
                problems[0].path,
                format!("/nodes/0/config/{place}"),
                "{text}"
            );
            assert!(
                problems[0].message.contains(why),
                "{text}: {}",
                problems[0].message
            );
        }
    }
}

#[test]
fn all_kinds_of_problems_are_reported_together() {
    let mut flow = document(
        vec![
            node(
                "gate",
                "core.approvalGate",
                json!({"rejectionPolicy": "never", "titel": "?"}),
            ),
            node("gate", "core.fail", json!({"code": 7})),
            node("odd", "core.unheardOf", json!({})),
        ],
        vec![edge(
            "gate",
            "nowhere",
            json!({"condition": {"type": "expression", "expression": "(("}}),
        )],
    );
    flow["stray"] = json!(1);
    let found: Vec<String> = refused(&flow, Permissions::default())
        .into_iter()
        .map(|p| p.path)
        .collect();
    for path in [
        "",
        "/nodes/1/id",
        "/edges/0/targetNodeId",
        "/edges/0/condition/expression",
        "/nodes/0/config/rejectionPolicy",
        "/nodes/0/config/titel",
        "/nodes/1/config/code",
        "/nodes/2/typeId",
    ] {
        assert!(found.iter().any(|p| p == path), "{path:?} in {found:?}");
    }
}

#[test]
fn broken_graph_does_not_hide_problems_of_nodes() {
    let nodes = || {
        let mut reads = node("reads", "core.noop", json!({}));
        reads["inputs"] = json!({"a": {"type": "variable", "variableName": "undeclared"}});
        let text = json!({"title": "{{ variables.nope }}"});
        let gate = node("gate", "core.approvalGate", text);
        vec![
            reads,
            gate,
            node("x", "core.noop", json!({})),
            node("y", "core.noop", json!({})),
        ]
    };
    let to_nowhere = vec![
        edge("reads", "nowhere", json!({})),
        edge("reads", "gate", json!({})),
    ];
    let cycle = vec![edge("x", "y", json!({})), edge("y", "x", json!({}))];
    for (edges, fault) in [(to_nowhere, "/edges/0/targetNodeId"), (cycle, "/edges")] {
        let found = refused(&document(nodes(), edges), Permissions::default());
        let found: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
        let names = ["/nodes/1/config/title", "/nodes/0/inputs/a/variableName"];
        assert_eq!(found, [fault, names[0], names[1]]);
    }
}

#[test]
fn test_workflows_are_warned_about_undefined_names() {
    let mut reads = node("reads", "core.noop", json!({}));
    reads["inputs"] = json!({"a": {"type": "variable", "variableName": "undeclared"}});
    let mut flow = document(vec![reads], vec![]);
    flow["id"] = json!("conformance-x");
    assert_eq!(warned(&flow), ["/nodes/0/inputs/a/variableName"]);
}

#[test]
fn default_of_another_type_is_refused_with_its_path() {
    let mut flow = document(vec![node("a", "core.noop", json!({}))], vec![]);
    let variable = |kind: &str, default: Value| json!({"name": format!("{kind}-{default}"), "type": kind, "defaultValue": default});
    flow["variables"] = json!([
        variable("number", json!("abc")),
        variable("number", json!(1)),
        variable("string", json!(null)),
        variable("array", json!({})),
        variable("boolean", json!(true)),
    ]);
    let found = refused(&flow, Permissions::default());
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|p| (p.path.as_str(), p.message.as_str()))
        .collect();
    let number = "must be a number, as the variable declares";
    let list = "must be an array, as the variable declares";
    assert_eq!(
        found,
        [
            ("/variables/0/defaultValue", number),
            ("/variables/3/defaultValue", list)
        ]
    );
    // It came in before this was checked.
    Definition::compile(&flow, Permissions::default()).expect("a stored document compiles");
}

#[test]
fn child_references_are_found_in_invalid_documents() {
    let critic = json!({"verifier": {"workflowId": "critic"}});
    let flow = json!({"id": "self", "nodes": [
        node("a", "core.subWorkflow", json!({"workflowId": "child"})),
        node("b", "core.subWorkflow", json!({"workflowId": "self"})),
        node("c", "core.orchestrator.supervisor", critic),
        node("d", "core.noop", json!({"workflowId": "nothing"})),
        node(
            "e",
            "core.dispatch",
            json!({"perWorkerInputMappings": {"worker": {}, "self": {}},
                "perWorkerOutputMappings": {"wor/ker": {}}}),
        ),
    ]});
    let found = child_references(&flow);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|c| (c.path.as_str(), c.workflow.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("/nodes/0/config/workflowId", "child"),
            ("/nodes/2/config/verifier/workflowId", "critic"),
            ("/nodes/4/config/perWorkerInputMappings/worker", "worker"),
            (
                "/nodes/4/config/perWorkerOutputMappings/wor~1ker",
                "wor/ker"
            ),
        ]
    );
    let own = Definition::admit(&flow, Permissions::default()).expect_err("invalid");
    let own = own.iter().find(|p| p.path == "/nodes/1/config/workflowId");
    let own = own.expect("it starts itself");
    assert!(own.warning && own.message.contains("subworkflow_cycle_detected"));
}
