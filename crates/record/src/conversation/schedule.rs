//! Schedules: what starts a flow by the clock, for one user or for many, or a run of a workflow, and what became of
//! each occurrence.

use crate::{
    AgentId, FlowId, Object, Owner, Principal, RunId, ScheduleId, ScheduleRunId, SessionId,
    Timestamp, WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an author or an admin wrote, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleDefinition {
    /// What users are addressed with. A schedule of a workflow has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    pub trigger: ScheduleTrigger,
    /// The zone in which the trigger is read.
    pub timezone: String,
    pub target: ScheduleTarget,
    /// A user without an active session gets one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_session_bootstrap: bool,
    #[serde(default)]
    pub on_missed: OnMissed,
    #[serde(default)]
    pub on_active_flow: ScheduledActiveFlow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum ScheduleTrigger {
    Cron { expr: String },
    Once { run_at: Timestamp },
}

impl ScheduleTrigger {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Once { .. } => "once",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ScheduleTarget {
    User(UserTarget),
    Segment(CampaignTarget),
    /// Nobody: a run of a workflow starts.
    Workflow(WorkflowTarget),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserTarget {
    pub user_external_id: String,
    /// Only this session of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CampaignTarget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<String>,
    pub segment: SegmentSelector,
}

/// The trigger of a workflow's document that a schedule carries out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowTarget {
    pub workflow_id: WorkflowId,
    pub trigger_id: String,
    /// The document is the operator's: every tenant sees it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// Who registered the document last. Runs are theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_by: Option<Principal>,
}

/// Which users of an agent a campaign addresses. Evaluated when it is triggered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum SegmentSelector {
    All,
    ActiveSince { active_since_days: u32 },
    Tag { tag: String },
    CustomQuery { query: String },
}

impl ScheduleTarget {
    /// The kind of a target that is a workflow.
    pub const WORKFLOW: &'static str = "workflow";

    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Segment(_) => "segment",
            Self::Workflow(_) => Self::WORKFLOW,
        }
    }

    pub fn user(&self) -> Option<&UserTarget> {
        match self {
            Self::User(user) => Some(user),
            Self::Segment(_) | Self::Workflow(_) => None,
        }
    }

    pub fn campaign(&self) -> Option<&CampaignTarget> {
        match self {
            Self::Segment(campaign) => Some(campaign),
            Self::User(_) | Self::Workflow(_) => None,
        }
    }

    pub fn workflow(&self) -> Option<&WorkflowTarget> {
        match self {
            Self::Workflow(workflow) => Some(workflow),
            Self::User(_) | Self::Segment(_) => None,
        }
    }

    pub fn campaign_id(&self) -> Option<&String> {
        self.campaign()?.campaign_id.as_ref()
    }
}

impl SegmentSelector {
    /// A short name of the segment, for hooks and events.
    pub fn segment_id(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::ActiveSince { active_since_days } => format!("active_since:{active_since_days}"),
            Self::Tag { tag } => format!("tag:{tag}"),
            Self::CustomQuery { query } => format!("query:{query}"),
        }
    }
}

/// What happens to occurrences that nobody looked at in time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OnMissed {
    pub policy: MissedPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u64>,
}

impl OnMissed {
    pub const DEFAULT_MAX_RUNS: u32 = 1;
    pub const DEFAULT_MAX_AGE_SECONDS: u64 = 86_400;

    /// The most missed occurrences that are made up for.
    pub fn max_runs(&self) -> u32 {
        match self.policy {
            MissedPolicy::Skip => 0,
            MissedPolicy::CatchUp => self.max_runs.unwrap_or(Self::DEFAULT_MAX_RUNS),
        }
    }

    pub fn max_age_ms(&self) -> u64 {
        let seconds = self.max_age_seconds;
        seconds
            .unwrap_or(Self::DEFAULT_MAX_AGE_SECONDS)
            .saturating_mul(1_000)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    #[default]
    Skip,
    CatchUp,
}

/// What a scheduled turn does where another flow merely asks or sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduledActiveFlow {
    #[default]
    Skip,
    Preempt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleStatus {
    Active,
    Paused,
    Canceled,
    Completed,
}

impl ScheduleStatus {
    pub const ALL: [Self; 4] = [Self::Active, Self::Paused, Self::Canceled, Self::Completed];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Canceled => "canceled",
            Self::Completed => "completed",
        }
    }
}

/// Where a schedule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulePlane {
    Control,
    Tool,
    Config,
    /// A trigger of a workflow's document.
    Workflow,
}

/// Who made a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleOrigin {
    pub plane: SchedulePlane,
    /// The admin, on the control plane; who registered the document of a workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    /// The user in whose conversation it was made, on the tool plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

/// A schedule as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleRecord {
    pub id: ScheduleId,
    /// Whose flow it starts. A schedule of a workflow has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    pub owner: Owner,
    pub definition: ScheduleDefinition,
    pub status: ScheduleStatus,
    /// Raised by every change.
    pub version: u64,
    pub created_by: ScheduleOrigin,
    pub created_at: Timestamp,
    #[serde(default)]
    pub next_run_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<Timestamp>,
}

/// How an occurrence, or one recipient of it, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduledOutcome {
    Success,
    Skipped,
    Failed,
    CanceledHitl,
}

impl ScheduledOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::CanceledHitl => "canceled_hitl",
        }
    }
}

/// How many recipients ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeCounts {
    pub success: u32,
    pub skipped: u32,
    pub failed: u32,
    pub canceled_hitl: u32,
}

impl OutcomeCounts {
    pub fn add(&mut self, outcome: ScheduledOutcome, recipients: u32) {
        let count = match outcome {
            ScheduledOutcome::Success => &mut self.success,
            ScheduledOutcome::Skipped => &mut self.skipped,
            ScheduledOutcome::Failed => &mut self.failed,
            ScheduledOutcome::CanceledHitl => &mut self.canceled_hitl,
        };
        *count += recipients;
    }

    pub fn total(&self) -> u32 {
        self.success + self.skipped + self.failed + self.canceled_hitl
    }

    /// The outcome of the whole, and whether only a part of it succeeded.
    pub fn aggregate(&self) -> (ScheduledOutcome, bool) {
        let total = self.total();
        if self.success > 0 {
            (ScheduledOutcome::Success, self.success < total)
        } else if total > 0 && self.canceled_hitl == total {
            (ScheduledOutcome::CanceledHitl, false)
        } else if self.failed > 0 {
            (ScheduledOutcome::Failed, false)
        } else {
            (ScheduledOutcome::Skipped, false)
        }
    }
}

/// One occurrence that was claimed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleRunRecord {
    pub id: ScheduleRunId,
    pub schedule_id: ScheduleId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    pub owner: Owner,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    pub target: ScheduleTarget,
    pub scheduled_for: Timestamp,
    pub started_at: Timestamp,
    /// Raised each time somebody else took the run over.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ScheduledOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Some recipients succeeded, and not all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The turn of a run for one user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The run of a workflow that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_run_id: Option<RunId>,
    /// How many users the segment had when it was triggered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expanded_recipients: Option<u32>,
    pub counts: OutcomeCounts,
}

/// One user whom a campaign addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecipientRecord {
    pub user_external_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ScheduledOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
