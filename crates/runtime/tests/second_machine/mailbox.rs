//! A small machine beside the workflow run: a mailbox that sends its messages in order, reminds of
//! unanswered questions, and sends nothing while it is muted. Its streams are `box:<name>`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tandem_engine::machine::{Decision, Machine, TimerRequest};
use tandem_record::{Effect, EffectId, InterruptId, Recorded, Seq, StreamId, TenantId, Timestamp};

/// Time from a question to its reminder.
pub(crate) const REMIND_AFTER_MS: u64 = 60_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum MailEvent {
    Opened { tenant: TenantId },
    Queued { number: u32 },
    Sent { number: u32 },
    Failed { number: u32 },
    Suppressed { number: u32 },
    Muted,
    Unmuted,
    Asked { interrupt: InterruptId },
    Reminded,
    Answered,
}

#[derive(Clone, Debug)]
pub(crate) enum MailCommand {
    Open { tenant: TenantId },
    Post,
    Mute,
    Unmute,
    Finish { number: u32, sent: bool },
    Suppress { number: u32 },
    Ask,
    Remind,
    Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MailReply {
    Accepted,
    Refused,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Send {
    pub(crate) number: u32,
    /// Attempts that failed.
    pub(crate) tries: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MailState {
    pub(crate) tenant: TenantId,
    pub(crate) posted: u32,
    pub(crate) muted: bool,
    pub(crate) question: Option<(InterruptId, Timestamp)>,
    pub(crate) reminder: Option<Timestamp>,
    head: Option<Seq>,
}

#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    pub(crate) name: String,
    pub(crate) state: MailState,
}

pub(crate) struct MailContext {
    pub(crate) now: Timestamp,
}

pub(crate) fn stream(name: &str) -> StreamId {
    StreamId::new(format!("box:{name}"))
}

impl Mailbox {
    pub(crate) fn new(stream: &StreamId) -> Self {
        let name = stream.as_str().trim_start_matches("box:").to_owned();
        let state = MailState {
            tenant: TenantId::new(""),
            posted: 0,
            muted: false,
            question: None,
            reminder: None,
            head: None,
        };
        Self { name, state }
    }

    fn effect(&self, number: u32) -> Effect<Send> {
        Effect {
            id: EffectId::new(format!("mail-{}-{number}", self.name)),
            kind: Send { number, tries: 0 },
        }
    }

    /// The events of a command; `None` refuses it.
    fn events(&self, command: &MailCommand) -> Option<Vec<MailEvent>> {
        let state = &self.state;
        let is_open = state.head.is_some();
        let event = match command {
            MailCommand::Open { tenant } if !is_open => MailEvent::Opened {
                tenant: tenant.clone(),
            },
            _ if !is_open => return None,
            MailCommand::Open { .. } => return None,
            MailCommand::Post => MailEvent::Queued {
                number: state.posted,
            },
            MailCommand::Mute => MailEvent::Muted,
            MailCommand::Unmute => MailEvent::Unmuted,
            MailCommand::Finish { number, sent } => match sent {
                true => MailEvent::Sent { number: *number },
                false => MailEvent::Failed { number: *number },
            },
            MailCommand::Suppress { number } => MailEvent::Suppressed { number: *number },
            MailCommand::Ask => MailEvent::Asked {
                interrupt: InterruptId::new(format!("ask-{}", self.name)),
            },
            // Fired twice, or too late.
            MailCommand::Remind if state.reminder.is_none() => return Some(Vec::new()),
            MailCommand::Remind => MailEvent::Reminded,
            MailCommand::Answer => MailEvent::Answered,
        };
        Some(vec![event])
    }
}

impl Machine for Mailbox {
    type Event = MailEvent;
    type Command = MailCommand;
    type Reply = MailReply;
    type TimerKey = ();
    type EffectKind = Send;
    type Undecided = std::convert::Infallible;
    type Context<'a> = MailContext;
    type Limits = ();
    type Snapshot = MailState;

    fn stream(&self) -> StreamId {
        stream(&self.name)
    }

    fn tenant(&self) -> &TenantId {
        &self.state.tenant
    }

    fn head(&self) -> Option<Seq> {
        self.state.head
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn memory_bytes(&self) -> usize {
        256
    }

    fn evolve(&mut self, recorded: &Recorded<MailEvent>) {
        let state = &mut self.state;
        state.head = Some(recorded.seq);
        match &recorded.event {
            MailEvent::Opened { tenant } => state.tenant = tenant.clone(),
            MailEvent::Queued { number } => state.posted = number + 1,
            MailEvent::Muted => state.muted = true,
            MailEvent::Unmuted => state.muted = false,
            MailEvent::Asked { interrupt } => {
                state.question = Some((interrupt.clone(), recorded.at));
                state.reminder = Some(recorded.at.plus_ms(REMIND_AFTER_MS));
            }
            MailEvent::Reminded => state.reminder = None,
            MailEvent::Answered => (state.question, state.reminder) = (None, None),
            MailEvent::Sent { .. } | MailEvent::Failed { .. } | MailEvent::Suppressed { .. } => {}
        }
    }

    fn decide(
        &self,
        command: &MailCommand,
        context: &MailContext,
    ) -> Result<Decision<Self>, Self::Undecided> {
        let drafted = self.events(command);
        let reply = match drafted {
            Some(_) => MailReply::Accepted,
            None => MailReply::Refused,
        };
        let mut after = self.clone();
        let mut events = Vec::new();
        let mut effects = Vec::new();
        for event in drafted.unwrap_or_default() {
            if let MailEvent::Queued { number } = event {
                effects.push(self.effect(number));
            }
            let recorded = Recorded {
                seq: after.head().map_or(Seq(0), Seq::next),
                at: context.now,
                cause: None,
                event,
            };
            after.evolve(&recorded);
            events.push(recorded);
        }
        let timers = match (self.state.reminder, after.state.reminder) {
            (before, now) if before == now => Vec::new(),
            (_, Some(due)) => vec![TimerRequest::Set { key: (), due }],
            (_, None) => vec![TimerRequest::Clear { key: () }],
        };
        Ok(Decision {
            events,
            timers,
            effects,
            dropped: Vec::new(),
            children: Vec::new(),
            reply,
            after,
        })
    }

    fn required_timers(&self, (): &()) -> BTreeMap<(), Timestamp> {
        self.state
            .reminder
            .map(|due| ((), due))
            .into_iter()
            .collect()
    }

    fn snapshot(&self) -> &MailState {
        &self.state
    }
}
