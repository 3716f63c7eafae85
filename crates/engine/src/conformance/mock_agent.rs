//! `core.conformance.mock-agent`: an agent that emits the events of its configuration. Unknown keys
//! are refused at every level.

use crate::definition::admission::{Fault, nulls};
use crate::node::settings::{Setting, value};
use crate::node::supervisor::{MIN_AGENT_ID_CHARS, agent_id, fraction};
use crate::node::{ParseContext, whole_number};
use serde_json::Value;
use tandem_record::{ErrorInfo, Object};

#[derive(Debug)]
pub(crate) struct MockAgent {
    pub(crate) agent_id: Option<String>,
    pub(crate) reasoning: Option<Reasoning>,
    pub(crate) tools: Vec<ToolCall>,
    pub(crate) handoff: Option<MockHandoff>,
    pub(crate) decision: Option<MockDecision>,
}

#[derive(Debug)]
pub(crate) struct Reasoning {
    pub(crate) text: String,
    pub(crate) chunks: Vec<String>,
    pub(crate) token_count: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    pub(crate) inputs: Option<Value>,
    pub(crate) outcome: Option<Value>,
    pub(crate) error: Option<ErrorInfo>,
    pub(crate) duration_ms: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct MockHandoff {
    pub(crate) to: String,
    pub(crate) reason: Option<String>,
    pub(crate) context: Option<Value>,
}

#[derive(Debug)]
pub(crate) struct MockDecision {
    pub(crate) decision: Value,
    pub(crate) confidence: Option<f64>,
    pub(crate) reasoning: Option<String>,
}

/// Nested values are checked where they are read.
pub(super) const SETTINGS: &[Setting] = &[
    value("agentId"),
    value("mockReasoning"),
    value("mockToolCalls"),
    value("mockHandoff"),
    value("mockDecision"),
    value("mockConfidence"),
];

impl MockAgent {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let confidence = fraction(config, "mockConfidence", cx)?;
        let decision = match config.get("mockDecision") {
            None => confidence.map(|confidence| MockDecision {
                decision: serde_json::json!({"kind": "mock"}),
                confidence: Some(confidence),
                reasoning: None,
            }),
            Some(value) => {
                let mut decision = read_decision(value, cx)?;
                decision.confidence = decision.confidence.or(confidence);
                Some(decision)
            }
        };
        Some(Self {
            agent_id: agent_id(config, cx)?,
            reasoning: reasoning(config, cx)?,
            tools: tools(config, cx)?,
            handoff: handoff(config, cx)?,
            decision,
        })
    }
}

fn closed(fields: &Object, at: &str, known: &[&str], cx: &mut ParseContext<'_>) -> Option<()> {
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(stray) => cx.bad(&format!("{at}{stray}"), "is not a key of this node"),
        None => Some(()),
    }
}

fn object<'v>(value: &'v Value, at: &str, cx: &mut ParseContext<'_>) -> Option<&'v Object> {
    match value.as_object() {
        Some(fields) => Some(fields),
        None => cx.bad(at, "must be an object"),
    }
}

/// A text at `key` of a nested object; an error is reported with the outer path.
fn text(
    fields: &Object,
    at: &str,
    key: &str,
    required: bool,
    cx: &mut ParseContext<'_>,
) -> Option<Option<String>> {
    match fields.get(key) {
        None if !required => Some(None),
        Some(Value::String(text)) if !text.is_empty() || !required => Some(Some(text.clone())),
        _ => cx.bad(&format!("{at}/{key}"), "must be a text"),
    }
}

fn whole(fields: &Object, at: &str, key: &str, cx: &mut ParseContext<'_>) -> Option<Option<u64>> {
    match fields.get(key) {
        None => Some(None),
        Some(value) => match whole_number(value) {
            Some(n) => Some(Some(n)),
            None => cx.bad(&format!("{at}/{key}"), "must be a whole number, 0 or more"),
        },
    }
}

