//! Whether an edge is taken after its source completed.

use crate::cost::{charge_copies, charge_text, charge_value, equal};
use crate::definition::document::{Condition, ConditionKind};
use crate::expression::{Expression, Scope, contains, truthy};
use serde_json::Value;
use std::borrow::Cow;
use tandem_record::Object;
use tandem_schema::{Meter, Pattern, SchemaRefusal};

#[derive(Debug)]
pub(crate) enum CompiledCondition {
    Expression(Expression),
    Regex {
        left: Option<String>,
        pattern: Pattern,
    },
    Compare {
        kind: ConditionKind,
        left: Option<String>,
        right: Value,
    },
}

impl CompiledCondition {
    /// On failure: the key and what is wrong with it.
    pub(crate) fn new(
        condition: &Condition,
        compile: impl FnOnce(&str) -> Result<Pattern, SchemaRefusal>,
    ) -> Result<Self, (&'static str, String)> {
        let left = condition.left.clone();
        match condition.kind {
            ConditionKind::Expression => {
                let text = condition.expression.as_deref().unwrap_or_default();
                Expression::parse(text)
                    .map(Self::Expression)
                    .map_err(|e| ("expression", e.to_string()))
            }
            ConditionKind::Regex => {
                let Some(pattern) = condition.right.as_str() else {
                    return Err((
                        "right",
                        "a regex condition needs a pattern as text".to_owned(),
                    ));
                };
                let pattern = compile(pattern).map_err(|why| ("right", why.message))?;
                Ok(Self::Regex { left, pattern })
            }
            kind => Ok(Self::Compare {
                kind,
                left,
                right: condition.right.clone(),
            }),
        }
    }

    /// `scope` answers expressions; the other kinds look only at the source's outputs. A text too
    /// long for its pattern does not match, nor does what does not fit the meter; `meter` tells that
    /// it was not looked at.
    pub(crate) fn holds(&self, outputs: &Object, scope: &dyn Scope, meter: &Meter) -> bool {
        match self {
            Self::Expression(expression) => truthy(&expression.evaluate(scope, meter)),
            Self::Regex { left, pattern } => {
                match at_path(outputs, left.as_deref(), meter).as_deref() {
                    Some(Value::String(text)) => pattern.matches(text, meter) == Ok(true),
                    Some(Value::Null) | None => false,
                    Some(other) => {
                        charge_text(other, meter)
                            && pattern.matches(&other.to_string(), meter) == Ok(true)
                    }
                }
            }
            Self::Compare { kind, left, right } => {
                let found = at_path(outputs, left.as_deref(), meter);
                let value = found.unwrap_or(Cow::Owned(Value::Null));
                match kind {
                    ConditionKind::Equals => equal(&value, right, meter),
                    ConditionKind::NotEquals => !equal(&value, right, meter),
                    ConditionKind::Contains => contains(&value, right, meter),
                    ConditionKind::Truthy => truthy(&value),
                    ConditionKind::Falsy => !truthy(&value),
                    ConditionKind::Expression | ConditionKind::Regex => {
                        unreachable!("compiled into their own variants")
                    }
                }
            }
        }
    }
}

/// Follows `a.b.0`. Authors write `output.approved` for what a node put out whether or not it has
/// a port of that name, so a leading `output` that is no port means the outputs themselves.
fn at_path<'a>(outputs: &'a Object, path: Option<&str>, meter: &Meter) -> Option<Cow<'a, Value>> {
    if !charge_value(meter) {
        return None;
    }
    let whole = || {
        charge_copies(outputs, 1, meter)?;
        Some(Cow::Owned(Value::Object(outputs.clone())))
    };
    let Some(path) = path.filter(|p| !p.is_empty()) else {
        return whole();
    };
    let mut segments = path.split('.').peekable();
    if segments.peek() == Some(&"output") && !outputs.contains_key("output") {
        segments.next();
    }
    let mut rest = segments;
    let Some(first) = rest.next() else {
        return whole();
    };
    let mut current = outputs.get(first)?;
    for segment in rest {
        current = match current {
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?)?,
            other => other.get(segment)?,
        };
    }
    Some(Cow::Borrowed(current))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Nothing;
    impl Scope for Nothing {
        fn root(&self, _: &str) -> Option<Value> {
            None
        }
    }

    fn holds(condition: Value, outputs: Value) -> bool {
        let condition: Condition = serde_json::from_value(condition).expect("a condition");
        let outputs = outputs.as_object().expect("an object").clone();
        CompiledCondition::new(&condition, |text| Pattern::compile(text, None))
            .expect("compiles")
            .holds(&outputs, &Nothing, &Meter::unlimited())
    }

    #[test]
    fn operators() {
        let out = json!({"status": "high risk", "n": 1, "tags": ["a", "b"], "deep": {"ok": true}});
        let cases = [
            (json!({"type": "equals", "left": "n", "right": 1.0}), true),
            (
                json!({"type": "equals", "left": "output.n", "right": 1}),
                true,
            ),
            (json!({"type": "notEquals", "left": "n", "right": 2}), true),
            (
                json!({"type": "equals", "left": "missing", "right": null}),
                true,
            ),
            (
                json!({"type": "contains", "left": "status", "right": "risk"}),
                true,
            ),
            (
                json!({"type": "contains", "left": "tags", "right": "b"}),
                true,
            ),
            (json!({"type": "contains", "left": "n", "right": 1}), false),
            (
                json!({"type": "regex", "left": "status", "right": "^h.*k$"}),
                true,
            ),
            (json!({"type": "regex", "left": "n", "right": "^1$"}), true),
            (
                json!({"type": "regex", "left": "missing", "right": ""}),
                false,
            ),
            (
                json!({"type": "truthy", "left": "deep.ok", "right": "ignored"}),
                true,
            ),
            (json!({"type": "falsy", "left": "deep.no"}), true),
            (
                json!({"type": "equals", "left": "tags.1", "right": "b"}),
                true,
            ),
        ];
        for (condition, wanted) in cases {
            assert_eq!(holds(condition.clone(), out.clone()), wanted, "{condition}");
        }
    }
}
