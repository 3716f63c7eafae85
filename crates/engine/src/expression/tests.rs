use super::{Expression, Scope};
use serde_json::{Value, json};
use tandem_schema::Meter;

struct Fixed(Value);

impl Scope for Fixed {
    fn root(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
}

fn eval(text: &str) -> Value {
    let scope = Fixed(json!({
        "inputs": {"n": 3, "items": ["a", {"b": [10, 20]}], "flag": true, "text": "green"},
        "nodes": {"ask-user": {"outputs": {"answer": "yes"}}},
    }));
    Expression::parse(text)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .evaluate(&scope, &Meter::unlimited())
        .into_owned()
}

#[test]
fn values_and_operators() {
    let cases = [
        ("inputs.n == 3.0", json!(true)),
        ("inputs.items[1].b[0]", json!(10)),
        ("inputs['items'][0] == \"a\"", json!(true)),
        ("nodes[\"ask-user\"].outputs.answer == 'yes'", json!(true)),
        ("nodes.ask-user.outputs.answer", json!("yes")),
        ("inputs.n >= 3 && inputs.n < 4", json!(true)),
        ("!inputs.flag || inputs.missing.deeper", json!(false)),
        ("inputs.missing == null", json!(true)),
        ("'a' in inputs.items", json!(true)),
        ("'ree' in inputs.text", json!(true)),
        ("'n' in inputs", json!(true)),
        ("inputs.text < 5", json!(false)),
        ("(1 < 2) == true", json!(true)),
        ("-1 < 0", json!(true)),
        ("!(inputs.n != 3)", json!(true)),
    ];
    for (text, wanted) in cases {
        assert_eq!(eval(text), wanted, "{text}");
    }
}

#[test]
fn syntax_errors_name_their_position() {
    for text in [
        "",
        "inputs.",
        "inputs.n + 1",
        "(1",
        "a[",
        "a[1",
        "a[-1]",
        "'open",
        "1 2",
        "== 1",
        "f(1)",
        "a..b",
    ] {
        assert!(Expression::parse(text).is_err(), "{text:?} was accepted");
    }
    let deep = "!".repeat(1000) + "true";
    assert!(Expression::parse(&deep).is_err(), "unbounded nesting");
    assert!(
        Expression::parse(&"a".repeat(5000)).is_err(),
        "unbounded length"
    );
    assert!(
        Expression::parse("1 == ")
            .unwrap_err()
            .to_string()
            .contains("character 5")
    );
}
