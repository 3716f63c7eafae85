//! Names in an agent's configuration: which are well formed, which are taken, which refer to nothing.

use super::{AgentSpec, RouterFallback, TALK_TO_HUMAN, UPDATE_MY_PROFILE, WORKFLOW_RUN};
use crate::definition::nearest;
use crate::object_reader::FieldProblems;
use crate::session::command_line::{ADMIN_COMMANDS, BUILTIN_COMMANDS, HELP};
use std::collections::BTreeSet;
use tandem_record::conversation::ScheduleToolOperation;

/// Tools of the host that no agent may redefine.
pub(crate) const RESERVED_TOOLS: [&str; 7] = [
    ScheduleToolOperation::Create.tool(),
    ScheduleToolOperation::Update.tool(),
    ScheduleToolOperation::Cancel.tool(),
    ScheduleToolOperation::List.tool(),
    TALK_TO_HUMAN,
    UPDATE_MY_PROFILE,
    WORKFLOW_RUN,
];
const MAX_NAME: usize = 128;

/// A name as one step of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

pub(super) fn bad_tool_name(name: &str) -> Option<&'static str> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.len() > MAX_NAME || !name.chars().all(fine) {
        return Some("a tool name has at most 128 letters, digits, '_', '-' and '.'");
    }
    None
}

pub(super) fn bad_command_name(name: &str) -> Option<&'static str> {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fine) {
        return Some("a command name has letters, digits, '_' and '-' only, without the slash");
    }
    None
}

/// The id of an agent comes before that of a flow in ids of workflows: without a dot in it, no two flows share one.
fn bad_agent_id(id: &str) -> Option<String> {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if id.is_empty() || id.len() > MAX_NAME || !id.chars().all(fine) {
        let rule =
            "the name of an agent's folder or file has at most 128 letters, digits, '_' and '-'";
        return Some(format!("{rule}, and '{id}' does not; rename it"));
    }
    None
}

/// Flow ids are part of run and workflow ids.
pub(super) fn bad_flow_id(name: &str) -> Option<&'static str> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '/');
    if name.is_empty() || name.len() > MAX_NAME || name.contains(bad) {
        return Some("a flow id has at most 128 bytes and contains no space, ':' or '/'");
    }
    None
}

pub(super) fn is_removable_command(name: &str) -> bool {
    name != HELP && (BUILTIN_COMMANDS.contains(&name) || ADMIN_COMMANDS.contains(&name))
}

/// The rules that connect the parts of an agent.
pub(super) fn check(spec: &AgentSpec, problems: &FieldProblems) {
    if let Some(problem) = bad_agent_id(&spec.agent_id) {
        problems.report("", problem);
    }
    tools(spec, problems);
    flow_tools(spec, problems);
    router(spec, problems);
    command_flows(spec, problems);
    schedules(spec, problems);
}

fn tools(spec: &AgentSpec, problems: &FieldProblems) {
    let mut seen = BTreeSet::new();
    for (i, tool) in spec.tools.iter().enumerate() {
        let at = format!("/tools/{i}/name");
        if RESERVED_TOOLS.contains(&tool.name.as_str()) {
            problems.report(at, "is the name of a tool of the host");
        } else if !tool.name.is_empty() && !seen.insert(&tool.name) {
            problems.report(at, "another tool has this name");
        }
    }
}

fn flow_tools(spec: &AgentSpec, problems: &FieldProblems) {
    let mut seen = BTreeSet::new();
    for (flow_id, flow) in &spec.flows {
        let Some(tool) = &flow.tool else { continue };
        let at = format!("/flows/{}/asTool", escaped(flow_id));
        let alias = tool.alias.as_str();
        if bad_tool_name(alias).is_some() && alias == flow_id {
            problems.report(at.as_str(), "this flow id is no tool name; give an alias");
        }
        if spec.tool(alias).is_some() {
            problems.report(at.as_str(), format!("{alias:?} is also the name of a tool"));
        } else if RESERVED_TOOLS.contains(&alias) {
            problems.report(at.as_str(), format!("{alias:?} is a tool of the host"));
        }
        if !seen.insert(alias) {
            problems.report(at, format!("another flow is offered as {alias:?} too"));
        }
    }
}

fn router(spec: &AgentSpec, problems: &FieldProblems) {
    let Some(router) = &spec.flow_router else {
        return;
    };
    if spec.flows.is_empty() {
        problems.report("/flowRouter", "needs flows, and the agent has none");
    }
    if let RouterFallback::Flow(flow_id) = router.fallback() {
        known_flow(spec, flow_id, "/flowRouter/fallback", problems);
    }
}

fn command_flows(spec: &AgentSpec, problems: &FieldProblems) {
    for (name, command) in &spec.commands.own {
        if let Some(flow_id) = &command.flow {
            let at = format!("/commands/{}/flow", escaped(name));
            known_flow(spec, flow_id, &at, problems);
        }
    }
}

fn schedules(spec: &AgentSpec, problems: &FieldProblems) {
    for (key, schedule) in &spec.schedules {
        let at = format!("/schedules/{}/flowId", escaped(key));
        if let Some(flow) = &schedule.flow_id {
            known_flow(spec, flow.as_str(), &at, problems);
        }
    }
}

pub(super) fn known_flow(spec: &AgentSpec, flow_id: &str, at: &str, problems: &FieldProblems) {
    if spec.flows.contains_key(flow_id) {
        return;
    }
    let short: String = flow_id.chars().take(MAX_NAME).collect();
    let message = match nearest(&short, spec.flows.keys().map(String::as_str)) {
        Some(meant) => format!("there is no flow {short:?}; did you mean `{meant}`?"),
        None => format!("there is no flow {short:?}"),
    };
    problems.report(at, message);
}
