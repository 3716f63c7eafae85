//! Nodes that ask: approvals, questions, events from outside.

use super::ParseContext;
use jsonschema::Validator;
use serde_json::{Value, json};
use tandem_record::{NodeId, Object, RunId, RunStatus};

/// `core.approvalGate`.
#[derive(Debug)]
pub(crate) struct ApprovalGate {
    title: String,
    description: Option<String>,
    artifact: Object,
    /// What an edited artifact has to look like.
    pub(crate) artifact_schema: Option<Validator>,
    pub(crate) actions: Vec<String>,
    pub(crate) required: u32,
    pub(crate) majority: bool,
    pub(crate) approvers: Vec<String>,
    /// A signed link is not enough to decide.
    pub(crate) auth_required: bool,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) max_loopbacks: Option<u32>,
}

const ACTIONS: [&str; 5] = ["accept", "reject", "refine", "edit-accept", "ask"];
const AUTH_REQUIRED: &str = "openwop-interrupt-auth-required";

impl ApprovalGate {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let mut actions = texts(config, "actions", cx)?;
        if actions.is_empty() {
            actions = vec!["accept".to_owned(), "reject".to_owned()];
        }
        for action in &mut actions {
            // The older name of the same action.
            if action == "edit" {
                *action = "edit-accept".to_owned();
            }
            if !ACTIONS.contains(&action.as_str()) {
                return cx.bad("actions", format!("{action:?} is not an approval action"));
            }
        }
        let majority = match cx.text(config, "rejectionPolicy")?.as_deref() {
            None | Some("single-veto" | "first" | "any") => false,
            Some("majority") => true,
            Some(other) => {
                return cx.bad(
                    "rejectionPolicy",
                    format!("{other:?} is no rejection policy"),
                );
            }
        };
        let required = cx.whole(config, "requiredApprovals", 1)?.unwrap_or(1);
        let mut artifact = Object::new();
        let artifact_schema = match config.get("artifactSchema").map(jsonschema::validator_for) {
            None => None,
            Some(Ok(schema)) => Some(schema),
            Some(Err(e)) => return cx.bad("artifactSchema", format!("not a JSON Schema: {e}")),
        };
        for key in [
            "artifactId",
            "artifactType",
            "artifactData",
            "artifactSchema",
        ] {
            if let Some(value) = config.get(key) {
                artifact.insert(key.to_owned(), value.clone());
            }
        }
        let loopbacks = cx.whole(config, "maxLoopbackIterations", 1)?;
        Some(Self {
            title: cx
                .text(config, "title")?
                .unwrap_or_else(|| "Approval".to_owned()),
            description: cx.text(config, "description")?,
            artifact,
            artifact_schema,
            actions,
            required: u32::try_from(required).unwrap_or(u32::MAX),
            majority,
            approvers: texts(config, "approversList", cx)?,
            auth_required: cx.text(config, "profile")?.as_deref() == Some(AUTH_REQUIRED),
            timeout_ms: timeout(config, cx)?,
            max_loopbacks: loopbacks.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        })
    }

    /// What the approver is shown.
    pub(crate) fn data(&self, run: &RunId, node: &NodeId, inputs: &Object) -> Value {
        let text = |key: &str, fallback: String| {
            let given = self.artifact.get(key).and_then(Value::as_str);
            given.map_or(fallback, str::to_owned)
        };
        let mut data = json!({
            "artifactId": text("artifactId", format!("{run}:{node}")),
            "artifactType": text("artifactType", "approval".to_owned()),
            "title": self.title,
            "actions": self.actions,
            "requiredApprovals": self.required,
            "rejectionPolicy": if self.majority { "majority" } else { "single-veto" },
        });
        if let Some(description) = &self.description {
            data["description"] = json!(description);
        }
        if let Some(schema) = self.artifact.get("artifactSchema") {
            data["artifactSchema"] = schema.clone();
        }
        if !self.approvers.is_empty() {
            data["approversList"] = json!(self.approvers);
        }
        let port = inputs.get("artifact").cloned();
        let shown = self.artifact.get("artifactData").cloned().or(port);
        if let Some(shown) = shown {
            data["artifactData"] = shown;
        } else if !inputs.is_empty() {
            data["artifactData"] = json!(inputs);
        }
        data
    }
}

