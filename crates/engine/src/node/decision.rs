//! What a supervisor may decide. A decision with keys that its kind does not allow is refused: at
//! registration if the document contains it, otherwise when it arrives.

use serde_json::{Value, json};
use tandem_record::{Object, WorkflowId};

/// A parsed decision, with its original document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OrchestratorDecision {
    /// As it is published.
    pub(crate) document: Value,
    pub(crate) route: Route,
    pub(crate) confidence: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    NextWorker(Vec<WorkflowId>),
    AskUser {
        prompt: String,
    },
    /// Put to a person as an approval; the description of the loop calls it `escalate`.
    Approve {
        prompt: String,
    },
    Terminate,
}

/// Our own name for a decision that the protocol describes only in prose.
const ESCALATE: &str = "vendor.tandem.escalate";
const MAX_WORKERS: usize = 256;
const MAX_WORKER_ID_CHARS: usize = 256;

/// The key, and what is wrong with it.
pub(crate) type Fault = (String, String);

impl OrchestratorDecision {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        let Some(fields) = value.as_object() else {
            return fault("", "a decision is an object with a kind");
        };
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("");
        match kind {
            "next-worker" => {
                closed(fields, &["nextWorkerIds", "confidence"])?;
                Ok(Self {
                    route: Route::NextWorker(workers(fields)?),
                    confidence: confidence(fields)?,
                    document: value.clone(),
                })
            }
            "terminate" => {
                closed(fields, &["reason", "confidence", "successCriteria"])?;
                let reason = fields.get("reason").map(Value::as_str);
                if reason.is_some_and(|r| r.is_none_or(str::is_empty)) {
                    return fault("/reason", "must be a text that says something");
                }
                criteria(fields)?;
                Ok(Self {
                    route: Route::Terminate,
                    confidence: confidence(fields)?,
                    document: value.clone(),
                })
            }
            // The description of the loop has two more names for asking a person.
            "ask-user" | "clarify" => {
                closed(fields, &["prompt"])?;
                let prompt = prompt(fields)?;
                Ok(Self {
                    document: json!({"kind": "ask-user", "prompt": prompt}),
                    route: Route::AskUser { prompt },
                    confidence: None,
                })
            }
            "escalate" | ESCALATE => {
                closed(fields, &["prompt"])?;
                let prompt = prompt(fields)?;
                Ok(Self {
                    document: json!({"kind": ESCALATE, "prompt": prompt}),
                    route: Route::Approve { prompt },
                    confidence: None,
                })
            }
            other => fault("/kind", format!("{other:?} is not a kind of decision")),
        }
    }

    /// Reads a new decision. Recorded decisions from before this rule are still read.
    pub(crate) fn read_strict(value: &Value) -> Result<Self, Fault> {
        let decision = Self::read(value)?;
        let criteria = value.get("successCriteria").and_then(Value::as_array);
        let unnamed = |item: &Value| item.get("key").and_then(Value::as_str) == Some("");
        match criteria.and_then(|items| items.iter().position(unnamed)) {
            Some(i) => {
                let at = format!("/successCriteria/{i}/key");
                fault(&at, "must be a text that says something")
            }
            None => Ok(decision),
        }
    }

    /// A decision to end the run.
    pub(crate) fn terminate(reason: &str) -> Self {
        Self {
            document: json!({"kind": "terminate", "reason": reason}),
            route: Route::Terminate,
            confidence: None,
        }
    }
}

fn fault<T>(path: &str, message: impl Into<String>) -> Result<T, Fault> {
    Err((path.to_owned(), message.into()))
}

fn closed(fields: &Object, allowed: &[&str]) -> Result<(), Fault> {
    let stray = fields
        .keys()
        .find(|key| *key != "kind" && !allowed.contains(&key.as_str()));
    match stray {
        Some(key) => fault(&format!("/{key}"), "is not part of this kind of decision"),
        None => Ok(()),
    }
}

