//! A number a schema accepts.

use serde_json::{Map, Value, json};

/// Multiples that are tried to find a whole number.
const MAX_MULTIPLES: u32 = 1_000;

/// A bound, and whether the bound itself is excluded.
type Bound = Option<(f64, bool)>;

pub(super) fn sample(fields: &Map<String, Value>, whole: bool, variant: usize) -> Value {
    let bound = |key: &str| fields.get(key).and_then(Value::as_f64);
    let (inclusive, exclusive) = (bound("minimum"), bound("exclusiveMinimum"));
    let least = narrower(inclusive, exclusive, |exclusive, inclusive| {
        exclusive >= inclusive
    });
    let (inclusive, exclusive) = (bound("maximum"), bound("exclusiveMaximum"));
    let most = narrower(inclusive, exclusive, |exclusive, inclusive| {
        exclusive <= inclusive
    });
    let multiple = bound("multipleOf").filter(|step| *step > 0.0);
    #[expect(clippy::cast_precision_loss, reason = "variants are few")]
    let variant = variant as f64;
    let value = match multiple {
        Some(step) => on_steps(whole_step(step, whole), least, most, variant),
        None if whole => on_steps(1.0, least, most, variant),
        None => between(least, most, variant),
    };
    #[expect(clippy::cast_possible_truncation, reason = "checked to be small")]
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => json!(value as i64),
        false => json!(value),
    }
}

fn narrower(
    inclusive: Option<f64>,
    exclusive: Option<f64>,
    is_narrower: impl Fn(f64, f64) -> bool,
) -> Bound {
    match (inclusive, exclusive) {
        (Some(inclusive), Some(exclusive)) if !is_narrower(exclusive, inclusive) => {
            Some((inclusive, false))
        }
        (_, Some(exclusive)) => Some((exclusive, true)),
        (inclusive, None) => inclusive.map(|bound| (bound, false)),
    }
}

/// The step between multiples that are whole numbers, where whole numbers are wanted.
fn whole_step(step: f64, whole: bool) -> f64 {
    let mut steps = (1..=MAX_MULTIPLES).map(|n| f64::from(n) * step);
    let found = steps.find(|step| !whole || step.fract() == 0.0);
    found.unwrap_or(step)
}

/// A multiple of the step: the lowest, or the one nearest to zero, and from there upwards; downwards where
/// there is only an upper bound.
fn on_steps(step: f64, least: Bound, most: Bound, variant: f64) -> f64 {
    let lowest = least.map(|(least, excluded)| {
        let first = (least / step).ceil();
        first + f64::from(u8::from(excluded && first * step == least))
    });
    let highest = most.map(|(most, excluded)| {
        let last = (most / step).floor();
        last - f64::from(u8::from(excluded && last * step == most))
    });
    let multiple = match (lowest, highest) {
        (Some(lowest), _) => lowest + variant,
        (None, Some(highest)) => highest.min(0.0) - variant,
        (None, None) => variant,
    };
    multiple * step
}

fn between(least: Bound, most: Bound, variant: f64) -> f64 {
    match (least, most) {
        (Some((least, false)), _) if variant == 0.0 => least,
        // Beyond the lower bound, nearer and nearer to the upper one.
        (Some((least, _)), Some((most, _))) => {
            least + (most - least) * (variant + 1.0) / (variant + 2.0)
        }
        (Some((least, excluded)), None) => least + variant + f64::from(u8::from(excluded)),
        (None, Some((most, excluded))) => {
            let highest = most - f64::from(u8::from(excluded));
            highest.min(0.0) - variant
        }
        (None, None) => variant,
    }
}
