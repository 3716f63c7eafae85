//! Takeovers by commands: the desk's own `/takeover` and `/handback`, and handlers of admins that write the mode of the
//! session (Z-194).

use super::admin_auth;
use super::command_gate::WrittenCommand;
use super::draft::Draft;
use super::turn::Next;
use crate::agent::AdminAuthSpec;
use serde_json::Value;
use tandem_record::conversation::{AdminActor, CodeOutcome, TakeoverOrigin, WorkPurpose};

/// The key by which the handler of an admin's command starts and ends a takeover.
const HITL_MODE: &str = "__zupa.hitl.mode";
const NO_CONVERSATION: &str = "There is no such conversation.";
const LIVE_TAKEOVER: &str = "live_takeover";
pub(super) const START: &str = "hitl.takeover.start";
const END: &str = "hitl.takeover.end";

impl Draft<'_> {
    pub(super) fn take_over_by_command(&mut self, written: &WrittenCommand) -> Next {
        let line = written.line();
        if !written.names_target() && line.is_some_and(|line| !line.args.is_empty()) {
            return self.answer_command(NO_CONVERSATION);
        }
        let user = self.session.start.user.external_user_id.clone();
        let text = match self.take_over(TakeoverOrigin::Command) {
            Ok(_) => format!("You have the conversation with {user}; the agent is silent."),
            Err(refusal) => format!("Not done: {refusal}."),
        };
        self.answer_command(&text)
    }

    pub(super) fn hand_back_by_command(&mut self, written: &WrittenCommand) -> Next {
        let line = written.untargeted();
        let first = line.as_ref().map_or("", |line| line.first_word());
        if !written.names_target() && looks_like_target(first) {
            return self.answer_command(NO_CONVERSATION);
        }
        let note = line.map(|line| line.args.to_owned());
        match self.handback(note) {
            Ok(ending) => {
                let user = self.session.start.user.external_user_id.clone();
                self.answer_command(&format!(
                    "The agent has the conversation with {user} again."
                ));
                self.end_takeover(ending)
            }
            Err(refusal) => self.answer_command(&format!("Not done: {refusal}.")),
        }
    }

    /// Takes note that the handler of an admin's command wrote the mode. False when this is another write.
    pub(super) fn note_takeover_write(&mut self, key: &str, value: Option<&Value>) -> bool {
        let turn = self.session.turn.as_ref();
        let is_allowed = turn.is_some_and(|turn| turn.is_admin_command());
        if key != HITL_MODE || !is_allowed {
            return false;
        }
        let starts = match value {
            Some(mode) if mode == LIVE_TAKEOVER => true,
            Some(_) => return false,
            None => false,
        };
        self.takeover_write = Some(starts);
        true
    }

    /// Carries out what the handler wrote, with the right for it.
    pub(super) fn follow_takeover_write(&mut self) -> Next {
        let Some(starts) = self.takeover_write.take() else {
            return Next::DONE;
        };
        let actor = self.session.acting_admin().cloned();
        let (Some(actor), Some(auth)) = (actor, &self.cx.agent.admin_auth) else {
            return Next::DONE;
        };
        let action = action_of(starts);
        if self.command_action() == action {
            return self.change_takeover(actor, starts);
        }
        if *auth == AdminAuthSpec::Code {
            let purpose = WorkPurpose::TakeoverRight {
                actor: actor.clone(),
                starts,
            };
            return self.request_right(purpose, action, &actor);
        }
        let resolved = self.resolved_chat_actor();
        let may = resolved.is_some_and(|actor| admin_auth::can(auth, action, &actor));
        self.settle_takeover_right(actor, starts, (!may).then_some("forbidden"))
    }

    pub(super) fn use_takeover_right(
        &mut self,
        actor: &AdminActor,
        starts: bool,
        done: &CodeOutcome,
    ) -> Next {
        let denial = super::admin_gate::denial_of(done);
        self.settle_takeover_right(actor.clone(), starts, denial)
    }

    fn settle_takeover_right(
        &mut self,
        actor: AdminActor,
        starts: bool,
        denial: Option<&str>,
    ) -> Next {
        let action = action_of(starts).to_owned();
        self.note_authorization_of(action, Some(actor.clone()), denial);
        match denial {
            Some(_) => self.answer_command(super::admin_gate::DENIED),
            None => self.change_takeover(actor, starts),
        }
    }

    fn change_takeover(&mut self, actor: AdminActor, starts: bool) -> Next {
        self.actor = Some(actor);
        let refused = match starts {
            true => match self.take_over(TakeoverOrigin::Command) {
                Ok(_) => return Next::DONE,
                Err(refusal) => refusal,
            },
            false if self.session.takeover.is_none() => return Next::DONE,
            false => match self.handback(None) {
                Ok(ending) => return self.end_takeover(ending),
                Err(refusal) => refusal,
            },
        };
        self.report_failure("takeover", &refused.to_string());
        self.answer_command(&format!("Not done: {refused}."))
    }
}

/// Whether a word names a conversation rather than beginning a note: an id of this host, or an address, which has a digit.
fn looks_like_target(word: &str) -> bool {
    let prefixes = ["ses-", "esc-", "pxy-"];
    let is_id = prefixes.iter().any(|prefix| word.starts_with(prefix));
    is_id || word.chars().any(|c| c.is_ascii_digit())
}

fn action_of(starts: bool) -> &'static str {
    if starts { START } else { END }
}
