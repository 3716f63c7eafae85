//! Commands of users and admins: `/help`, `/reset`, those of the agent, and those of the desk.

use super::command_line::{ADMIN_COMMANDS, BUILTIN_COMMANDS, CommandLine, HELP};
use super::draft::Draft;
use super::turn::Next;
use crate::agent::CommandAccess;
use serde_json::Value;
use tandem_record::FlowId;
use tandem_record::conversation::{
    CodeCall, CodeOutcome, FlowOrigin, SessionEnd, SessionEventBody as Body, SessionWork,
    TurnCause, WorkPurpose,
};

const UNKNOWN: &str = "Unknown command. Try /help";
const BUSY: &str = "Another flow is active. Finish it first.";
/// Starts a flow by its id, where the agent allows it.
const FLOW: &str = "flow";

/// A command as it was written, with its text.
pub(super) struct WrittenCommand {
    pub(super) text: String,
    /// The word that named the session, where an admin acts on another's.
    target: Option<String>,
}

impl WrittenCommand {
    pub(super) fn line(&self) -> Option<CommandLine<'_>> {
        CommandLine::parse(&self.text)
    }

    /// Whether a word of it named the session.
    pub(super) fn names_target(&self) -> bool {
        self.target.is_some()
    }

    /// The line without the word that named the session.
    pub(super) fn untargeted(&self) -> Option<CommandLine<'_>> {
        let mut line = self.line()?;
        if let Some(target) = &self.target
            && let Some(rest) = line.args.strip_prefix(target.as_str())
        {
            line.args = rest.trim_start();
        }
        Some(line)
    }
}

