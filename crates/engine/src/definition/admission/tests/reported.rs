//! What a document says and nobody would notice: settings of packs, undeclared names, quorums that
//! nobody can fill, and keys without effect.

use super::{document, edge, lenient, node, refused, warned};
use crate::definition::{Definition, Permissions, Problem};
use crate::pack::{AllowedPackTypes, PackType, PackTypes};
use serde_json::{Value, json};

/// Admission with one pack type whose schema closes what it declares.
fn with_pack(config: Value, permissions: Permissions<'_>) -> Result<Definition, Vec<Problem>> {
    let shape = json!({
        "properties": {
            "tone": {"enum": ["kind"]},
            "style": {"$ref": "#/$defs/style"},
            "extra": {"properties": {"a": {}}, "additionalProperties": true},
        },
        "$defs": {"style": {"properties": {"bold": {"type": "boolean"}}}},
    });
    let schema = tandem_schema::Schema::builtin(&shape).keeping_keys(&shape);
    let known = PackType {
        pack: "a@1.0.0".to_owned(),
        config: Some(std::sync::Arc::new(schema)),
    };
    let types = PackTypes::from_iter([("vendor.acme.act".to_owned(), known)]);
    let flow = document(vec![node("act", "vendor.acme.act", config)], vec![]);
    let permissions = Permissions {
        packs: AllowedPackTypes::Listed(&types),
        ..permissions
    };
    Definition::admit(&flow, permissions)
}

#[test]
fn settings_of_a_pack_node_without_a_schema_are_said_to_be_unchecked() {
    let types = PackTypes::from_iter([(
        "vendor.acme.act".to_owned(),
        PackType {
            pack: "a@1.0.0".to_owned(),
            config: None,
        },
    )]);
    let warned = |config: Value| {
        let flow = document(vec![node("act", "vendor.acme.act", config)], vec![]);
        let permissions = Permissions {
            packs: AllowedPackTypes::Listed(&types),
            ..Permissions::default()
        };
        let admitted = Definition::admit(&flow, permissions).expect("a warning at most");
        let paths = admitted.warnings.into_iter().map(|problem| problem.path);
        paths.collect::<Vec<_>>()
    };
    assert_eq!(warned(json!({"tonne": "kind"})), ["/nodes/0/config"]);
    assert!(warned(json!({})).is_empty());
}

#[test]
fn settings_of_a_pack_node_are_closed_by_the_schema_of_the_pack() {
    let strict = Permissions::default;
    for fine in [
        json!({"tone": "kind", "style": {"bold": true}, "x-note": 1}),
        json!({"extra": {"anything": 1}}),
    ] {
        with_pack(fine, strict()).expect("declared");
    }
    for (config, path, meant) in [
        (json!({"tonne": "kind"}), "/nodes/0/config/tonne", "tone"),
        (
            json!({"style": {"blod": 1}}),
            "/nodes/0/config/style/blod",
            "bold",
        ),
    ] {
        let problems = with_pack(config.clone(), strict()).expect_err("unknown");
        assert_eq!(problems[0].path, path);
        assert!(
            problems[0]
                .message
                .contains(&format!("did you mean `{meant}`"))
        );
        let imported = with_pack(config, lenient()).expect("a warning");
        assert_eq!(imported.warnings[0].path, path);
    }
}

#[test]
fn variable_that_is_set_must_be_declared() {
    let set = |name: &str| {
        document(
            vec![node("set", "core.setVariable", json!({"name": name}))],
            vec![],
        )
    };
    assert!(warned(&set("customer")).is_empty());
    assert_eq!(warned(&set("custommer")), ["/nodes/0/config/name"]);
    let admitted = Definition::admit(&set("custommer"), Permissions::default()).unwrap();
    assert!(
        admitted.warnings[0]
            .message
            .contains("did you mean `customer`")
    );
}

#[test]
fn variables_that_receive_results_must_be_declared() {
    let child = |name: &str| json!({"workflowId": "child", "outputMapping": {name: "result"}});
    let http = |name: &str| json!({"url": "https://example.org", "output": name});
    let put = |name: &str| json!({"action": "get", "key": "k", "output": name});
    let check = |kind: &str, config: &dyn Fn(&str) -> Value, path: &str| {
        let with = |name: &str| document(vec![node("n", kind, config(name))], vec![]);
        assert!(warned(&with("customer")).is_empty(), "{kind}");
        assert_eq!(
            warned(&with("custommer")),
            [format!("/nodes/0/config{path}")]
        );
    };
    check("core.subWorkflow", &child, "/outputMapping/custommer");
    check("vendor.tandem.http", &http, "/output");
    check("vendor.tandem.memory", &put, "/output");
}

