//! Tools that the host offers to models.

use serde_json::{Value, json};

pub const TALK_TO_HUMAN: &str = "talk_to_human";
pub const UPDATE_MY_PROFILE: &str = "update_my_profile";
pub const WORKFLOW_RUN: &str = "workflow.run";

/// A tool of the host as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltinTool {
    pub description: &'static str,
    pub parameters: Value,
}

/// The description of a tool of the host.
pub fn builtin_tool(name: &str) -> Option<BuiltinTool> {
    let text = || json!({"type": "string"});
    let (description, parameters) = match name {
        TALK_TO_HUMAN => (
            "Calls a person to take care of the user.",
            json!({"type": "object", "properties": {"reason": text()}}),
        ),
        UPDATE_MY_PROFILE => (
            "Stores the name or the preferences that the user told about themselves.",
            json!({"type": "object", "properties": {
                "displayName": text(), "preferences": {"type": "object"}}}),
        ),
        WORKFLOW_RUN => (
            "Starts a workflow.",
            json!({"type": "object", "required": ["workflowId"], "properties": {
                "workflowId": text(), "input": {}}}),
        ),
        _ => return None,
    };
    Some(BuiltinTool {
        description,
        parameters,
    })
}
