//! Commands as users type them: `/name arguments`.

use super::command_args;
use crate::flow::AuthorSchema;
use serde_json::Value;

pub const HELP: &str = "help";
/// Commands every agent has.
pub const BUILTIN_COMMANDS: [&str; 7] =
    [HELP, "reset", "usage", "text", "voice", "mirror", "dynamic"];
/// Commands of the chat adapter, there when the agent has `adminAuth`.
pub const ADMIN_COMMANDS: [&str; 5] = ["takeover", "handback", "escalations", "resolve", "proxy"];

/// A text that is a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine<'a> {
    /// In lower case, without the slash.
    pub name: String,
    /// The rest of the text, trimmed.
    pub args: &'a str,
}

/// Arguments that do not fit the schema of their command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadArguments {
    /// The answer to the user.
    pub usage: String,
    pub problems: Vec<String>,
}

impl<'a> CommandLine<'a> {
    /// Absent when the text is no command. `/` alone is none.
    pub fn parse(text: &'a str) -> Option<Self> {
        let line = text.trim().strip_prefix('/')?;
        let end = line.find(char::is_whitespace).unwrap_or(line.len());
        let (name, args) = line.split_at(end);
        (!name.is_empty()).then(|| Self {
            name: name.to_lowercase(),
            args: args.trim(),
        })
    }

    /// The action that an admin needs the right for.
    pub fn admin_action(&self) -> String {
        let action = match self.name.as_str() {
            "takeover" => "hitl.takeover.start",
            "handback" => "hitl.takeover.end",
            "resolve" => "hitl.escalation.resolve",
            "escalations" => "hitl.escalation.view",
            "proxy" if self.first_word() == "stop" => "hitl.proxy.stop",
            name => return format!("command.{name}"),
        };
        action.to_owned()
    }

    pub(super) fn first_word(&self) -> &'a str {
        self.args.split_whitespace().next().unwrap_or_default()
    }

    /// The arguments as an object: JSON, or `key=value` pairs and words in the order of the schema's
    /// properties. Values of a schema that lives in a realm are validated there.
    pub fn arguments(&self, schema: &AuthorSchema) -> Result<Value, BadArguments> {
        command_args::parse(self.args, schema).map_err(|problems| BadArguments {
            usage: command_args::usage(&self.name, schema),
            problems,
        })
    }
}
