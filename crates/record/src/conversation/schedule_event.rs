//! The events of a schedule. Past tense, append-only, enough to rebuild its whole state.

use super::{
    AdminActor, OutcomeCounts, ScheduleDefinition, ScheduleOrigin, ScheduleStatus, ScheduledOutcome,
};
use crate::{AgentId, Owner, RunId, ScheduleRunId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// One event with what all share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleEvent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AdminActor>,
    pub body: ScheduleEventBody,
}

/// The bounds of one run, as they were when it was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunLimits {
    /// Turns under way at once.
    pub max_concurrent: u32,
    /// Turns that begin within a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
    pub claim_ttl_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ScheduleEventBody {
    Created {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<AgentId>,
        owner: Owner,
        definition: Box<ScheduleDefinition>,
        created_by: ScheduleOrigin,
        /// What the agent's file or the document of the workflow says, hashed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        configured: Option<String>,
        next_run_at: Option<Timestamp>,
    },
    /// What it does or whether it does it was changed.
    Updated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<Box<ScheduleDefinition>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        configured: Option<String>,
        status: ScheduleStatus,
        next_run_at: Option<Timestamp>,
    },
    Canceled {
        reason: String,
    },
    /// An occurrence was claimed. Nobody claims it again.
    Triggered {
        run_id: ScheduleRunId,
        scheduled_for: Timestamp,
        next_run_at: Option<Timestamp>,
    },
    /// Occurrences that take place no more.
    Skipped {
        reason: String,
        scheduled_for: Timestamp,
        /// The last of several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        count: u32,
        next_run_at: Option<Timestamp>,
    },
    RunStarted {
        run_id: ScheduleRunId,
        scheduled_for: Timestamp,
        limits: RunLimits,
        claimed_by: String,
    },
    /// Whoever has the claim still works on it.
    ClaimRenewed {
        run_id: ScheduleRunId,
    },
    /// The claim ended without the run being finished; another process goes on.
    ClaimTakenOver {
        run_id: ScheduleRunId,
        attempt: u32,
        claimed_by: String,
    },
    /// Part of the users of a segment, as they were found.
    RecipientsListed {
        run_id: ScheduleRunId,
        first: u32,
        users: Vec<String>,
    },
    CampaignResolved {
        run_id: ScheduleRunId,
        attempt: u32,
        recipients: u32,
    },
    /// More recipients may begin.
    ThrottleReleased {
        run_id: ScheduleRunId,
        allowed: u32,
    },
    /// The turn of one user was accepted by their session, or could not be.
    TurnStarted {
        run_id: ScheduleRunId,
        attempt: u32,
        ordinal: u32,
        user_external_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
    },
    /// How one user of a campaign ended.
    RecipientFinished {
        run_id: ScheduleRunId,
        attempt: u32,
        ordinal: u32,
        user_external_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
        outcome: ScheduledOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    RunFinished {
        run_id: ScheduleRunId,
        attempt: u32,
        outcome: ScheduledOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
        counts: OutcomeCounts,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
        /// The run of a workflow that it started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow_run_id: Option<RunId>,
    },
}

impl ScheduleEventBody {
    /// The occurrence it is about.
    pub fn run_id(&self) -> Option<&ScheduleRunId> {
        match self {
            Self::Created { .. }
            | Self::Updated { .. }
            | Self::Canceled { .. }
            | Self::Skipped { .. } => None,
            Self::Triggered { run_id, .. }
            | Self::RunStarted { run_id, .. }
            | Self::ClaimRenewed { run_id }
            | Self::ClaimTakenOver { run_id, .. }
            | Self::RecipientsListed { run_id, .. }
            | Self::CampaignResolved { run_id, .. }
            | Self::ThrottleReleased { run_id, .. }
            | Self::TurnStarted { run_id, .. }
            | Self::RecipientFinished { run_id, .. }
            | Self::RunFinished { run_id, .. } => Some(run_id),
        }
    }
}