impl Draft<'_> {
    pub(super) fn written_command(&self) -> WrittenCommand {
        let turn = self.turn();
        let target = match &turn.cause {
            TurnCause::AdminCommand { target, .. } => Some(target.clone()),
            _ => None,
        };
        // Only typed text is a command.
        let text = turn.cause.message().map_or("", |m| m.body.as_str());
        WrittenCommand {
            text: text.to_owned(),
            target,
        }
    }

    pub(super) fn command_gate(&mut self) -> Next {
        let written = self.written_command();
        let Some(line) = written.line() else {
            return Next::Listen;
        };
        let is_of_user = !matches!(self.turn().cause, TurnCause::AdminCommand { .. });
        if is_of_user && self.goes_to_human(&written.text) {
            return Next::Listen;
        }
        self.emit(Body::CommandHandled {
            name: line.name.clone(),
        });
        match self.is_admin_command(&line.name) {
            true => self.authorize_command(&line),
            false => self.run_command(&written),
        }
    }

    /// Whether a command needs an admin.
    pub(super) fn is_admin_command(&self, name: &str) -> bool {
        let commands = &self.cx.agent.commands;
        match commands.own.get(name) {
            Some(own) => own.access == CommandAccess::Admin,
            None => self.has_desk_command(name),
        }
    }

    /// Whether the desk's own command of this name is there.
    pub(super) fn has_desk_command(&self, name: &str) -> bool {
        let commands = &self.cx.agent.commands;
        self.cx.agent.admin_auth.is_some()
            && SERVED_ADMIN_COMMANDS.contains(&name)
            && ADMIN_COMMANDS.contains(&name)
            && !commands.removed.contains(name)
            && !commands.own.contains_key(name)
    }

    /// Carries out a command that the caller may use.
    pub(super) fn run_command(&mut self, written: &WrittenCommand) -> Next {
        let Some(line) = written.line() else {
            return Next::DONE;
        };
        let commands = &self.cx.agent.commands;
        if let Some(own) = commands.own.get(&line.name) {
            return match own.flow.clone() {
                Some(flow) => self.start_by_command(&FlowId::from(flow)),
                None => self.call_command(written),
            };
        }
        if commands.removed.contains(&line.name) {
            return self.answer_command(UNKNOWN);
        }
        match line.name.as_str() {
            HELP => self.help(),
            "reset" => {
                self.emit(Body::SessionEndRequested {
                    reason: SessionEnd::Reset,
                });
                self.answer_command("The conversation starts again.")
            }
            "usage" => {
                let (count, tokens) = (self.session.message_count, self.session.tokens);
                let text = format!("{count} messages and {tokens} tokens in this conversation.");
                self.answer_command(&text)
            }
            name @ ("text" | "voice" | "mirror" | "dynamic") => {
                self.set_reply_format(name);
                self.answer_command(&format!("Replies are now: {name}."))
            }
            FLOW if self.cx.agent.flow_command => {
                let id = line.args.split_whitespace().next().unwrap_or_default();
                match self.cx.agent.flows.contains_key(id) {
                    true => self.start_by_command(&FlowId::from(id)),
                    false => self.answer_command("There is no such flow."),
                }
            }
            name if self.has_desk_command(name) => self.run_desk_command(written),
            _ => self.answer_command(UNKNOWN),
        }
    }

    fn start_by_command(&mut self, flow: &FlowId) -> Next {
        if self.session.is_occupied() {
            self.emit(Body::FlowStartRefused {
                reason: "flow_active".to_owned(),
            });
            return self.answer_command(BUSY);
        }
        let started = self.start_flow(flow, None, FlowOrigin::Command);
        started.unwrap_or(Next::DONE)
    }

    /// The text of `/help` for a caller who may use these admin commands.
    pub(super) fn help_text(&self, admin: &[String]) -> String {
        let commands = &self.cx.agent.commands;
        let builtins = BUILTIN_COMMANDS.iter().filter(|name| {
            !commands.removed.contains(**name) && !commands.own.contains_key(**name)
        });
        let mut lines: Vec<String> = builtins
            .map(|name| format!("/{name} – {}", builtin_description(name)))
            .collect();
        let is_listed =
            |name: &str| !self.is_admin_command(name) || admin.iter().any(|a| a == name);
        for (name, command) in commands.own.iter().filter(|(name, _)| is_listed(name)) {
            let description = command.description.as_deref().unwrap_or("");
            lines.push(format!("/{name} – {description}"));
        }
        let desk = ADMIN_COMMANDS
            .iter()
            .filter(|name| self.has_desk_command(name));
        for name in desk.filter(|name| is_listed(name)) {
            lines.push(format!("/{name} – {}", builtin_description(name)));
        }
        lines.join("\n")
    }

    /// All commands that need an admin.
    pub(super) fn admin_commands(&self) -> Vec<String> {
        let own = self.cx.agent.commands.own.keys();
        let own = own.filter(|name| self.is_admin_command(name)).cloned();
        let desk = ADMIN_COMMANDS
            .iter()
            .filter(|name| self.has_desk_command(name));
        own.chain(desk.map(|name| (*name).to_owned())).collect()
    }

    fn call_command(&mut self, written: &WrittenCommand) -> Next {
        let (Some(line), Some(rest)) = (written.line(), written.untargeted()) else {
            return Next::DONE;
        };
        let own = self.cx.agent.commands.own.get(&line.name);
        let args = match own.and_then(|command| command.args.as_ref()) {
            // The word that named the session may be an argument of the command too.
            Some(schema) => match rest.arguments(schema).or_else(|_| line.arguments(schema)) {
                Ok(args) => args,
                Err(bad) => return self.answer_command(&bad.usage),
            },
            None => Value::String(rest.args.to_owned()),
        };
        let call = CodeCall {
            path: format!("commands.{}.handler", line.name),
            args: vec![args],
            timeout_ms: self.cx.agent.timeouts.tool_ms,
        };
        let purpose = WorkPurpose::Command { name: line.name };
        self.request(purpose, SessionWork::Code(call));
        Next::Wait
    }

    /// The handler of a command returned. What it sent was sent beside the response.
    pub(super) fn finish_command(&mut self, name: &str, done: &CodeOutcome) -> Next {
        let taken = self.follow_takeover_write();
        match (&done.error, &done.value) {
            (Some(error), _) => {
                let reason = format!("command {name}: {}", error.message);
                self.emit(Body::ResponseFailed {
                    stage: "command".to_owned(),
                    reason,
                    fatal: true,
                });
                let text = self.cx.agent.texts.fallback_reply.clone();
                self.answer_command(&text);
            }
            (None, Some(Value::String(text))) if !text.trim().is_empty() => {
                self.answer_command(&text.clone());
            }
            _ => {}
        }
        taken
    }
}

/// Commands of the desk that this host carries out.
const SERVED_ADMIN_COMMANDS: [&str; 5] =
    ["takeover", "handback", "escalations", "resolve", "proxy"];

fn builtin_description(name: &str) -> &'static str {
    match name {
        "help" => "lists the commands",
        "reset" => "starts a new conversation",
        "usage" => "shows how much was written",
        "text" => "replies as text",
        "voice" => "replies as speech",
        "mirror" => "replies as you write",
        "dynamic" => "lets the agent choose",
        "takeover" => "lets you speak with the user: /takeover [user]",
        "handback" => "lets the agent speak again: /handback [user] [note]",
        "escalations" => "lists what waits for a decision",
        "resolve" => "decides: /resolve <escalation> approve|reject [message]",
        "proxy" => "ends a bridge: /proxy stop [#id]",
        _ => "",
    }
}
