//! Evaluates an expression tree in a scope.

use super::{Node, Operator, Scope, Step, ValueLocation};
use crate::cost::{charge_value, contains_text, count, equal};
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use tandem_schema::Meter;

pub(super) fn evaluate<'a>(node: &'a Node, scope: &'a dyn Scope, meter: &Meter) -> Cow<'a, Value> {
    if !charge_value(meter) {
        return Cow::Owned(Value::Null);
    }
    match node {
        Node::Literal(value) => Cow::Borrowed(value),
        Node::Path(steps) => follow(steps, scope, meter),
        Node::Not(inner) => {
            let inner = evaluate(inner, scope, meter);
            Cow::Owned(Value::Bool(!truthy(&inner)))
        }
        Node::Binary(operator, left, right) => {
            Cow::Owned(Value::Bool(binary(*operator, left, right, scope, meter)))
        }
    }
}

fn follow<'a>(steps: &[Step], scope: &'a dyn Scope, meter: &Meter) -> Cow<'a, Value> {
    let nothing = Cow::Owned(Value::Null);
    let Some((Step::Key(root), rest)) = steps.split_first() else {
        return nothing;
    };
    match scope.locate(root, rest) {
        ValueLocation::Found(value, steps) => {
            walk(value, &rest[steps..]).map_or(nothing, Cow::Borrowed)
        }
        ValueLocation::Missing => nothing,
        ValueLocation::NotStored if !meter.try_spend(scope.root_cost(root)) => nothing,
        ValueLocation::NotStored => match scope.root(root) {
            Some(value) if rest.is_empty() => Cow::Owned(value),
            Some(value) => walk(&value, rest).map_or(nothing, |found| Cow::Owned(found.clone())),
            None => nothing,
        },
    }
}

fn walk<'a>(value: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    let mut current = value;
    for step in steps {
        current = match step {
            Step::Key(key) => current.get(key.as_str())?,
            Step::Index(index) => current.get(*index)?,
        };
    }
    Some(current)
}

fn binary(operator: Operator, left: &Node, right: &Node, scope: &dyn Scope, meter: &Meter) -> bool {
    let left = evaluate(left, scope, meter);
    let right = || evaluate(right, scope, meter);
    let ordering = || ordered(&left, &right(), meter);
    match operator {
        Operator::Or => truthy(&left) || truthy(&right()),
        Operator::And => truthy(&left) && truthy(&right()),
        Operator::Equal => equal(&left, &right(), meter),
        Operator::NotEqual => !equal(&left, &right(), meter),
        Operator::In => {
            let whole = right();
            match (&*whole, &*left) {
                (Value::Object(map), Value::String(key)) => map.contains_key(key),
                (whole, part) => contains(whole, part, meter),
            }
        }
        Operator::Less => ordering().is_some_and(Ordering::is_lt),
        Operator::LessOrEqual => ordering().is_some_and(Ordering::is_le),
        Operator::Greater => ordering().is_some_and(Ordering::is_gt),
        Operator::GreaterOrEqual => ordering().is_some_and(Ordering::is_ge),
    }
}

/// Whether a list has an entry, or a text a part.
pub(crate) fn contains(whole: &Value, part: &Value, meter: &Meter) -> bool {
    match (whole, part) {
        (Value::Array(items), _) => {
            let mut items = items.iter();
            items.any(|item| !meter.exceeded() && equal(item, part, meter))
        }
        (Value::String(text), Value::String(piece)) => contains_text(text, piece, meter),
        _ => false,
    }
}

fn ordered(left: &Value, right: &Value, meter: &Meter) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => {
            let work = count(a.len().min(b.len()));
            meter.try_spend(work).then(|| a.cmp(b))
        }
        _ => None,
    }
}

/// Truth as JavaScript has it.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64().is_some_and(|n| n != 0.0),
        Value::String(s) => !s.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
