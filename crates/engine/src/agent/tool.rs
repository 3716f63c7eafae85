//! The tools of an agent.

use super::names;
use crate::flow::AuthorSchema;
use crate::object_reader::ObjectReader;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tandem_schema::Budget;

const MAX_TOOLS: usize = 200;

#[derive(Debug)]
pub struct AgentTool {
    pub name: String,
    pub description: Option<String>,
    pub parameters: Option<AuthorSchema>,
    pub kind: AgentToolKind,
    pub has_before: bool,
    pub has_after: bool,
    /// May be called again with the same idempotency key after an unknown outcome.
    pub idempotent: bool,
    pub approval: ToolApproval,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentToolKind {
    /// A function of the author.
    Handler,
    /// Stores its calls and answers a fixed value. The first calls may fail.
    Record {
        returns: Value,
        fail_times: u32,
    },
    Http {
        url: String,
    },
}

/// Whether the model's call of a tool waits for somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolApproval {
    #[default]
    None,
    User,
    Admin,
    /// A function of the arguments decides.
    Predicate,
}

pub(super) fn tools(config: &ObjectReader<'_>, budget: &mut Budget) -> Vec<AgentTool> {
    let tools = config.objects("tools", MAX_TOOLS).into_iter();
    tools.map(|tool| read(&tool, budget)).collect()
}

fn read(tool: &ObjectReader<'_>, budget: &mut Budget) -> AgentTool {
    let name = tool.required_text("name");
    if let Some(why) = names::bad_tool_name(&name) {
        tool.report("name", why);
    }
    let parameters = tool.schema("parameters", budget);
    AgentTool {
        name,
        description: tool.text("description"),
        parameters: parameters.map(|(source, compiled)| AuthorSchema::new(source, compiled)),
        kind: kind(tool),
        has_before: tool.function("before"),
        has_after: tool.function("after"),
        idempotent: tool.flag("idempotent").unwrap_or(true),
        approval: approval(tool),
    }
}

fn kind(tool: &ObjectReader<'_>) -> AgentToolKind {
    let kind = tool.choice("kind", &[("record", "record"), ("http", "http")]);
    let handler = tool.function("handler");
    match kind {
        Some(_) if handler => {
            tool.report("handler", "a tool has a kind or a handler, not both");
            AgentToolKind::Handler
        }
        Some("http") => AgentToolKind::Http {
            url: match tool.get("url") {
                None => tool.required_text("url"),
                Some(_) => tool.http_url("url").unwrap_or_default(),
            },
        },
        Some(_) => AgentToolKind::Record {
            returns: tool.get("returns").cloned().unwrap_or_default(),
            fail_times: tool.integer("failTimes", 0..=1_000_000).unwrap_or(0) as u32,
        },
        None => {
            let neither = tool.get("kind").is_none() && tool.get("handler").is_none();
            if neither {
                tool.report("handler", "is required for a tool without a kind");
            }
            AgentToolKind::Handler
        }
    }
}

fn approval(tool: &ObjectReader<'_>) -> ToolApproval {
    if tool.get("approval").is_some_and(crate::flow::is_function) {
        return ToolApproval::Predicate;
    }
    let among = [("user", ToolApproval::User), ("admin", ToolApproval::Admin)];
    tool.choice("approval", &among).unwrap_or_default()
}