/// `core.clarificationGate`.
#[derive(Debug)]
pub(crate) struct ClarificationGate {
    pub(crate) questions: Vec<Question>,
    context: Option<String>,
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) id: String,
    document: Value,
    /// Without a schema the answer is a text.
    pub(crate) schema: Option<Validator>,
}

impl ClarificationGate {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let listed = config.get("questions").and_then(Value::as_array);
        let Some(listed) = listed.filter(|q| !q.is_empty()) else {
            return cx.bad("questions", "at least one question is required");
        };
        let mut questions = Vec::new();
        for (i, document) in listed.iter().enumerate() {
            let id = document
                .get("id")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let text = document
                .get("question")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if id.is_empty() || text.is_empty() {
                return cx.bad(&format!("questions/{i}"), "a question has an id and a text");
            }
            if questions.iter().any(|q: &Question| q.id == id) {
                return cx.bad(
                    &format!("questions/{i}/id"),
                    format!("{id:?} is asked twice"),
                );
            }
            let schema = match document.get("schema").map(jsonschema::validator_for) {
                None => None,
                Some(Ok(schema)) => Some(schema),
                Some(Err(e)) => {
                    let at = format!("questions/{i}/schema");
                    return cx.bad(&at, format!("not a usable JSON Schema: {e}"));
                }
            };
            questions.push(Question {
                id: id.to_owned(),
                document: document.clone(),
                schema,
            });
        }
        Some(Self {
            questions,
            context: cx.text(config, "contextType")?,
            timeout_ms: timeout(config, cx)?,
        })
    }

    pub(crate) fn questions(&self) -> Value {
        self.questions.iter().map(|q| q.document.clone()).collect()
    }

    pub(crate) fn data(&self) -> Value {
        let mut data = json!({"questions": self.questions()});
        if let Some(context) = &self.context {
            data["contextType"] = json!(context);
        }
        data
    }
}

/// `core.interrupt`: any other question.
#[derive(Debug)]
pub(crate) struct OpenInterrupt {
    pub(crate) kind: String,
    pub(crate) data: Value,
    pub(crate) schema: Option<Validator>,
    pub(crate) schema_document: Option<Value>,
    pub(crate) timeout_ms: Option<u64>,
}

impl OpenInterrupt {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let kind = cx.required_text(config, "kind")?;
        let data = config.get("data").cloned().unwrap_or_else(|| json!({}));
        let fits = match kind.as_str() {
            "external-event" => {
                data.get("eventType").is_some_and(Value::is_string)
                    && data.get("correlation").is_some_and(Value::is_object)
            }
            "custom" => data.get("customKind").is_some_and(Value::is_string),
            _ => {
                return cx.bad(
                    "kind",
                    format!("{kind:?} is not asked by core.interrupt (unsupported_interrupt_kind)"),
                );
            }
        };
        if !fits {
            let message = "external-event needs eventType and correlation; custom needs customKind";
            return cx.bad("data", message);
        }
        let schema = match config.get("resumeSchema").map(jsonschema::validator_for) {
            None => None,
            Some(Ok(schema)) => Some(schema),
            Some(Err(e)) => return cx.bad("resumeSchema", format!("not a JSON Schema: {e}")),
        };
        Some(Self {
            kind,
            data,
            schema,
            schema_document: config.get("resumeSchema").cloned(),
            timeout_ms: timeout(config, cx)?,
        })
    }
}

/// The run's status while a question of this kind is what it waits for.
pub(crate) fn waiting_status(kind: &str) -> RunStatus {
    match kind {
        "approval" | "low-confidence" | "conversation.exchange" => RunStatus::WaitingApproval,
        "external-event" => RunStatus::WaitingExternal,
        _ => RunStatus::WaitingInput,
    }
}

fn texts(config: &Object, key: &str, cx: &mut ParseContext<'_>) -> Option<Vec<String>> {
    match config.get(key) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            let texts = items.iter().filter_map(Value::as_str);
            Some(texts.map(str::to_owned).collect())
        }
        Some(_) => cx.bad(key, "must be a list of texts"),
    }
}

/// A deadline of zero would be over before anybody could answer.
fn timeout(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<u64>> {
    Some(cx.whole(config, "timeoutMs", 0)?.filter(|ms| *ms > 0))
}
