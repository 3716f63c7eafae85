//! Turns that take place while another one waits for its work: a person takes the conversation over, and what the user
//! writes to that person. They need nothing of the turn under way, which may sit in a long call of the model.
//!
//! The turn under way is set aside and comes back when the other one ends, or when its own work is done. There are never
//! more than two.

use super::command_line::CommandLine;
use super::draft::Draft;
use super::state::ChatSession;
use super::takeover_commands::START;
use super::turn_state::{Turn, WaitingTurn};
use tandem_record::EffectId;
use tandem_record::conversation::{SessionEventBody as Body, TurnCause, WorkPurpose};

impl ChatSession {
    /// The turn under way, and the one that was set aside for it.
    pub(super) fn turns_under_way(&self) -> impl Iterator<Item = &Turn> {
        self.turn.iter().chain(&self.aside)
    }

    /// The turn that waits for this piece of work, else the one under way.
    pub(super) fn turn_of_work(&self, effect: &EffectId) -> Option<&Turn> {
        let aside = self.aside.as_ref();
        aside
            .filter(|turn| turn.waits_for(effect))
            .or(self.turn.as_ref())
    }
}

impl Turn {
    pub(super) fn waits_for(&self, effect: &EffectId) -> bool {
        let pending = self.pending.as_ref();
        pending.is_some_and(|work| work.effect_id == *effect)
    }
}

impl Draft<'_> {
    /// The turn that can begin now.
    pub(super) fn next_turn(&self) -> Option<&WaitingTurn> {
        match &self.session.turn {
            None => self.session.waiting.front(),
            Some(turn) => self.next_beside(turn),
        }
    }

    fn next_beside(&self, under_way: &Turn) -> Option<&WaitingTurn> {
        if self.session.aside.is_some() {
            return None;
        }
        let mut waiting = self.session.waiting.iter();
        let takes_over = waiting.find(|waiting| self.is_start_of_takeover(&waiting.cause));
        takes_over.or_else(|| self.next_for_human(under_way))
    }

    /// Whether somebody asks for the conversation by a command, the desk's own or one of the agent that needs the same
    /// right. Whether they may is looked at in the turn.
    fn is_start_of_takeover(&self, cause: &TurnCause) -> bool {
        let (TurnCause::Message { message, .. } | TurnCause::AdminCommand { message, .. }) = cause
        else {
            return false;
        };
        let Some(line) = CommandLine::parse(&message.body) else {
            return false;
        };
        let own = self.cx.agent.commands.own.get(&line.name);
        let starts_flow = own.is_some_and(|own| own.flow.is_some());
        line.admin_action() == START && self.is_admin_command(&line.name) && !starts_flow
    }

    /// The user's next message to the person who has the conversation. Messages keep their order, also with one that is
    /// on its way to the person.
    fn next_for_human(&self, under_way: &Turn) -> Option<&WaitingTurn> {
        let pending = under_way.pending.as_ref().map(|work| &work.purpose);
        let is_listening = matches!(
            pending,
            Some(WorkPurpose::Transcript | WorkPurpose::BeforeLlm)
        );
        let mut waiting = self.session.waiting.iter();
        let next = waiting.find(|waiting| waiting.cause.scheduled().is_none())?;
        let TurnCause::Message { message, .. } = &next.cause else {
            return None;
        };
        let is_heard = self.goes_to_human(&message.body) && !self.gives_up(&message.body);
        (is_heard && !is_listening).then_some(next)
    }

    /// Goes on with the turn that was set aside, without the work it waits for.
    pub(super) fn take_up_aside(&mut self) {
        let aside = self.session.aside.as_ref();
        let pending = aside.and_then(|turn| turn.pending.as_ref());
        if let Some(effect_id) = pending.map(|work| work.effect_id.clone()) {
            self.drop_work(effect_id.clone());
            self.emit(Body::WorkFinished { effect_id });
        }
    }
}
