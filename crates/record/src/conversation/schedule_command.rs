//! The commands of a schedule, the work it requests, and what passes between a schedule and the sessions in
//! which its turns take place.

use super::{
    AdminActor, ScheduleDefinition, ScheduleOrigin, ScheduledActiveFlow, ScheduledOutcome,
};
use crate::{
    AgentId, FlowId, MessageId, Object, Owner, RunId, ScheduleId, ScheduleRunId, SessionId,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleCommand {
    /// Repeating it changes nothing.
    Create {
        agent_id: AgentId,
        owner: Owner,
        definition: Box<ScheduleDefinition>,
        created_by: ScheduleOrigin,
        actor: Option<AdminActor>,
    },
    /// The agent's file, or the document of a workflow, has this schedule.
    Configure {
        agent_id: Option<AgentId>,
        owner: Owner,
        definition: Box<ScheduleDefinition>,
        /// Changes with what was written.
        fingerprint: String,
    },
    /// The file or the document has it no more.
    Unconfigure,
    Update {
        /// The version the caller has seen.
        expected: Option<u64>,
        definition: Box<ScheduleDefinition>,
        actor: Option<AdminActor>,
    },
    Pause {
        expected: Option<u64>,
        actor: Option<AdminActor>,
    },
    Resume {
        expected: Option<u64>,
        actor: Option<AdminActor>,
    },
    Cancel {
        expected: Option<u64>,
        actor: Option<AdminActor>,
        reason: String,
    },
    FireTimer(ScheduleTimer),
    /// The users of the segment, in their order.
    ListRecipients {
        run_id: ScheduleRunId,
        users: Result<Vec<String>, String>,
    },
    /// The turn of a user was accepted by their session, or why it was not.
    NoteStart(Box<ScheduledStart>),
    /// The turn of a user is over, as far as the schedule is concerned.
    NoteOutcome(Box<ScheduledTurnReport>),
    /// The run of a workflow began, or why it did not.
    NoteRun(Box<ScheduledRunStart>),
}

/// What became of an occurrence that starts a run of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledRunStart {
    pub run_id: ScheduleRunId,
    pub outcome: ScheduledOutcome,
    pub reason: Option<String>,
    pub workflow_run_id: Option<RunId>,
}

/// What became of the attempt to begin the turn of one user.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledStart {
    pub run_id: ScheduleRunId,
    pub ordinal: u32,
    pub user_external_id: String,
    pub session_id: Option<SessionId>,
    /// The turn, or how the user ended without one.
    pub turn: Result<u64, (ScheduledOutcome, String)>,
}

/// What a session tells the schedule of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledTurnReport {
    pub schedule_id: ScheduleId,
    pub run_id: ScheduleRunId,
    pub ordinal: u32,
    pub user_external_id: String,
    pub session_id: SessionId,
    pub turn: u64,
    pub outcome: ScheduledOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Names a durable timer of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum ScheduleTimer {
    /// The next occurrence.
    Due,
    /// The claim of a run ends.
    Claim { run: ScheduleRunId },
    /// More recipients of a run may begin.
    Throttle { run: ScheduleRunId },
}

/// One outbox entry of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ScheduleWork {
    /// Find the users of a segment.
    ResolveSegment { run_id: ScheduleRunId },
    /// Begin the turn of one user.
    StartTurn { run_id: ScheduleRunId, ordinal: u32 },
    /// Start the run of a workflow.
    StartRun { run_id: ScheduleRunId },
}

impl ScheduleWork {
    /// A short stable name for metrics and rows.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ResolveSegment { .. } => "schedule.segment",
            Self::StartTurn { .. } => "schedule.turn",
            Self::StartRun { .. } => "schedule.run",
        }
    }
}

/// A turn that a schedule begins in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledTurn {
    pub schedule_id: ScheduleId,
    pub run_id: ScheduleRunId,
    pub ordinal: u32,
    /// One id takes place at most once.
    pub dedup_id: MessageId,
    pub flow_id: FlowId,
    pub trigger_type: String,
    pub scheduled_for: Timestamp,
    pub attempt: u32,
    #[serde(default)]
    pub on_active_flow: ScheduledActiveFlow,
    /// For recipients of a campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Value>,
}

/// An operation on the schedules of the current user, as the model or a flow asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleToolCall {
    pub operation: ScheduleToolOperation,
    pub args: Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleToolOperation {
    Create,
    Update,
    Cancel,
    List,
}

impl ScheduleToolOperation {
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Cancel, Self::List];

    /// The name of its tool.
    pub const fn tool(self) -> &'static str {
        match self {
            Self::Create => "createCurrentUserSchedule",
            Self::Update => "updateCurrentUserSchedule",
            Self::Cancel => "cancelCurrentUserSchedule",
            Self::List => "listCurrentUserSchedules",
        }
    }

    pub fn of_tool(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.tool() == name)
    }
}

/// The schedule a response belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleRef {
    pub schedule_id: ScheduleId,
    pub trigger_type: String,
    pub scheduled_for: Timestamp,
    pub run_attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_id: Option<String>,
    /// For recipients of a campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient_user_external_id: Option<String>,
}

impl ScheduledTurn {
    /// What readers of responses are told; the recipient is this user.
    pub fn reference(&self, user_external_id: &str) -> ScheduleRef {
        let is_campaign = self.segment_id.is_some();
        ScheduleRef {
            schedule_id: self.schedule_id.clone(),
            trigger_type: self.trigger_type.clone(),
            scheduled_for: self.scheduled_for,
            run_attempt: self.attempt,
            campaign_id: self.campaign_id.clone(),
            segment_id: self.segment_id.clone(),
            recipient_user_external_id: is_campaign.then(|| user_external_id.to_owned()),
        }
    }
}
