//! Commands of users: `/help`, `/reset` and those of the agent.

use super::admin_auth::{self, AdminSignals, ChatSignal, ResolvedActor};
use super::command_line::{BUILTIN_COMMANDS, CommandLine, HELP};
use super::draft::Draft;
use super::turn::Next;
use crate::agent::CommandAccess;
use serde_json::Value;
use tandem_record::conversation::{
    AuthorizationDecision, CodeCall, CodeOutcome, SessionEnd, SessionEventBody as Body,
    SessionWork, WorkPurpose,
};

const UNKNOWN: &str = "Unknown command. Try /help";
const DENIED: &str = "You cannot use this command.";

impl Draft<'_> {
    pub(super) fn command_gate(&mut self) -> Next {
        let text = self.turn().text().to_owned();
        let Some(line) = CommandLine::parse(&text) else {
            return Next::BeforeLlm;
        };
        self.emit(Body::CommandHandled {
            name: line.name.clone(),
        });
        let commands = &self.cx.agent.commands;
        if let Some(own) = commands.own.get(&line.name) {
            if own.access == CommandAccess::Admin && self.authorize_command(&line).is_none() {
                return self.answer_command(DENIED);
            }
            return self.call_command(&line);
        }
        if commands.removed.contains(&line.name) {
            return self.answer_command(UNKNOWN);
        }
        match line.name.as_str() {
            HELP => {
                let text = self.help_text();
                self.answer_command(&text)
            }
            "reset" => {
                self.emit(Body::SessionEndRequested {
                    reason: SessionEnd::Reset,
                });
                self.answer_command("The conversation starts again.")
            }
            "usage" => {
                let count = self.session.message_count;
                self.answer_command(&format!("{count} messages in this conversation."))
            }
            name @ ("text" | "voice" | "mirror" | "dynamic") => {
                let key = "preferredReplyFormat".to_owned();
                self.emit(Body::PreferenceChanged {
                    key,
                    value: Value::String(name.to_owned()),
                });
                self.answer_command(&format!("Replies are now: {name}."))
            }
            _ => self.answer_command(UNKNOWN),
        }
    }

    fn help_text(&self) -> String {
        let commands = &self.cx.agent.commands;
        let builtins = BUILTIN_COMMANDS.iter().filter(|name| {
            !commands.removed.contains(**name) && !commands.own.contains_key(**name)
        });
        let mut lines: Vec<String> = builtins
            .map(|name| format!("/{name} – {}", builtin_description(name)))
            .collect();
        let actor = self.chat_actor();
        for (name, command) in &commands.own {
            let line = CommandLine {
                name: name.clone(),
                args: "",
            };
            let is_allowed = command.access == CommandAccess::Public
                || actor
                    .as_ref()
                    .is_some_and(|actor| self.may(&line.admin_action(), actor));
            if is_allowed {
                let description = command.description.as_deref().unwrap_or("");
                lines.push(format!("/{name} – {description}"));
            }
        }
        lines.join("\n")
    }

    /// The admin who writes from this address, if the agent's data names one.
    fn chat_actor(&self) -> Option<ResolvedActor> {
        let auth = self.cx.agent.admin_auth.as_ref()?;
        let start = &self.session.start;
        let signals = AdminSignals {
            chat: Some(ChatSignal {
                transport: &start.transport,
                address: &start.address,
            }),
            ..AdminSignals::default()
        };
        admin_auth::resolve_actor(auth, &signals)
    }

    fn may(&self, action: &str, actor: &ResolvedActor) -> bool {
        let auth = self.cx.agent.admin_auth.as_ref();
        auth.is_some_and(|auth| admin_auth::can(auth, action, actor))
    }

    /// Whether the sender may use an admin command. Both answers are recorded.
    fn authorize_command(&mut self, line: &CommandLine<'_>) -> Option<ResolvedActor> {
        let action = line.admin_action();
        let actor = self.chat_actor();
        let granted = actor.as_ref().is_some_and(|actor| self.may(&action, actor));
        let reason = match (&actor, granted) {
            (_, true) => None,
            _ if self.cx.agent.admin_auth.is_none() => Some("no_auth_config"),
            (None, _) => Some("no_actor"),
            (Some(_), false) => Some("forbidden"),
        };
        self.emit(Body::AuthorizationDecided(Box::new(
            AuthorizationDecision {
                granted,
                action,
                actor: actor.as_ref().map(ResolvedActor::recorded),
                signal: None,
                escalation_id: None,
                reason: reason.map(str::to_owned),
                adapter: format!("chat:{}", self.session.start.transport),
            },
        )));
        actor.filter(|_| granted)
    }

    fn call_command(&mut self, line: &CommandLine<'_>) -> Next {
        let own = self.cx.agent.commands.own.get(&line.name);
        let schema = own.and_then(|command| command.args.as_ref());
        let args = match schema.map(|schema| line.arguments(schema)) {
            Some(Ok(args)) => args,
            Some(Err(bad)) => return self.answer_command(&bad.usage),
            None => Value::String(line.args.to_owned()),
        };
        let call = CodeCall {
            path: format!("commands.{}.handler", line.name),
            args: vec![args],
            timeout_ms: self.cx.agent.timeouts.tool_ms,
        };
        let purpose = WorkPurpose::Command {
            name: line.name.clone(),
        };
        self.request(purpose, SessionWork::Code(call));
        Next::Wait
    }

    /// The handler of a command returned. What it sent was sent beside the response.
    pub(super) fn finish_command(&mut self, name: &str, done: &CodeOutcome) -> Next {
        match (&done.error, &done.value) {
            (Some(error), _) => {
                let reason = format!("command {name}: {}", error.message);
                self.fail_turn("command", &reason)
            }
            (None, Some(Value::String(text))) if !text.trim().is_empty() => {
                self.answer_command(&text.clone())
            }
            _ => Next::DONE,
        }
    }
}

fn builtin_description(name: &str) -> &'static str {
    match name {
        "help" => "lists the commands",
        "reset" => "starts a new conversation",
        "usage" => "shows how much was written",
        "text" => "replies as text",
        "voice" => "replies as speech",
        "mirror" => "replies as you write",
        _ => "lets the agent choose",
    }
}
