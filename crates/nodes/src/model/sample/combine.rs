//! One schema that asks for what two schemas ask for together. Neither has combinators of its own.

use serde_json::{Map, Value, json};

pub(super) fn combined(
    mut whole: Map<String, Value>,
    part: Map<String, Value>,
) -> Map<String, Value> {
    for (key, asked) in part {
        let both = match whole.remove(&key) {
            Some(known) => both(&key, known, asked),
            None => asked,
        };
        whole.insert(key, both);
    }
    whole
}

/// A keyword that both schemas have.
fn both(keyword: &str, one: Value, other: Value) -> Value {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    match keyword {
        "properties" => properties(one, other),
        "required" => {
            let mut names = list(one);
            names.extend(list(other));
            names.into()
        }
        "enum" => {
            let others = list(other);
            let common = list(one).into_iter().filter(|value| others.contains(value));
            common.collect()
        }
        "type" => types(one, other),
        "items" | "additionalProperties" | "contains" => schema(one, other),
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties"
        | "minContains" => match number(&one) >= number(&other) {
            true => one,
            false => other,
        },
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            match number(&one) <= number(&other) {
                true => one,
                false => other,
            }
        }
        "uniqueItems" => json!(one == json!(true) || other == json!(true)),
        _ => one,
    }
}

fn properties(one: Value, other: Value) -> Value {
    let (Value::Object(mut whole), Value::Object(part)) = (one, other) else {
        return Value::Null;
    };
    for (name, asked) in part {
        let both = match whole.remove(&name) {
            Some(known) => schema(known, asked),
            None => asked,
        };
        whole.insert(name, both);
    }
    whole.into()
}

/// Both schemas for one value.
fn schema(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => json!(false),
        (Value::Bool(true), any) | (any, Value::Bool(true)) => any,
        (one, other) => json!({"allOf": [one, other]}),
    }
}

/// Types that both accept. Integers are numbers.
fn types(one: Value, other: Value) -> Value {
    let others = list(other);
    let is_number = |value: &Value| *value == json!("number");
    let ones = list(one);
    let mut common: Vec<Value> = Vec::new();
    for value in &ones {
        if others.contains(value) {
            common.push(value.clone());
        }
    }
    for (few, many) in [(&ones, &others), (&others, &ones)] {
        let integer = few.iter().find(|value| **value == json!("integer"));
        common.extend(integer.filter(|_| many.iter().any(is_number)).cloned());
    }
    common.into()
}

/// A list, or a single value as one.
fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        single => vec![single],
    }
}
