//! Channels: typed state that grows by writes. The log stores the writes. This module folds them
//! with the reducer recorded on each write, so that a later change of the declaration cannot change
//! history.

use crate::cost::{charge_copies, count};
use crate::definition::CompiledChannel;
use crate::definition::document::Channel;
use crate::value_kind::kind_of;
use serde_json::{Value, json};
use tandem_record::{ErrorInfo, Object, Size, Timestamp};
use tandem_schema::{Meter, ValidationFailure};

/// Work of looking at one entry of a channel.
const ENTRY: u64 = 32;

const REDUCERS: [&str; 7] = [
    "replace", "append", "merge", "counter", "votes", "feedback", "message",
];

pub(crate) fn is_reducer(name: &str) -> bool {
    REDUCERS.contains(&name)
        || name
            .strip_prefix("vendor.")
            .is_some_and(|rest| rest.split('.').count() == 2)
}

/// Reducers whose entries expire.
pub(crate) fn has_aging_entries(reducer: &str) -> bool {
    matches!(reducer, "append" | "votes" | "feedback")
}

/// Reducers that drop their oldest entry when full instead of refusing the write.
fn drops_oldest(reducer: &str) -> bool {
    matches!(reducer, "append" | "feedback" | "message")
}

/// How a write is stored: wrapped with its time if its entries expire.
pub(crate) fn stored_value(value: Value, reducer: &str, ttl: Option<u64>, now: Timestamp) -> Value {
    if ttl.is_some() && has_aging_entries(reducer) {
        json!({"value": value, "_ts": now.0})
    } else {
        value
    }
}

/// Folds one write into the state.
pub(crate) fn fold(
    current: Option<Value>,
    value: &Value,
    reducer: &str,
    ttl: Option<u64>,
    max_size: Option<usize>,
    at: Timestamp,
) -> Value {
    match reducer {
        "append" | "feedback" | "votes" | "message" => {
            let mut entries = match current {
                Some(Value::Array(entries)) => entries,
                _ => Vec::new(),
            };
            if let Some(ttl) = ttl.filter(|_| has_aging_entries(reducer)) {
                let oldest = at.0.saturating_sub(i64::try_from(ttl).unwrap_or(i64::MAX));
                entries.retain(|e| {
                    e.get("_ts")
                        .and_then(Value::as_i64)
                        .is_none_or(|ts| ts >= oldest)
                });
            }
            match reducer {
                "votes" => {
                    let voter = voter(value);
                    entries.retain(|e| voter.is_none() || self::voter(e) != voter);
                    entries.push(value.clone());
                }
                "message" => {
                    let id = value.get("messageId");
                    if id.is_none() || !entries.iter().any(|e| e.get("messageId") == id) {
                        entries.push(value.clone());
                    }
                }
                _ => entries.push(value.clone()),
            }
            if let Some(max) = max_size.filter(|_| drops_oldest(reducer)) {
                let excess = entries.len().saturating_sub(max);
                entries.drain(..excess);
            }
            Value::Array(entries)
        }
        "merge" => {
            let mut merged = match current {
                Some(Value::Object(map)) => map,
                _ => Object::new(),
            };
            if let Value::Object(next) = value {
                merged.extend(next.clone());
            }
            Value::Object(merged)
        }
        // A sum that does not exist is refused before it is written.
        "counter" => add(current.as_ref(), value).or(current).unwrap_or_default(),
        // A reducer nobody here knows reads as the latest value.
        _ => value.clone(),
    }
}

fn voter(entry: &Value) -> Option<&Value> {
    let inner = entry.get("value").filter(|_| entry.get("_ts").is_some());
    let entry = inner.unwrap_or(entry);
    entry.get("userId").or_else(|| entry.get("voter"))
}

/// The sum, exact for whole numbers; `None` when it is out of range.
fn add(current: Option<&Value>, value: &Value) -> Option<Value> {
    let whole = |number: &Value| match number.as_u64() {
        Some(number) => Some(i128::from(number)),
        None => number.as_i64().map(i128::from),
    };
    let zero = json!(0);
    let current = current.unwrap_or(&zero);
    if let (Some(a), Some(b)) = (whole(current), whole(value)) {
        let sum = a + b;
        let unsigned = || u64::try_from(sum).ok().map(Value::from);
        return i64::try_from(sum).ok().map(Value::from).or_else(unsigned);
    }
    let sum = current.as_f64().unwrap_or(0.0) + value.as_f64().unwrap_or(0.0);
    sum.is_finite().then(|| json!(sum))
}

/// The parameters of a write.
pub(crate) struct Write<'a> {
    pub(crate) reducer: &'a str,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) max_size: Option<usize>,
    pub(crate) at: Timestamp,
}

