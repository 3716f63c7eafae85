//! Whether the writer of an admin command may use it, and the desk's own commands.
//!
//! Every answer is recorded, except for `/help`, which only looks. What cannot be decided is denied.

use super::admin_auth::{self, AdminSignals, ChatSignal, ResolvedActor};
use super::command_gate::WrittenCommand;
use super::command_line::CommandLine;
use super::draft::Draft;
use super::turn::Next;
use crate::agent::{AdminAuthSpec, AgentSpec, CommandAccess};
use serde_json::{Value, json};
use tandem_record::EscalationId;
use tandem_record::conversation::{
    AdminActor, AuthorizationDecision, CodeCall, CodeError, CodeOutcome, EscalationDecision,
    OpenEscalation, SessionEventBody as Body, SessionReply, SessionWork, TurnCause, WorkPurpose,
};

pub(super) const DENIED: &str = "You cannot use this command.";
const RESOLVE_USAGE: &str = "Usage: /resolve <escalation> approve|reject [message]";
/// Escalations listed in one answer.
const MAX_LISTED: usize = 30;

/// The word of an admin command that may name a session, an escalation or a user: the message may be
/// about another session than the one it would arrive in.
pub fn command_target<'a>(agent: &AgentSpec, text: &'a str) -> Option<&'a str> {
    let line = CommandLine::parse(text)?;
    let mut words = line.args.split_whitespace();
    let word = match line.name.as_str() {
        // `/proxy stop <target>`
        "proxy" => words.nth(1),
        _ => words.next(),
    };
    word.filter(|_| needs_admin(agent, &line))
}

/// Whether a message is an admin command of a sender whom the agent's data knows as an admin. Where code
/// decides who is one, nobody is known before it ran.
pub fn is_command_of_known_admin(agent: &AgentSpec, text: &str, sender: ChatSignal<'_>) -> bool {
    let is_command = CommandLine::parse(text).is_some_and(|line| needs_admin(agent, &line));
    let signals = AdminSignals {
        chat: Some(sender),
        ..AdminSignals::default()
    };
    let auth = agent.admin_auth.as_ref().filter(|_| is_command);
    auth.is_some_and(|auth| admin_auth::resolve_actor(auth, &signals).is_some())
}

/// The word of `/proxy stop [#id]` that names a bridge; `None` when the message is another one.
pub fn stopped_bridge<'a>(agent: &AgentSpec, text: &'a str) -> Option<Option<&'a str>> {
    let line = CommandLine::parse(text)?;
    let mut words = line.args.split_whitespace();
    let is_own = agent.commands.own.contains_key(&line.name);
    let is_stop = line.name == "proxy" && !is_own && words.next() == Some("stop");
    (is_stop && needs_admin(agent, &line)).then(|| words.next())
}

/// Whether a message is a command for admins.
pub fn is_admin_command(agent: &AgentSpec, text: &str) -> bool {
    CommandLine::parse(text).is_some_and(|line| needs_admin(agent, &line))
}

fn needs_admin(agent: &AgentSpec, line: &CommandLine<'_>) -> bool {
    match agent.commands.own.get(&line.name) {
        Some(own) => own.access == CommandAccess::Admin,
        None => {
            agent.admin_auth.is_some()
                && super::command_line::ADMIN_COMMANDS.contains(&line.name.as_str())
                && !agent.commands.removed.contains(&line.name)
        }
    }
}

