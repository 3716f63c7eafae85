//! Tools that the host offers to models.

use serde_json::{Value, json};
use tandem_record::conversation::ScheduleToolOperation;

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
        other => return schedule_tool(ScheduleToolOperation::of_tool(other)?),
    };
    Some(BuiltinTool {
        description,
        parameters,
    })
}

/// The tools for schedules of the current user: none has a target.
fn schedule_tool(operation: ScheduleToolOperation) -> Option<BuiltinTool> {
    let text = || json!({"type": "string"});
    let trigger = json!({"type": "object", "required": ["type"], "properties": {
        "type": {"enum": ["cron", "once"]},
        "expr": {"type": "string", "description": "Five fields of cron, for type cron"},
        "runAt": {"type": "string", "description": "A moment of ISO 8601, for type once"}}});
    let missed = json!({"type": "object", "required": ["policy"], "properties": {
        "policy": {"enum": ["skip", "catch_up"]},
        "maxRuns": {"type": "integer"}, "maxAgeSeconds": {"type": "integer"}}});
    let flag = json!({"type": "boolean"});
    let object = json!({"type": "object"});
    let (description, parameters) = match operation {
        ScheduleToolOperation::Create => (
            "Starts a flow for the current user at a time, or again and again.",
            json!({"type": "object", "required": ["flowId", "trigger"], "properties": {
                "flowId": text(), "trigger": trigger, "allowSessionBootstrap": flag,
                "onMissed": missed, "metadata": object, "input": {}}}),
        ),
        ScheduleToolOperation::Update => (
            "Changes a schedule of the current user.",
            json!({"type": "object", "required": ["scheduleId"], "properties": {
                "scheduleId": text(), "trigger": trigger, "allowSessionBootstrap": flag,
                "onMissed": missed, "metadata": object, "input": {}}}),
        ),
        ScheduleToolOperation::Cancel => (
            "Cancels a schedule of the current user.",
            json!({"type": "object", "required": ["scheduleId"],
                "properties": {"scheduleId": text()}}),
        ),
        ScheduleToolOperation::List => (
            "Lists the schedules of the current user.",
            json!({"type": "object", "properties": {
                "flowId": text(), "status": {"enum": ["active", "paused", "canceled", "completed"]}}}),
        ),
    };
    Some(BuiltinTool {
        description,
        parameters,
    })
}
