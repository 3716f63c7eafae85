//! The estimate is an upper bound of what the validator does: every generated schema counts how
//! often each of its parts is evaluated.

use crate::cost::Costs;
use crate::graph::Graph;
use crate::limits::{KEYWORD, MAX_WORK};
use crate::measure::Shape;
use crate::{Budget, SchemaRefusal};
use jsonschema::{Keyword, ValidationError};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counter(Arc<AtomicU64>);

impl<'i> Keyword<'i> for Counter {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn is_valid(&self, _: &Value) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// A schema whose parts count their evaluations. References lead to any of four definitions.
fn schemas() -> impl Strategy<Value = Value> {
    let part = parts(3);
    (part, prop::collection::vec(parts(2), 4)).prop_map(|(mut root, defs)| {
        let defs: Map<String, Value> = (0..).map(|i: usize| format!("d{i}")).zip(defs).collect();
        root["$defs"] = Value::from(defs);
        root
    })
}

fn parts(depth: u32) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(json!({"count": 1, "type": "integer"})),
        Just(json!({"count": 1})),
        (0..4_u8).prop_map(|i| json!({"count": 1, "$ref": format!("#/$defs/d{i}")})),
    ];
    leaf.prop_recursive(depth, 24, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (list.clone(), 0..3_u8).prop_map(|(all, how)| {
                let how = ["allOf", "anyOf", "oneOf"][usize::from(how)];
                json!({"count": 1, how: all})
            }),
            (inner.clone(), inner.clone(), any::<bool>()).prop_map(|(a, b, closed)| {
                let mut schema = json!({"count": 1, "properties": {"a": a, "b": b}});
                if closed {
                    schema["unevaluatedProperties"] = json!(false);
                }
                schema
            }),
            (inner.clone(), inner.clone()).prop_map(
                |(a, b)| json!({"count": 1, "if": a, "then": b, "unevaluatedItems": {"count": 1}})
            ),
            inner.clone().prop_map(|a| json!({"count": 1, "items": a})),
            inner.clone().prop_map(|a| json!({"count": 1, "not": a})),
            inner.prop_map(|a| json!({"count": 1, "additionalProperties": a, "contains": a})),
        ]
    })
    .boxed()
}

fn instances() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!(null))];
    leaf.prop_recursive(6, 40, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"a": a, "b": b})),
        ]
    })
}

fn costs(schema: &Value) -> Result<Costs, SchemaRefusal> {
    Costs::of(&Graph::read(schema, &mut Budget::default())?)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_evaluation_does_no_more_work_than_estimated(schema in schemas(), value in instances()) {
        // A refused schema is never evaluated.
        let Ok(costs) = costs(&schema) else { return Ok(()) };
        let shape = Shape::of(&value).expect("not deep");
        let Some(estimate) = costs.estimate(&shape) else { return Ok(()) };
        prop_assume!(estimate.fits <= MAX_WORK / 100);
        let counted = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&counted);
        let validator = jsonschema::options()
            .with_keyword("count", move |_, _, _| Ok(Box::new(Counter(Arc::clone(&counter)))))
            .build(&schema)
            .expect("compiles");
        let _ = validator.is_valid(&value);
        let steps = counted.swap(0, Ordering::Relaxed);
        prop_assert!(steps * KEYWORD <= estimate.fits, "{steps} steps, {}", estimate.fits);
        if let Some(bound) = estimate.errors {
            let errors = validator.iter_errors(&value).count() as u64;
            let steps = counted.load(Ordering::Relaxed);
            prop_assert!(steps * KEYWORD <= bound, "{steps} steps for errors, {bound}");
            prop_assert!(errors * KEYWORD <= bound);
        }
    }
}