#[test]
fn quorum_that_nobody_can_fill_is_refused() {
    let escalating = |levels: Value| {
        json!({"requiredApprovals": 2, "approversList": ["ana"], "timeoutMs": 1000,
            "tandem": {"onTimeout": {"policy": "escalate", "levels": levels}}})
    };
    let gate = |config: Value| document(vec![node("gate", "core.approvalGate", config)], vec![]);
    for (config, fits) in [
        (json!({"requiredApprovals": 2}), true),
        (
            json!({"requiredApprovals": 2, "approversList": ["ana", "ben"]}),
            true,
        ),
        (
            json!({"requiredApprovals": 2, "approversList": ["ana"]}),
            false,
        ),
        (
            json!({"requiredApprovals": 2, "approversList": ["ana", "ana"]}),
            false,
        ),
        (
            json!({"requiredApprovals": 2, "approversList": ["ana"], "approverGroupRefs": ["desk"]}),
            true,
        ),
        (
            json!({"requiredApprovals": 2, "approversList": ["ana"], "tandem": {"approvers": ["ben"]}}),
            true,
        ),
        (
            escalating(json!([{"approvers": ["ana"], "timeoutMs": 5}])),
            false,
        ),
        (
            escalating(json!([{"approvers": ["ben"], "timeoutMs": 5}])),
            true,
        ),
    ] {
        let flow = gate(config.clone());
        match Definition::admit(&flow, Permissions::default()) {
            Ok(_) => assert!(fits, "{config}"),
            Err(problems) => {
                assert!(!fits, "{config}: {problems:?}");
                assert_eq!(problems[0].path, "/nodes/0/config/requiredApprovals");
                Definition::compile(&flow, Permissions::default()).expect("a stored one is read");
            }
        }
    }
    let data = json!({"artifactId": "a", "artifactType": "t", "title": "Go?",
        "actions": ["accept", "reject"], "requiredApprovals": 3, "approversList": ["ana"]});
    let asked = json!({"kind": "approval", "data": data});
    let flow = document(vec![node("ask", "core.interrupt", asked)], vec![]);
    let problems = refused(&flow, Permissions::default());
    assert_eq!(problems[0].path, "/nodes/0/config/data/requiredApprovals");
}

#[test]
fn settings_of_a_document_that_do_nothing_are_warned_about() {
    let mut flow = document(vec![node("a", "core.noop", json!({}))], vec![]);
    flow["settings"] = json!({"timout": 5, "logLevel": "debug", "maxRetries": 1, "x-mine": 1});
    flow["metadata"] = json!({"complianceConfig": {"maskingmode": "mask"}, "owner": "desk"});
    flow["isActive"] = json!(false);
    flow["variables"][0]["format"] = json!("email");
    flow["nodes"][0]["credentialsRef"] = json!("key");
    flow["triggers"] = json!([
        {"id": "t", "type": "webhook"},
        {"id": "u", "type": "webhook", "enabled": false},
        {"id": "v", "type": "manual"},
    ]);
    let mut paths = warned(&flow);
    paths.sort();
    assert_eq!(
        paths,
        [
            "/isActive",
            "/metadata/complianceConfig/maskingmode",
            "/nodes/0/credentialsRef",
            "/settings/logLevel",
            "/settings/timout",
            "/triggers/0/type",
            "/variables/0/format",
        ]
    );
}

/// A profile protects a gate, so one that is misspelled is refused, and protects where it is stored already.
#[test]
fn misspelled_profile_of_a_gate_is_refused() {
    let profile = "openwop-interrupt-auth-requird";
    let data = json!({"title": "t", "actions": ["accept"], "artifactId": "a", "artifactType": "t", "artifactData": {}});
    for (type_id, config) in [
        (
            "core.approvalGate",
            json!({"title": "t", "profile": profile}),
        ),
        (
            "core.interrupt",
            json!({"kind": "approval", "data": data, "profile": profile}),
        ),
    ] {
        let flow = document(vec![node("gate", type_id, config)], vec![]);
        let problems = Definition::admit(&flow, Permissions::default()).expect_err("misspelled");
        let errors = problems.iter().filter(|problem| !problem.warning);
        let paths: Vec<_> = errors.map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["/nodes/0/config/profile"], "{type_id}");
    }
}