/// Whether a write is allowed; checked before it is recorded.
pub(crate) fn check_write(
    channel: &str,
    declared: Option<&CompiledChannel>,
    write: &Write<'_>,
    value: &Value,
    current: Option<&Value>,
    meter: &Meter,
) -> Result<(), ErrorInfo> {
    let (reducer, max_size) = (write.reducer, write.max_size);
    let refuse = |message: String| Err(ErrorInfo::new("validation_error", message));
    if reducer == "merge" && !value.is_object() {
        return refuse(format!(
            "channel {channel:?} merges objects, not {}",
            kind_of(value)
        ));
    }
    if reducer == "counter" && !value.is_number() {
        return refuse(format!(
            "channel {channel:?} counts numbers, not {}",
            kind_of(value)
        ));
    }
    if reducer == "counter" && add(current, value).is_none() {
        return refuse(format!("channel {channel:?} cannot count that far"));
    }
    charge_fold(write, value, current, meter)?;
    // What has aged out makes room first. Built only where it is looked at.
    let next = || {
        let copies = [Some(value), current];
        for copied in copies.into_iter().flatten() {
            charge_copies(copied, 1, meter).ok_or_else(not_folded)?;
        }
        let current = current.cloned();
        let next = fold(current, value, reducer, write.ttl_ms, max_size, write.at);
        Ok::<_, ErrorInfo>(next)
    };
    if let Some(max) = max_size.filter(|_| !drops_oldest(reducer)) {
        let next = next()?;
        let size = match &next {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            Value::String(text) => text.len(),
            _ => 1,
        };
        if size > max {
            return refuse(format!("channel {channel:?} holds at most {max} entries"));
        }
    }
    // The schema describes either one entry or the folded state; a write that matches neither is
    // wrong.
    let Some(schema) = declared.and_then(|c| c.schema.as_ref()) else {
        return Ok(());
    };
    let misfit = match schema.fits(value, meter) {
        Ok(true) => return Ok(()),
        entry => match (entry, schema.fits(&next()?, meter)) {
            (_, Ok(true)) => return Ok(()),
            (Err(failure), _) | (_, Err(failure)) => failure,
            (Ok(_), Ok(false)) => ValidationFailure::Unlisted,
        },
    };
    let code = misfit.code().unwrap_or("validation_error");
    let message = format!(
        "the value written to channel {channel:?} {}",
        misfit.message()
    );
    Err(ErrorInfo::new(code, message))
}

/// Charges for what folding a write looks at besides the value itself.
fn charge_fold(
    write: &Write<'_>,
    value: &Value,
    current: Option<&Value>,
    meter: &Meter,
) -> Result<(), ErrorInfo> {
    let scans = write.ttl_ms.is_some()
        || write.max_size.is_some()
        || matches!(write.reducer, "votes" | "message");
    let entries = match current {
        Some(Value::Array(entries)) if scans => entries.len(),
        _ => 0,
    };
    // A member of each entry identifies it.
    let id = match write.reducer {
        "votes" => voter(value),
        "message" => value.get("messageId"),
        _ => None,
    };
    let compared = id.map_or(0, |id| Size::of(id).memory / 8);
    let work = count(entries).saturating_mul(ENTRY + count(compared));
    match meter.try_spend(work) {
        true => Ok(()),
        false => Err(not_folded()),
    }
}

/// Stands for what did not fit the meter. It is never recorded.
fn not_folded() -> ErrorInfo {
    ErrorInfo::new("decision_work_exceeded", "the write was not folded")
}

/// Who may touch a channel.
#[derive(Clone, Copy)]
pub(crate) enum AccessSide {
    Readers,
    Writers,
}

pub(crate) fn check_access(
    channel: &str,
    declared: &Channel,
    side: AccessSide,
    node_id: &str,
    type_id: &str,
) -> Result<(), ErrorInfo> {
    let allowed = match &declared.access {
        None => return Ok(()),
        Some(Value::String(word)) if word == "private" => Vec::new(),
        Some(Value::String(_)) => return Ok(()),
        Some(rules) => {
            let key = match side {
                AccessSide::Readers => "readers",
                AccessSide::Writers => "writers",
            };
            match rules.get(key).and_then(Value::as_array) {
                None => return Ok(()),
                Some(entries) => entries.iter().filter_map(Value::as_str).collect(),
            }
        }
    };
    let matches = |entry: &&str| {
        *entry == node_id
            || match entry.strip_suffix('*') {
                Some(prefix) => type_id.starts_with(prefix),
                None => *entry == type_id,
            }
    };
    if allowed.iter().any(matches) {
        return Ok(());
    }
    Err(ErrorInfo::new(
        "channel_access_denied",
        format!("node {node_id:?} may not use channel {channel:?}"),
    )
    .with_details(json!({
        "channel": channel,
        "requestedBy": {"nodeId": node_id, "typeId": type_id},
        "allowed": allowed,
    })))
}

#[cfg(test)]
mod tests;
