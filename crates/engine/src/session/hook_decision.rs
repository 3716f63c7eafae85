//! What hooks may answer. Anything else is malformed and counts as "continue".

use super::modality;
use serde_json::{Value, json};
use tandem_record::FlowId;
use tandem_record::conversation::Modality;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum BeforeLlm {
    Continue,
    SkipLlm {
        draft: Option<String>,
        structured: Option<Value>,
    },
    RouteFlow {
        flow: FlowId,
        input: Option<Value>,
    },
    End {
        reason: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum BeforeResponse {
    Continue,
    Cancel {
        reason: Option<String>,
    },
    Replace {
        reply: String,
        modality: Option<Modality>,
        structured: Option<Value>,
    },
}

impl BeforeLlm {
    pub(super) fn read(value: Option<&Value>) -> Result<Self, String> {
        let Some((action, value)) = action(value)? else {
            return Ok(Self::Continue);
        };
        Ok(match action {
            "continue" => Self::Continue,
            "skip_llm" => Self::SkipLlm {
                draft: optional_text(value, "draftReply")?,
                structured: optional_object(value, "structured")?,
            },
            "route_flow" => {
                let flow = optional_text(value, "flowId")?;
                Self::RouteFlow {
                    flow: FlowId::from(flow.ok_or("route_flow without flowId")?),
                    input: value.get("input").filter(|v| !v.is_null()).cloned(),
                }
            }
            "end" => Self::End {
                reason: optional_text(value, "reason")?,
            },
            other => return Err(format!("beforeLLM answered the unknown action {other}")),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Continue => json!({"action": "continue"}),
            Self::SkipLlm { .. } => json!({"action": "skip_llm"}),
            Self::RouteFlow { flow, .. } => json!({"action": "route_flow", "flowId": flow}),
            Self::End { reason } => json!({"action": "end", "reason": reason}),
        }
    }
}

impl BeforeResponse {
    pub(super) fn read(value: Option<&Value>) -> Result<Self, String> {
        let Some((action, value)) = action(value)? else {
            return Ok(Self::Continue);
        };
        Ok(match action {
            "continue" => Self::Continue,
            "cancel" => Self::Cancel {
                reason: optional_text(value, "reason")?,
            },
            "replace" => Self::Replace {
                reply: optional_text(value, "reply")?.ok_or("replace without reply")?,
                modality: optional_text(value, "modality")?
                    .map(|name| modality::read(&name).ok_or("modality is neither text nor voice"))
                    .transpose()?,
                structured: optional_object(value, "structured")?,
            },
            other => {
                return Err(format!(
                    "beforeResponse answered the unknown action {other}"
                ));
            }
        })
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Continue => json!({"action": "continue"}),
            Self::Cancel { reason } => json!({"action": "cancel", "reason": reason}),
            Self::Replace { reply, .. } => json!({"action": "replace", "reply": reply}),
        }
    }
}

/// The action of a decision with the decision itself; `None` when the hook has nothing to say.
fn action(value: Option<&Value>) -> Result<Option<(&str, &Value)>, String> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    match (value.is_object(), value.get("action")) {
        (true, Some(Value::String(action))) => Ok(Some((action, value))),
        (true, _) => Err("the hook answered an object without an action".to_owned()),
        (false, _) => Err("the hook answered something that is not an object".to_owned()),
    }
}

fn optional_text(value: &Value, field: &str) -> Result<Option<String>, String> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{field} is not a text")),
    }
}

fn optional_object(value: &Value, field: &str) -> Result<Option<Value>, String> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(object @ Value::Object(_)) => Ok(Some(object.clone())),
        Some(_) => Err(format!("{field} is not an object")),
    }
}
