//! `core.subWorkflow`: another workflow as a child run.

use super::ParseContext;
use super::settings::{Setting, value};
use serde_json::Value;
use tandem_record::{Object, WorkflowId};

/// `outputAttestation` has no effect on a host that does not advertise it, as the protocol says.
pub(super) const SETTINGS: &[Setting] = &[
    value("workflowId"),
    value("waitForCompletion"),
    value("onChildFailure"),
    value("inputMapping"),
    value("outputMapping"),
    value("propagateCancellation"),
    value("memoryScopeIsolation"),
    value("outputAttestation"),
];

#[derive(Debug)]
pub(crate) struct SubWorkflow {
    pub(crate) workflow_id: WorkflowId,
    pub(crate) absorb_failure: bool,
    pub(crate) propagate_cancel: bool,
    /// Child variable ← parent variable.
    pub(crate) input_mapping: Vec<(String, String)>,
    /// Parent variable ← child variable.
    pub(crate) output_mapping: Vec<(String, String)>,
    /// The child starts with a memory of its own.
    pub(crate) isolated_memory: bool,
}

impl SubWorkflow {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let workflow_id = WorkflowId::from(cx.required_text(config, "workflowId")?);
        if !cx.flag(config, "waitForCompletion", true)? {
            return cx.bad(
                "waitForCompletion",
                "this host always waits for the child; remove the key or set it to true",
            );
        }
        let absorb_failure = match cx.text(config, "onChildFailure")?.as_deref() {
            None | Some("fail-parent") => false,
            // Another common host calls it `continue`.
            Some("absorb" | "continue") => true,
            Some(other) => {
                return cx.bad(
                    "onChildFailure",
                    format!("{other:?} is neither fail-parent nor absorb"),
                );
            }
        };
        Some(Self {
            workflow_id,
            absorb_failure,
            propagate_cancel: cx.flag(config, "propagateCancellation", true)?,
            input_mapping: mapping(config, "inputMapping", cx)?,
            output_mapping: mapping(config, "outputMapping", cx)?,
            isolated_memory: isolated_memory(config, cx)?,
        })
    }
}

/// Whether children start with an empty memory or, by default, share their parent's.
pub(super) fn isolated_memory(config: &Object, cx: &mut ParseContext<'_>) -> Option<bool> {
    match cx.text(config, "memoryScopeIsolation")?.as_deref() {
        None | Some("shared") => Some(false),
        Some("isolated") => Some(true),
        Some(other) => cx.bad(
            "memoryScopeIsolation",
            format!("{other:?} is not \"isolated\"; leave the key out to share the memory"),
        ),
    }
}

pub(super) fn mapping(
    config: &Object,
    key: &str,
    cx: &mut ParseContext<'_>,
) -> Option<Vec<(String, String)>> {
    let entries = match config.get(key) {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return cx.bad(key, "must map variable names to variable names"),
    };
    let mut pairs = Vec::with_capacity(entries.len());
    for (target, source) in entries {
        match source.as_str() {
            Some(source) => pairs.push((target.clone(), source.to_owned())),
            None => return cx.bad(&format!("{key}/{target}"), "must be a variable name"),
        }
    }
    Some(pairs)
}