fn workers(fields: &Object) -> Result<Vec<WorkflowId>, Fault> {
    let listed = fields.get("nextWorkerIds").and_then(Value::as_array);
    let Some(listed) = listed.filter(|w| !w.is_empty() && w.len() <= MAX_WORKERS) else {
        let message = format!("names 1 to {MAX_WORKERS} workers");
        return fault("/nextWorkerIds", message);
    };
    let named = |(i, id): (usize, &Value)| {
        let fits = |id: &&str| (1..=MAX_WORKER_ID_CHARS).contains(&id.chars().count());
        match id.as_str().filter(fits) {
            Some(id) => Ok(WorkflowId::new(id)),
            None => fault(&format!("/nextWorkerIds/{i}"), "must be a workflow id"),
        }
    };
    listed.iter().enumerate().map(named).collect()
}

fn confidence(fields: &Object) -> Result<Option<f64>, Fault> {
    match fields.get("confidence") {
        None => Ok(None),
        Some(value) => match value.as_f64().filter(|c| (0.0..=1.0).contains(c)) {
            Some(confidence) => Ok(Some(confidence)),
            None => fault("/confidence", "must be a number from 0 to 1"),
        },
    }
}

fn prompt(fields: &Object) -> Result<String, Fault> {
    match fields.get("prompt").and_then(Value::as_str) {
        Some(prompt) if !prompt.is_empty() => Ok(prompt.to_owned()),
        _ => fault("/prompt", "is required: the question to the person"),
    }
}

fn criteria(fields: &Object) -> Result<(), Fault> {
    let Some(listed) = fields.get("successCriteria") else {
        return Ok(());
    };
    let fits = |item: &Value| {
        let known = item.as_object().is_some_and(|o| o.len() == 2);
        known
            && item.get("key").is_some_and(Value::is_string)
            && item.get("met").is_some_and(Value::is_boolean)
    };
    match listed.as_array() {
        Some(items) if items.iter().all(fits) => Ok(()),
        _ => fault("/successCriteria", "is a list of {key, met}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decision_kind_refuses_unknown_keys() {
        let table = [
            (json!({"kind": "next-worker", "nextWorkerIds": ["a"]}), ""),
            (
                json!({"kind": "next-worker", "nextWorkerIds": ["a"], "confidence": 0.0}),
                "",
            ),
            (
                json!({"kind": "next-worker", "nextWorkerIds": []}),
                "/nextWorkerIds",
            ),
            (
                json!({"kind": "next-worker", "nextWorkerIds": ["a", ""]}),
                "/nextWorkerIds/1",
            ),
            (
                json!({"kind": "next-worker", "nextWorkerIds": ["a"], "confidence": 1.5}),
                "/confidence",
            ),
            (
                json!({"kind": "next-worker", "nextWorkerIds": ["a"], "stray": 1}),
                "/stray",
            ),
            (json!({"kind": "terminate"}), ""),
            (json!({"kind": "terminate", "reason": ""}), "/reason"),
            (
                json!({"kind": "terminate", "successCriteria": [{"key": "k", "met": false}]}),
                "",
            ),
            (
                json!({"kind": "terminate", "successCriteria": [{"key": "k"}]}),
                "/successCriteria",
            ),
            (json!({"kind": "ask-user", "prompt": "?"}), ""),
            (json!({"kind": "ask-user"}), "/prompt"),
            (
                json!({"kind": "ask-user", "prompt": "?", "confidence": 0.5}),
                "/confidence",
            ),
            (json!({"kind": "guess"}), "/kind"),
            (json!("terminate"), ""),
        ];
        for (document, place) in table {
            let read = OrchestratorDecision::read(&document);
            match read {
                Ok(_) => assert_eq!(place, "", "{document} was accepted"),
                Err((path, _)) => {
                    assert!(path == place, "{document}: complained about {path:?}");
                }
            }
        }
        assert!(OrchestratorDecision::read(&json!("terminate")).is_err());
    }

    #[test]
    fn older_decision_names_are_published_under_current_names() {
        let published = |value| OrchestratorDecision::read(&value).map(|d| d.document);
        assert_eq!(
            published(json!({"kind": "clarify", "prompt": "?"})),
            Ok(json!({"kind": "ask-user", "prompt": "?"}))
        );
        assert_eq!(
            published(json!({"kind": "escalate", "prompt": "?"})),
            Ok(json!({"kind": "vendor.tandem.escalate", "prompt": "?"}))
        );
    }
}
