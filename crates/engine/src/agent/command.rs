//! The commands of an agent: its own, and the builtins it keeps.

use super::names;
use crate::flow::AuthorSchema;
use crate::object_reader::{FieldProblems, ObjectReader};
use crate::session::command_line::{BUILTIN_COMMANDS, HELP};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tandem_schema::Budget;

const MAX_COMMANDS: usize = 200;

#[derive(Debug, Default)]
pub struct AgentCommands {
    /// Commands of the author, by their name in lower case. They come before builtins.
    pub own: BTreeMap<String, CommandSpec>,
    /// Commands that `false` removed.
    pub removed: BTreeSet<String>,
}

#[derive(Debug)]
pub struct CommandSpec {
    pub description: Option<String>,
    pub access: CommandAccess,
    pub args: Option<AuthorSchema>,
    /// The flow that the command starts, where it has no handler.
    pub flow: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandAccess {
    #[default]
    Public,
    Admin,
}

pub(super) fn commands(
    config: &ObjectReader<'_>,
    problems: &FieldProblems,
    budget: &mut Budget,
) -> AgentCommands {
    let mut commands = AgentCommands::default();
    for (key, value) in config.entries("commands", MAX_COMMANDS) {
        let at = format!("{}/{}", config.path("commands"), names::escaped(key));
        let name = key.to_lowercase();
        if let Some(why) = names::bad_command_name(&name) {
            problems.report(at.as_str(), why);
        }
        if name == HELP {
            problems.report(
                at.as_str(),
                "the command help can be neither replaced nor removed",
            );
            continue;
        }
        if *value == Value::Bool(false) {
            if !names::is_removable_command(&name) {
                let known = BUILTIN_COMMANDS.join(", ");
                let message = format!("there is no such builtin to remove; builtins are {known}");
                problems.report(at.as_str(), message);
            }
            commands.removed.insert(name);
            continue;
        }
        let Some(command) = ObjectReader::new(value, at.as_str(), problems) else {
            continue;
        };
        let command = read(&command, budget);
        if commands.own.insert(name, command).is_some() {
            problems.report(at, "another command has this name in other letters");
        }
    }
    commands
}

fn read(command: &ObjectReader<'_>, budget: &mut Budget) -> CommandSpec {
    let flow = command.text("flow");
    match (command.get("handler"), &flow) {
        (None, None) => command.report("handler", "is required"),
        (Some(_), Some(_)) => command.report("flow", "a command has a handler or a flow, not both"),
        (Some(_), None) | (None, Some(_)) => {}
    }
    command.function("handler");
    let access = [
        ("public", CommandAccess::Public),
        ("admin", CommandAccess::Admin),
    ];
    let args = command.schema("args", budget);
    CommandSpec {
        description: command.text("description"),
        access: command.choice("access", &access).unwrap_or_default(),
        args: args.map(|(source, compiled)| AuthorSchema::new(source, compiled)),
        flow,
    }
}