fn reasoning(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<Reasoning>> {
    let at = "mockReasoning";
    let value = match config.get(at) {
        None | Some(Value::Bool(false)) => return Some(None),
        Some(Value::Bool(true)) => {
            return Some(Some(Reasoning {
                text: "The mock agent thought about it.".to_owned(),
                chunks: Vec::new(),
                token_count: None,
            }));
        }
        Some(value) => value,
    };
    let fields = object(value, at, cx)?;
    let known = ["summary", "trace", "tokenCount", "streamChunks"];
    closed(fields, "mockReasoning/", &known, cx)?;
    if !fields.get("summary").is_some_and(Value::is_string) {
        return cx.bad("mockReasoning/summary", "must be a text");
    }
    let summary = text(fields, at, "summary", false, cx)?.unwrap_or_default();
    text(fields, at, "trace", false, cx)?;
    let chunks = match fields.get("streamChunks") {
        None => Vec::new(),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            let texts = items.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        Some(_) => return cx.bad("mockReasoning/streamChunks", "must be a list of texts"),
    };
    let text = if chunks.is_empty() {
        summary
    } else {
        chunks.concat()
    };
    Some(Some(Reasoning {
        text,
        chunks,
        token_count: whole(fields, at, "tokenCount", cx)?,
    }))
}

fn tools(config: &Object, cx: &mut ParseContext<'_>) -> Option<Vec<ToolCall>> {
    let listed = match config.get("mockToolCalls") {
        None => return Some(Vec::new()),
        // The size of the document limits their number.
        Some(Value::Array(listed)) => listed,
        Some(_) => return cx.bad("mockToolCalls", "must be a list of calls"),
    };
    let read = |(i, value): (usize, &Value)| {
        let at = format!("mockToolCalls/{i}");
        let fields = object(value, &at, cx)?;
        let known = ["toolId", "arguments", "result", "error", "durationMs"];
        closed(fields, &format!("{at}/"), &known, cx)?;
        let error = tool_error(fields, &at, cx)?;
        Some(ToolCall {
            tool: tool_id(fields, &at, cx)?,
            inputs: fields.get("arguments").cloned(),
            // A failed call has no result, whatever the configuration says.
            outcome: fields.get("result").filter(|_| error.is_none()).cloned(),
            error,
            duration_ms: whole(fields, &at, "durationMs", cx)?,
        })
    };
    listed.iter().enumerate().map(read).collect()
}

/// Any text, also an empty one.
fn tool_id(fields: &Object, at: &str, cx: &mut ParseContext<'_>) -> Option<String> {
    match fields.get("toolId") {
        Some(Value::String(id)) => Some(id.clone()),
        _ => cx.bad(&format!("{at}/toolId"), "must be a text"),
    }
}

fn tool_error(fields: &Object, at: &str, cx: &mut ParseContext<'_>) -> Option<Option<ErrorInfo>> {
    let Some(value) = fields.get("error") else {
        return Some(None);
    };
    let at = format!("{at}/error");
    let fields = object(value, &at, cx)?;
    closed(
        fields,
        &format!("{at}/"),
        &["error", "message", "details"],
        cx,
    )?;
    let code = text(fields, &at, "error", true, cx)??;
    let message = text(fields, &at, "message", true, cx)??;
    let mut error = ErrorInfo::new(code, message);
    error.details = fields.get("details").cloned();
    Some(Some(error))
}

fn handoff(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<MockHandoff>> {
    let at = "mockHandoff";
    let Some(value) = config.get(at) else {
        return Some(None);
    };
    let fields = object(value, at, cx)?;
    closed(
        fields,
        "mockHandoff/",
        &["toAgentId", "reason", "context"],
        cx,
    )?;
    let to = text(fields, at, "toAgentId", true, cx)??;
    if to.chars().count() < MIN_AGENT_ID_CHARS {
        let message = format!("has at least {MIN_AGENT_ID_CHARS} characters");
        return cx.bad("mockHandoff/toAgentId", message);
    }
    Some(Some(MockHandoff {
        to,
        reason: text(fields, at, "reason", false, cx)?,
        context: fields.get("context").cloned(),
    }))
}

fn read_decision(value: &Value, cx: &mut ParseContext<'_>) -> Option<MockDecision> {
    let at = "mockDecision";
    let fields = object(value, at, cx)?;
    closed(
        fields,
        "mockDecision/",
        &["decision", "confidence", "reasoning"],
        cx,
    )?;
    let Some(decision) = fields.get("decision") else {
        return cx.bad("mockDecision/decision", "decision is required");
    };
    let confidence = match fields.get("confidence") {
        None => None,
        Some(value) => match value.as_f64().filter(|n| (0.0..=1.0).contains(n)) {
            Some(n) => Some(n),
            None => return cx.bad("mockDecision/confidence", "must be a number from 0 to 1"),
        },
    };
    Some(MockDecision {
        decision: decision.clone(),
        confidence,
        reasoning: text(fields, at, "reasoning", false, cx)?,
    })
}

/// What registration refuses although earlier versions accepted it.
pub(super) fn config_faults(config: &Object) -> Vec<Fault> {
    let mut faults = nulls(config, "");
    let calls = config.get("mockToolCalls").and_then(Value::as_array);
    for (i, call) in calls.into_iter().flatten().enumerate() {
        if call
            .pointer("/error/details")
            .is_some_and(|d| !d.is_object())
        {
            let at = format!("/mockToolCalls/{i}/error/details");
            faults.push((at, "must be an object".to_owned()));
        }
    }
    faults
}
