//! What it costs to look at values, in units of work: about a nanosecond each. Counted from their
//! shapes, never measured, so that it is the same on every host and in every replay.

use serde::Serialize;
use serde_json::Value;
use tandem_record::Size;
use tandem_schema::Meter;

/// Looking at one value.
const VALUE: u64 = 16;
/// Finding a member of an object.
const MEMBER: u64 = 64;
/// Bytes of text compared in one unit.
const COMPARED_PER_UNIT: usize = 8;

/// Copying something of this size.
pub(crate) fn of_copy(size: Size) -> u64 {
    count(size.memory)
}

pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Charges for `times` copies of something. Nothing is measured once the meter is exceeded.
#[must_use]
pub(crate) fn charge_copies(
    value: &(impl Serialize + ?Sized),
    times: u64,
    meter: &Meter,
) -> Option<Size> {
    if meter.exceeded() {
        return None;
    }
    let size = Size::of(value);
    let fits = meter.try_spend(times.saturating_mul(of_copy(size)));
    fits.then_some(size)
}

/// Charges for a look at one value.
#[must_use]
pub(crate) fn charge_value(meter: &Meter) -> bool {
    meter.try_spend(VALUE)
}

/// Charges for writing a value out as text.
#[must_use]
pub(crate) fn charge_text(value: &Value, meter: &Meter) -> bool {
    if meter.exceeded() {
        return false;
    }
    let size = Size::of(value);
    meter.try_spend(of_copy(size).saturating_add(count(size.text)))
}

/// Equality of canonical JSON: `1` and `1.0` are the same number, key order does not matter. Charged as
/// far as the values are looked at; `false` when it does not fit.
pub(crate) fn equal(left: &Value, right: &Value, meter: &Meter) -> bool {
    if !charge_value(meter) {
        return false;
    }
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => {
            a.len() == b.len() && meter.try_spend(count(a.len() / COMPARED_PER_UNIT)) && a == b
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b, meter))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| {
                    let work = MEMBER + count(key.len() / COMPARED_PER_UNIT);
                    meter.try_spend(work)
                        && b.get(key).is_some_and(|other| equal(value, other, meter))
                })
        }
        _ => left == right,
    }
}

/// Whether a text is part of another.
pub(crate) fn contains_text(text: &str, piece: &str, meter: &Meter) -> bool {
    let work = count(text.len()).saturating_add(count(piece.len()));
    meter.try_spend(work) && text.contains(piece)
}
