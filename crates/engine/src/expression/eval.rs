//! Evaluates an expression tree in a scope.

use super::{Node, Operator, Scope, Step, ValueLocation};
use serde_json::Value;
use std::cmp::Ordering;

pub(super) fn evaluate(node: &Node, scope: &dyn Scope) -> Value {
    match node {
        Node::Literal(value) => value.clone(),
        Node::Path(steps) => follow(steps, scope),
        Node::Not(inner) => Value::Bool(!truthy(&evaluate(inner, scope))),
        Node::Binary(operator, left, right) => binary(*operator, left, right, scope),
    }
}

fn follow(steps: &[Step], scope: &dyn Scope) -> Value {
    let Some((Step::Key(root), rest)) = steps.split_first() else {
        return Value::Null;
    };
    match scope.locate(root, rest) {
        ValueLocation::Found(value, steps) => walk(value, &rest[steps..]),
        ValueLocation::Missing => Value::Null,
        ValueLocation::NotStored => match scope.root(root) {
            Some(value) => walk(&value, rest),
            None => Value::Null,
        },
    }
}

fn walk(value: &Value, steps: &[Step]) -> Value {
    let mut current = value;
    for step in steps {
        let inner = match step {
            Step::Key(key) => current.get(key.as_str()),
            Step::Index(index) => current.get(*index),
        };
        match inner {
            Some(value) => current = value,
            None => return Value::Null,
        }
    }
    current.clone()
}

fn binary(operator: Operator, left: &Node, right: &Node, scope: &dyn Scope) -> Value {
    let left = evaluate(left, scope);
    let verdict = match operator {
        Operator::Or => truthy(&left) || truthy(&evaluate(right, scope)),
        Operator::And => truthy(&left) && truthy(&evaluate(right, scope)),
        Operator::Equal => equal(&left, &evaluate(right, scope)),
        Operator::NotEqual => !equal(&left, &evaluate(right, scope)),
        Operator::In => contains(&evaluate(right, scope), &left),
        Operator::Less => ordered(&left, &evaluate(right, scope)).is_some_and(Ordering::is_lt),
        Operator::LessOrEqual => {
            ordered(&left, &evaluate(right, scope)).is_some_and(Ordering::is_le)
        }
        Operator::Greater => ordered(&left, &evaluate(right, scope)).is_some_and(Ordering::is_gt),
        Operator::GreaterOrEqual => {
            ordered(&left, &evaluate(right, scope)).is_some_and(Ordering::is_ge)
        }
    };
    Value::Bool(verdict)
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Array(items), _) => items.iter().any(|item| equal(item, part)),
        (Value::Object(map), Value::String(key)) => map.contains_key(key),
        (Value::String(text), Value::String(piece)) => text.contains(piece.as_str()),
        _ => false,
    }
}

fn ordered(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Equality of canonical JSON: `1` and `1.0` are the same number, key order does not matter.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| equal(v, w)))
        }
        _ => left == right,
    }
}

/// Truthiness as in JavaScript.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64().is_some_and(|n| n != 0.0),
        Value::String(s) => !s.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
