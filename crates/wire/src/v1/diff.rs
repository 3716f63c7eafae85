//! The difference between two runs: a pure function of the logs and states that clients see.
//!
//! Events are aligned by sequence and compared by type, node and payload. Ids of the run itself,
//! times and durations are not compared: two runs that did the same at different times do not
//! differ.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Maximum number of listed differences; a longer list is cut and marked as cut.
const MAX_DIFFERENCES: usize = 1000;
/// Members that hold a time or duration.
const TIME_KEYS: [&str; 10] = [
    "durationMs",
    "waitedMs",
    "requestedAt",
    "resolvedAt",
    "decidedAt",
    "writtenAt",
    "dueAt",
    "startedAt",
    "endedAt",
    "completedAt",
];
/// Members of a run's state that are compared one by one.
const STATE_KEYS: [&str; 2] = ["variables", "channels"];

/// One of the two runs: its log and its state, both as clients see them.
pub struct Side<'a> {
    pub run_id: &'a str,
    pub events: &'a [Value],
    pub snapshot: &'a Value,
    pub ended: bool,
}

pub fn diff(a: &Side<'_>, b: &Side<'_>) -> Value {
    let mut differences = Vec::new();
    let mut cut_off = false;
    let (mut names_a, mut names_b) = (RunNormalizer::of(a), RunNormalizer::of(b));
    for seq in 0..a.events.len().max(b.events.len()) {
        let (left, right) = (a.events.get(seq), b.events.get(seq));
        let op = match (left, right) {
            (Some(left), Some(right))
                if names_a.comparable_parts(left) == names_b.comparable_parts(right) =>
            {
                continue;
            }
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
            (None, _) => "added",
        };
        if differences.len() == MAX_DIFFERENCES {
            cut_off = true;
            break;
        }
        let mut difference = json!({"seq": seq, "op": op});
        if let Some(left) = left {
            difference["aEvent"] = left.clone();
        }
        if let Some(right) = right {
            difference["bEvent"] = right.clone();
        }
        differences.push(difference);
    }
    let first = differences.first().map(|d| d["seq"].clone());
    let mut out = json!({
        "a": a.run_id,
        "b": b.run_id,
        "divergedAtSeq": first,
        "eventDiffs": differences,
        "stateDiff": state_diff(a, b),
    });
    if cut_off || !a.ended || !b.ended {
        out["truncated"] = json!(true);
    }
    out
}

fn state_diff(a: &Side<'_>, b: &Side<'_>) -> Value {
    let mut out = Map::new();
    if a.snapshot["status"] != b.snapshot["status"] {
        let sides = json!({"a": a.snapshot["status"], "b": b.snapshot["status"]});
        out.insert("status".to_owned(), sides);
    }
    let (mut names_a, mut names_b) = (RunNormalizer::of(a), RunNormalizer::of(b));
    for part in STATE_KEYS {
        let empty = Map::new();
        let left = a.snapshot[part].as_object().unwrap_or(&empty);
        let right = b.snapshot[part].as_object().unwrap_or(&empty);
        let mut changed = Map::new();
        for name in left.keys().chain(right.keys()) {
            let (l, r) = (left.get(name), right.get(name));
            if l.map(|v| names_a.normalize(v)) == r.map(|v| names_b.normalize(v)) {
                continue;
            }
            let mut sides = Map::new();
            for (side, value) in [("a", l), ("b", r)] {
                if let Some(value) = value {
                    sides.insert(side.to_owned(), value.clone());
                }
            }
            changed.insert(name.clone(), Value::Object(sides));
        }
        if !changed.is_empty() {
            out.insert(part.to_owned(), Value::Object(changed));
        }
    }
    Value::Object(out)
}

/// Replaces ids of the run by neutral names, so that two runs can be compared.
struct RunNormalizer<'a> {
    run: &'a str,
    /// Interrupt ids, numbered in the order they appear.
    interrupts: BTreeMap<String, usize>,
}

impl<'a> RunNormalizer<'a> {
    fn of(side: &Side<'a>) -> Self {
        Self {
            run: side.run_id,
            interrupts: BTreeMap::new(),
        }
    }

    /// The parts of an event that are compared.
    fn comparable_parts(&mut self, event: &Value) -> (Value, Value, Value) {
        let payload = self.normalize(&event["payload"]);
        (event["type"].clone(), event["nodeId"].clone(), payload)
    }

    fn normalize(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields
                .iter()
                .filter(|(name, _)| !TIME_KEYS.contains(&name.as_str()))
                .map(|(name, value)| {
                    let normalized = match value.as_str() {
                        Some(id) if name == "interruptId" => json!(self.ordinal(id)),
                        _ => self.normalize(value),
                    };
                    (name.clone(), normalized)
                })
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.normalize(item)).collect(),
            Value::String(text) if text.contains(self.run) => {
                json!(text.replace(self.run, "<run>"))
            }
            other => other.clone(),
        }
    }

    fn ordinal(&mut self, interrupt: &str) -> usize {
        let next = self.interrupts.len();
        *self.interrupts.entry(interrupt.to_owned()).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: usize, kind: &str, payload: Value) -> Value {
        json!({"sequence": seq, "type": kind, "nodeId": "n", "payload": payload})
    }

    fn side<'a>(run_id: &'a str, events: &'a [Value], snapshot: &'a Value) -> Side<'a> {
        Side {
            run_id,
            events,
            snapshot,
            ended: true,
        }
    }

    #[test]
    fn run_ids_and_times_do_not_count_as_differences() {
        let of = |run: &str, ms: u64, question: &str| {
            vec![
                event(0, "run.started", json!({"inputs": {"v": 1}})),
                event(
                    1,
                    "interrupt.requested",
                    json!({"key": format!("{run}:n:1"), "interruptId": question}),
                ),
                event(
                    2,
                    "node.completed",
                    json!({"durationMs": ms, "outputs": {"v": 1}}),
                ),
            ]
        };
        let (left, right) = (of("run-a", 1, "int-a"), of("run-b", 9, "int-b"));
        let state = json!({"status": "completed", "variables": {"v": 1}});
        let found = diff(
            &side("run-a", &left, &state),
            &side("run-b", &right, &state),
        );
        let expected = json!({"a": "run-a", "b": "run-b", "divergedAtSeq": null,
            "eventDiffs": [], "stateDiff": {}});
        assert_eq!(found, expected);
    }

    #[test]
    fn each_difference_is_listed_once_with_both_sides() {
        let left = [
            event(0, "run.started", json!({})),
            event(1, "node.completed", json!({"v": 1})),
        ];
        let right = [
            event(0, "run.started", json!({})),
            event(1, "node.completed", json!({"v": 2})),
            event(2, "run.completed", json!({})),
        ];
        let (was, is) = (
            json!({"status": "running", "variables": {"v": 1, "gone": true}}),
            json!({"status": "completed", "variables": {"v": 2}}),
        );
        let mut a = side("a", &left, &was);
        a.ended = false;
        let found = diff(&a, &side("b", &right, &is));
        assert_eq!(found["divergedAtSeq"], 1);
        let ops: Vec<_> = found["eventDiffs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| &d["op"])
            .collect();
        assert_eq!(ops, ["changed", "added"]);
        assert_eq!(found["eventDiffs"][1]["bEvent"], right[2]);
        assert_eq!(found["truncated"], true);
        assert_eq!(
            found["stateDiff"],
            json!({"status": {"a": "running", "b": "completed"},
                "variables": {"v": {"a": 1, "b": 2}, "gone": {"a": true}}})
        );
    }
}
