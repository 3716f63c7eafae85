//! Identifiers. Every id is a newtype, so that a node id cannot be passed for a run id.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::sync::Arc;

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Arc::from(text.as_ref()))
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )+};
}

text_id! {
    /// One run; `run-<uuid v7>`, so that ids sort by creation and the log grows at its end.
    RunId,
    /// A node of a workflow document, unique inside it.
    NodeId,
    /// A workflow as its author names it; several versions may share it.
    WorkflowId,
    /// The hard isolation boundary.
    TenantId,
    /// A subdivision of a tenant.
    WorkspaceId,
    /// The identity that acts: an opaque id of a key, a person or a service, never personal data.
    Principal,
    /// One logical side effect; the same across retries and restarts.
    EffectId,
    /// One interrupt, to a person or to the outside.
    InterruptId,
    /// One webhook subscription; `wh-<uuid v7>`, so that ids sort by registration.
    WebhookId,
    /// Lowercase hex SHA-256 of a canonical workflow document.
    DefinitionHash,
    /// A log: `run:<runId>`, `conv:<sessionId>`, `user:<userId>`, `when:<scheduleId>`; or the bytes of one recording or file of a
    /// session, `media:<sessionId>:<mediaId>`.
    StreamId,
    /// A part of a stream's machine that waits for an answer: a node of a run.
    StepId,
    /// A timer within its stream. The machine of the stream chooses and reads it; a store does not.
    TimerName,
    /// Effects of a tenant with the same order key are performed one after the other, in the order
    /// of their commits.
    OrderKey,
    /// A conversational agent; the name of its folder.
    AgentId,
    /// One conversation of one user with one agent.
    SessionId,
    /// A person whom an agent knows by the address the transport gives.
    ChatUserId,
    /// A received message, as the transport names it. Unique per agent and transport.
    MessageId,
    /// A request for a person's decision, or for a person to take over.
    EscalationId,
    /// A bridge between a session and a desk.
    ProxyId,
    /// A flow, as its author names it.
    FlowId,
    /// A recording or file of a session; unique within it.
    MediaId,
    /// What starts a flow by the clock. `cfg:<agentId>:<key>` for one of an agent's file.
    ScheduleId,
    /// One occurrence of a schedule that was claimed.
    ScheduleRunId,
}

impl RunId {
    /// Whether it is the run of a flow.
    pub fn is_flow_run(&self) -> bool {
        self.0.starts_with("flow-")
    }

    /// The public id of one of this run's events.
    pub fn event_id(&self, seq: Seq) -> String {
        const MAX_SEQ_DIGITS: usize = 20;
        let mut id = String::with_capacity("evt--".len() + self.0.len() + MAX_SEQ_DIGITS);
        id.push_str("evt-");
        id.push_str(&self.0);
        id.push('-');
        write!(id, "{seq}").expect("writing to a string cannot fail");
        id
    }
}

impl InterruptId {
    /// Names an interrupt of a flow run after another run.
    pub fn rename_run(&mut self, from: &RunId, to: &RunId) {
        if let Some(step) = self.0.strip_prefix(from.as_str()) {
            *self = Self::from(format!("{to}{step}"));
        }
    }
}

impl SessionId {
    /// The public id of one of this session's events.
    pub fn event_id(&self, seq: Seq) -> String {
        format!("evt-{self}-{seq}")
    }

    /// The public id of a turn.
    pub fn turn_id(&self, turn: u64) -> String {
        format!("{self}-t{turn}")
    }

    /// The public id of the request that a turn carries out.
    pub fn request_id(&self, turn: u64) -> String {
        format!("{self}-r{turn}")
    }
}

impl StreamId {
    pub fn of_run(run: &RunId) -> Self {
        Self::new(format!("run:{run}"))
    }

    pub fn of_session(session: &SessionId) -> Self {
        Self::new(format!("conv:{session}"))
    }

    pub fn of_chat_user(user: &ChatUserId) -> Self {
        Self::new(format!("user:{user}"))
    }

    /// What happens to an agent of a tenant outside of its sessions.
    pub fn of_agent(tenant: &TenantId, agent: &AgentId) -> Self {
        Self::new(format!("agent:{tenant}:{agent}"))
    }

    /// Comes after the streams of sessions, runs and users in the order in which a transaction names them.
    pub fn of_schedule(schedule: &ScheduleId) -> Self {
        Self::new(format!("when:{schedule}"))
    }

    /// The schedule whose log this is, if it is the log of a schedule.
    pub fn schedule(&self) -> Option<ScheduleId> {
        self.as_str().strip_prefix("when:").map(ScheduleId::new)
    }

    /// Whether this is the log of an agent itself.
    pub fn is_of_agent(&self) -> bool {
        self.as_str().starts_with("agent:")
    }

    /// The bytes of a recording or file of a session.
    pub fn of_media(session: &SessionId, media: &MediaId) -> Self {
        Self::new(format!("{}{media}", Self::media_prefix(session)))
    }

    /// The names of all streams of recordings and files of a session begin so, and no others.
    pub fn media_prefix(session: &SessionId) -> String {
        format!("media:{session}:")
    }

    /// The session whose log this is, if it is the log of a session.
    pub fn session(&self) -> Option<SessionId> {
        self.as_str().strip_prefix("conv:").map(SessionId::new)
    }

    /// The run whose log this is, if it is the log of a run.
    pub fn run(&self) -> Option<RunId> {
        self.as_str().strip_prefix("run:").map(RunId::new)
    }
}

/// Position in one stream; the first event is 0 and there are no gaps.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since the Unix epoch, from the host's single clock.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Saturates, so that a hostile duration cannot wrap a deadline into the past.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// UTC with milliseconds. Years beyond 9999 are clamped: no reader understands them.
    pub fn rfc3339(self) -> String {
        const DAY_MS: i64 = 86_400_000;
        const END_OF_9999: i64 = 253_402_300_799_999;
        let ms = self.0.clamp(-62_135_596_800_000, END_OF_9999);
        let (days, in_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
        // Counted in eras of 400 years that begin on the first of March.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (seconds, ms) = (in_day / 1000, in_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        // Every event that is sent has a time, and formatting costs ten times as much.
        let mut text = b"0000-00-00T00:00:00.000Z".to_vec();
        for (digits, mut value) in [
            (0..4, year),
            (5..7, month),
            (8..10, day),
            (11..13, hour),
            (14..16, minute),
            (17..19, second),
            (20..23, ms),
        ] {
            for digit in text[digits].iter_mut().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        }
        String::from_utf8(text).expect("digits are ASCII")
    }

    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}