impl Draft<'_> {
    pub(super) fn resolved_chat_actor(&self) -> Option<ResolvedActor> {
        let auth = self.cx.agent.admin_auth.as_ref()?;
        let (transport, address) = self.caller();
        let signals = AdminSignals {
            chat: Some(ChatSignal {
                transport: &transport,
                address: &address,
            }),
            ..AdminSignals::default()
        };
        admin_auth::resolve_actor(auth, &signals)
    }

    /// Looks whether the writer may use a command, then carries it out or refuses.
    pub(super) fn authorize_command(&mut self, line: &CommandLine<'_>) -> Next {
        let Some(auth) = &self.cx.agent.admin_auth else {
            return self.deny(None, "no_auth_config");
        };
        if *auth == AdminAuthSpec::Code {
            return self.request_actor(WorkPurpose::CommandActor);
        }
        let Some(actor) = self.resolved_chat_actor() else {
            return self.deny(None, "no_actor");
        };
        let may = admin_auth::can(auth, &line.admin_action(), &actor);
        match may {
            true => self.grant(actor.recorded()),
            false => self.deny(Some(actor.recorded()), "forbidden"),
        }
    }

    pub(super) fn request_actor(&mut self, purpose: WorkPurpose) -> Next {
        let inbound = self.turn().inbound().or_else(|| self.desk_message());
        let inbound = inbound.unwrap_or_default();
        let call = CodeCall {
            path: "adminAuth.resolveActor".to_owned(),
            args: vec![json!({ "inbound": inbound })],
            timeout_ms: self.cx.agent.timeouts.hook_ms,
        };
        self.request(purpose, SessionWork::Code(call));
        Next::Wait
    }

    pub(super) fn request_right(
        &mut self,
        purpose: WorkPurpose,
        action: &str,
        actor: &AdminActor,
    ) -> Next {
        let call = CodeCall {
            path: "adminAuth.can".to_owned(),
            args: vec![json!(action), json!(actor), self.session.shown()],
            timeout_ms: self.cx.agent.timeouts.hook_ms,
        };
        self.request(purpose, SessionWork::Code(call));
        Next::Wait
    }

    pub(super) fn read_actor(&self, done: &CodeOutcome) -> Option<AdminActor> {
        let (transport, address) = self.caller();
        let signals = AdminSignals {
            chat: Some(ChatSignal {
                transport: &transport,
                address: &address,
            }),
            ..AdminSignals::default()
        };
        let answer = done.value.as_ref()?;
        let actor = ResolvedActor::from_answer(answer, &signals.channel())?;
        Some(actor.recorded())
    }

    pub(super) fn command_action(&self) -> String {
        let written = self.written_command();
        let line = written.line();
        line.map(|line| line.admin_action()).unwrap_or_default()
    }

    pub(super) fn use_command_actor(&mut self, done: &CodeOutcome) -> Next {
        if let Some(error) = &done.error {
            return self.deny(None, failure_reason(error));
        }
        let Some(actor) = self.read_actor(done) else {
            return self.deny(None, "no_actor");
        };
        let action = self.command_action();
        let purpose = WorkPurpose::CommandRight {
            actor: actor.clone(),
        };
        self.request_right(purpose, &action, &actor)
    }

    pub(super) fn use_command_right(&mut self, actor: &AdminActor, done: &CodeOutcome) -> Next {
        match denial_of(done) {
            Some(reason) => self.deny(Some(actor.clone()), reason),
            None => self.grant(actor.clone()),
        }
    }

    fn grant(&mut self, actor: AdminActor) -> Next {
        self.note_authorization(Some(actor), None);
        let written = self.written_command();
        self.run_command(&written)
    }

    fn deny(&mut self, actor: Option<AdminActor>, reason: &str) -> Next {
        self.note_authorization(actor, Some(reason));
        self.answer_command(DENIED)
    }

    fn note_authorization(&mut self, actor: Option<AdminActor>, denial: Option<&str>) {
        let action = self.command_action();
        self.note_authorization_of(action, actor, denial);
    }

    pub(super) fn note_authorization_of(
        &mut self,
        action: String,
        actor: Option<AdminActor>,
        denial: Option<&str>,
    ) {
        let (transport, address) = self.caller();
        let signals = AdminSignals {
            chat: Some(ChatSignal {
                transport: &transport,
                address: &address,
            }),
            ..AdminSignals::default()
        };
        let signal = signals.digest().filter(|_| actor.is_none());
        self.actor.clone_from(&actor);
        let decision = AuthorizationDecision {
            granted: denial.is_none(),
            action,
            actor,
            signal,
            escalation_id: self.session.shown_escalation().map(|e| e.id.clone()),
            proxy_id: self.session.bridge().map(|bridge| bridge.id.clone()),
            reason: denial.map(str::to_owned),
            adapter: format!("chat:{transport}"),
        };
        self.emit(Body::AuthorizationDecided(Box::new(decision)));
    }

    /// Lists the commands the caller may use.
    pub(super) fn help(&mut self) -> Next {
        let asked = self.admin_commands();
        match &self.cx.agent.admin_auth {
            Some(AdminAuthSpec::Code) if !asked.is_empty() => {
                self.request_actor(WorkPurpose::HelpActor)
            }
            Some(auth) => {
                let actor = self.resolved_chat_actor();
                let may = |name: &String| {
                    let action = action_of(name);
                    let actor = actor.as_ref();
                    actor.is_some_and(|actor| admin_auth::can(auth, &action, actor))
                };
                let allowed: Vec<String> = asked.into_iter().filter(may).collect();
                self.answer_help(&allowed)
            }
            None => self.answer_help(&[]),
        }
    }

    fn answer_help(&mut self, allowed: &[String]) -> Next {
        let text = self.help_text(allowed);
        self.answer_command(&text)
    }

    pub(super) fn use_help_actor(&mut self, done: &CodeOutcome) -> Next {
        match self.read_actor(done).filter(|_| done.error.is_none()) {
            Some(actor) => {
                let rest = self.admin_commands();
                self.ask_help_right(actor, Vec::new(), rest)
            }
            None => self.answer_help(&[]),
        }
    }

    fn ask_help_right(
        &mut self,
        actor: AdminActor,
        allowed: Vec<String>,
        rest: Vec<String>,
    ) -> Next {
        let Some(action) = rest.first().map(|name| action_of(name)) else {
            return self.answer_help(&allowed);
        };
        let purpose = WorkPurpose::HelpRight {
            actor: actor.clone(),
            allowed,
            rest,
        };
        self.request_right(purpose, &action, &actor)
    }

    pub(super) fn use_help_right(
        &mut self,
        actor: &AdminActor,
        mut allowed: Vec<String>,
        rest: &[String],
        done: &CodeOutcome,
    ) -> Next {
        let may = done.error.is_none() && done.value.as_ref().is_some_and(admin_auth::allows);
        allowed.extend(rest.first().filter(|_| may).cloned());
        let rest = rest.iter().skip(1).cloned().collect();
        self.ask_help_right(actor.clone(), allowed, rest)
    }

    /// A command of the desk, for an admin who may use it.
    pub(super) fn run_desk_command(&mut self, written: &WrittenCommand) -> Next {
        let Some(line) = written.line() else {
            return Next::DONE;
        };
        self.actor = self.session.acting_admin().cloned();
        match line.name.as_str() {
            "resolve" => return self.resolve_by_command(&line),
            "takeover" => return self.take_over_by_command(written),
            "handback" => return self.hand_back_by_command(written),
            _ => {}
        }
        if line.name == "proxy" {
            return self.stop_bridge_by_command(&line);
        }
        if let TurnCause::AdminCommand { .. } = self.turn().cause {
            let user = &self.session.start.user.external_user_id;
            let open = self.session.escalations().filter(|e| e.is_open());
            let open = open.map(|escalation| OpenEscalation {
                id: escalation.id.clone(),
                user_external_id: user.clone(),
                reason: escalation.reason.clone(),
                priority: escalation.priority,
            });
            let open = Ok(open.collect());
            return self.list_escalations(&open);
        }
        self.request(WorkPurpose::Escalations, SessionWork::ListEscalations);
        Next::Wait
    }

    pub(super) fn list_escalations(
        &mut self,
        open: &Result<Vec<OpenEscalation>, CodeError>,
    ) -> Next {
        let text = match open {
            Err(error) => format!("The list is not available: {}", error.message),
            Ok(open) if open.is_empty() => "Nothing waits for a decision.".to_owned(),
            Ok(open) => {
                let lines = open.iter().take(MAX_LISTED);
                let lines =
                    lines.map(|e| format!("{} – {}: {}", e.id, e.user_external_id, e.reason));
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        self.answer_command(&text)
    }

    fn resolve_by_command(&mut self, line: &CommandLine<'_>) -> Next {
        let mut words = line.args.splitn(3, char::is_whitespace);
        let (id, verdict) = (words.next().unwrap_or_default(), words.next());
        // Phones begin words with a capital letter.
        let verdict = verdict.map(str::to_lowercase);
        let approved = match verdict.as_deref() {
            Some("approve") => true,
            Some("reject") => false,
            _ => return self.answer_command(RESOLVE_USAGE),
        };
        let message = words.next().map(str::trim).filter(|text| !text.is_empty());
        let id = EscalationId::from(id);
        // The first word names the escalation, or the session or user it belongs to.
        let names_session = matches!(self.turn().cause, TurnCause::AdminCommand { .. })
            && self.session.escalation(&id).is_none();
        let decision = EscalationDecision {
            approved,
            message: message.map(str::to_owned),
            action_data: None,
            claimed_by: None,
        };
        let resolved = self.resolve((!names_session).then_some(&id), &decision);
        let text = match resolved {
            Ok(SessionReply::Escalation(record)) if record.is_open() => {
                let (given, needed) = (record.votes.len(), record.required_approvals);
                format!("{}: {given} of {needed} approvals.", record.id)
            }
            Ok(SessionReply::Escalation(record)) => {
                let verdict = if approved { "approved" } else { "rejected" };
                format!("{} is {verdict}.", record.id)
            }
            Ok(_) => String::new(),
            Err(refusal) => format!("Not done: {refusal}."),
        };
        self.answer_command(&text)
    }
}

/// The action that a command without arguments needs.
fn action_of(name: &str) -> String {
    let line = CommandLine {
        name: name.to_owned(),
        // The only thing it does.
        args: if name == "proxy" { "stop" } else { "" },
    };
    line.admin_action()
}

/// Why a rule in code denied something; `None` when it allowed it.
pub(super) fn denial_of(done: &CodeOutcome) -> Option<&'static str> {
    match (&done.error, &done.value) {
        (Some(error), _) => Some(failure_reason(error)),
        (None, Some(answer)) if admin_auth::allows(answer) => None,
        (None, Some(Value::Bool(_))) => Some("forbidden"),
        // Not a yes and not a no.
        (None, _) => Some("error"),
    }
}

pub(super) fn failure_reason(error: &CodeError) -> &'static str {
    match error.code.as_str() {
        "timeout" => "timeout",
        _ => "error",
    }
}