/// An expression whose root does not exist is always null: it could skip a gate.
#[test]
fn unknown_roots_are_refused_wherever_an_expression_is_read() {
    let flow = |expression: &str| {
        let mut reads = node("reads", "core.noop", json!({}));
        reads["inputs"] = json!({"a": {"type": "expression", "expression": expression}});
        let repeats = node("repeats", "core.loop", json!({"while": expression}));
        let condition = json!({"condition": {"type": "expression", "expression": expression}});
        document(
            vec![reads, repeats],
            vec![edge("reads", "repeats", condition)],
        )
    };
    let everywhere = [
        "/edges/0/condition/expression",
        "/nodes/0/inputs/a/expression",
        "/nodes/1/config/while",
    ];
    let but_edges = &everywhere[1..];
    for (expression, places, why) in [
        (
            "variable.customer > 100",
            &everywhere[..],
            "did you mean `variables`?",
        ),
        ("ouput.x == 1", &everywhere[..1], "did you mean `output`?"),
        (
            "!(node.reads.outputs.x)",
            &everywhere,
            "did you mean `nodes`?",
        ),
        (
            "1 == 1 || channel.log",
            &everywhere,
            "did you mean `channels`?",
        ),
        (
            "customer == 'a'",
            &everywhere,
            "did you mean `variables.customer`?",
        ),
        (
            "reads.outputs.x",
            &everywhere,
            "did you mean `nodes.reads.outputs`?",
        ),
        (
            "nodes.reads.output.x",
            &everywhere,
            "did you mean `nodes.reads.outputs`?",
        ),
        ("foo.bar", but_edges, ": inputs, variables, channels, nodes"),
        (
            "foo.bar",
            &everywhere[..1],
            ": inputs, variables, channels, nodes, output",
        ),
        ("output.x", but_edges, "nothing an expression can read"),
    ] {
        let found = refused(&flow(expression), Permissions::default());
        for path in places {
            let problem = found.iter().find(|p| p.path == *path);
            let problem = problem.unwrap_or_else(|| panic!("{expression} at {path}: {found:?}"));
            assert!(
                problem.message.ends_with(why)
                    || !why.starts_with(':') && problem.message.contains(why),
                "{expression}: {}",
                problem.message
            );
            assert!(!problem.warning, "{expression} at {path}");
        }
        if let Ok(admitted) = Definition::admit(&flow(expression), lenient()) {
            assert!(admitted.warnings.iter().any(|w| w.path == places[0]));
        } else {
            panic!("{expression}: a warning where unknown settings are");
        }
        Definition::compile(&flow(expression), Permissions::default()).expect("stored before");
    }
    for fine in [
        "output.x == 1",
        "nodes.reads.outputs.x",
        "nodes",
        "inputs['a'] == channels.log",
    ] {
        let found = Definition::admit(&flow(fine), Permissions::default());
        let found = found.err().unwrap_or_default();
        assert!(
            found.iter().all(|p| !p.path.starts_with("/edges")),
            "{fine}: {found:?}"
        );
    }
}

#[test]
fn misspelled_settings_of_a_trigger_are_refused() {
    let with = |kind: &str, config: Value| {
        let mut flow = document(vec![node("a", "core.noop", json!({}))], vec![]);
        flow["triggers"] = json!([{"id": "t", "type": kind, "nodeId": "a", "config": config}]);
        flow
    };
    let config = json!({"channel": "log", "debounce": 5, "onlyfrom": "child", "x-note": 1});
    let found = refused(
        &with("channel-write", config.clone()),
        Permissions::default(),
    );
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|p| (p.path.as_str(), p.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (
                "/triggers/0/config/debounce",
                "is not a setting of a channel-write trigger; did you mean `debounceMs`?"
            ),
            (
                "/triggers/0/config/onlyfrom",
                "is not a setting of a channel-write trigger; did you mean `onlyFrom`?"
            ),
        ]
    );
    Definition::admit(&with("channel-write", config.clone()), lenient()).expect("warnings");
    let of_others = Definition::admit(&with("webhook", config), Permissions::default());
    of_others.expect("this host does not act on them");
}

#[test]
fn whole_numbers_may_be_written_with_a_fraction_of_zero() {
    let with = |required: Value| {
        let gate = node(
            "g",
            "core.approvalGate",
            json!({"requiredApprovals": required}),
        );
        Definition::admit(&document(vec![gate], vec![]), Permissions::default())
    };
    with(json!(1.0)).expect("an integer of JSON Schema");
    for bad in [json!(1.5), json!(-1.0), json!(0.0), json!(1e300)] {
        let found = with(bad.clone()).expect_err("no whole number");
        assert_eq!(found[0].path, "/nodes/0/config/requiredApprovals", "{bad}");
    }
}
