use super::*;
use serde_json::json;

fn folded(reducer: &str, max: Option<usize>, writes: &[Value]) -> Value {
    writes
        .iter()
        .fold(None, |state: Option<Value>, write| {
            Some(fold(state, write, reducer, None, max, Timestamp(0)))
        })
        .unwrap_or(Value::Null)
}

#[test]
fn each_reducer_folds_writes() {
    assert_eq!(folded("replace", None, &[json!(1), json!("x")]), json!("x"));
    assert_eq!(
        folded("append", Some(2), &[json!(1), json!(2), json!(3)]),
        json!([2, 3])
    );
    assert_eq!(
        folded(
            "merge",
            None,
            &[json!({"a": 1, "b": {"c": 1}}), json!({"b": {"d": 2}})]
        ),
        json!({"a": 1, "b": {"d": 2}})
    );
    assert_eq!(folded("counter", None, &[json!(2), json!(-3)]), json!(-1));
    assert_eq!(folded("counter", None, &[json!(2), json!(0.5)]), json!(2.5));
    assert_eq!(
        folded("counter", None, &[json!(i64::MAX), json!(10)]),
        json!(9_223_372_036_854_775_817_u64)
    );
    let votes = [
        json!({"userId": "a", "v": 1}),
        json!({"voter": "b", "v": 2}),
        json!({"userId": "a", "v": 3}),
    ];
    assert_eq!(
        folded("votes", None, &votes),
        json!([{"voter": "b", "v": 2}, {"userId": "a", "v": 3}])
    );
    assert_eq!(
        folded("feedback", Some(1), &[json!("x"), json!("y")]),
        json!(["y"])
    );
    let messages = [
        json!({"messageId": "1", "t": "a"}),
        json!({"messageId": "1", "t": "b"}),
        json!({"messageId": "2"}),
    ];
    assert_eq!(
        folded("message", None, &messages),
        json!([{"messageId": "1", "t": "a"}, {"messageId": "2"}])
    );
    assert_eq!(
        folded("vendor.acme.max", None, &[json!(9), json!(4)]),
        json!(4)
    );
}

#[test]
fn expired_entries_are_dropped_on_the_next_write() {
    let write = |text: &str, at: i64| stored_value(json!(text), "append", Some(200), Timestamp(at));
    let mut state = None;
    for (text, at) in [("a", 1000), ("b", 1100), ("c", 1250)] {
        state = Some(fold(
            state,
            &write(text, at),
            "append",
            Some(200),
            None,
            Timestamp(at),
        ));
    }
    assert_eq!(
        state.unwrap(),
        json!([{"value": "b", "_ts": 1100}, {"value": "c", "_ts": 1250}])
    );
    assert_eq!(
        stored_value(json!(1), "replace", Some(5), Timestamp(1)),
        json!(1),
        "only aging reducers wrap"
    );
}

#[test]
fn access_lists_match_ids_types_and_wildcards() {
    let channel = |access: Value| -> Channel {
        serde_json::from_value(json!({"reducer": "append", "access": access})).unwrap()
    };
    let may = |access: Value| {
        check_access(
            "c",
            &channel(access),
            AccessSide::Writers,
            "n1",
            "core.ai.call",
        )
        .is_ok()
    };
    assert!(may(json!("public")));
    assert!(!may(json!("private")));
    assert!(may(json!({"readers": []})), "an omitted side is open");
    assert!(may(json!({"writers": ["n1"]})));
    assert!(may(json!({"writers": ["core.ai.*"]})));
    assert!(may(json!({"writers": ["*"]})));
    assert!(!may(json!({"writers": ["core.other.*", "n2"]})));
}
