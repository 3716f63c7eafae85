//! Work that a session requests from outside: calls of the agent's code, of its model and tools, and
//! messages to send. It is an outbox entry before it is attempted.

use super::{
    CandidateOrigin, Modality, OpenEscalation, ParentNode, ProfileChange, ScheduleToolCall,
    ScheduledTurnReport, SentMessage, WorkflowAnswer,
};
use crate::{EscalationId, InterruptId, ModelUsage, RunId, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One outbox entry of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum SessionWork {
    /// Go on with the turn, or start the next one.
    Continue,
    /// Call a function of the agent.
    Code(CodeCall),
    /// Call the agent's model. The prompt is rendered when the call is made.
    Model {
        purpose: ModelPurpose,
        messages: Vec<ChatMessage>,
        /// Names of the tools to offer; empty for none.
        tools: Vec<String>,
        /// Readers may see the answer while it is written. Not where somebody may still change it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        streams: bool,
    },
    /// Call a tool.
    Tool {
        name: String,
        args: Value,
    },
    Send(SendRequest),
    /// Tell people outside of an escalation, or of a text that waits for an approval.
    Notify(NoticeRequest),
    /// Make text of what is said in a message.
    Transcribe {
        media: Value,
        timeout_ms: u64,
    },
    StartWorkflow(WorkflowStart),
    /// Nobody waits for a workflow any more.
    #[serde(rename_all = "camelCase")]
    CancelWorkflow {
        run_id: RunId,
    },
    /// Answer a question of a workflow that the session shows.
    AnswerWorkflow(Box<WorkflowAnswer>),
    /// Tell a workflow how its flow ended.
    ReportFlow(Box<FlowReport>),
    /// List the open escalations of the agent.
    ListEscalations,
    /// Change or list the schedules of the user.
    ManageSchedule(ScheduleToolCall),
    /// Tell a schedule how its turn ended.
    ReportSchedule(Box<ScheduledTurnReport>),
}

/// A workflow that a session starts. The effect's id is its idempotency key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStart {
    pub workflow_id: WorkflowId,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Value>,
    /// The end of the run is reported with this id, where somebody waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_id: Option<InterruptId>,
    /// Questions of the workflow are put to the user or to the admins of this session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surface_interrupts: bool,
}

/// How a flow ended that a workflow started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowReport {
    pub parent: ParentNode,
    /// Absent when the run never began. It differs from the one the workflow named after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_run_id: Option<RunId>,
    /// `completed`, `failed` or `cancelled`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it never began, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    pub answers: BTreeMap<String, String>,
}

impl SessionWork {
    /// A short stable name for metrics and rows.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Continue => "session.continue",
            Self::Code(_) => "session.code",
            Self::Model { .. } => "session.model",
            Self::Tool { .. } => "session.tool",
            Self::Send(_) => "session.send",
            Self::Notify(_) => "session.notify",
            Self::Transcribe { .. } => "session.transcribe",
            Self::StartWorkflow(_) => "session.workflow",
            Self::CancelWorkflow { .. } => "session.cancel_workflow",
            Self::AnswerWorkflow(_) => "session.answer_workflow",
            Self::ReportFlow(_) => "session.report_flow",
            Self::ListEscalations => "session.escalations",
            Self::ManageSchedule(_) => "session.schedule",
            Self::ReportSchedule(_) => "session.report_schedule",
        }
    }
}

/// A function of the agent's code and its arguments. The context is built from the session when the
/// function is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeCall {
    /// Where the function is in the agent's configuration: `beforeLLM`, `commands.note.handler`.
    pub path: String,
    pub args: Vec<Value>,
    pub timeout_ms: u64,
}

/// What a call of code did, all recorded by the step that made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeOutcome {
    /// The returned value, if it returned.
    #[serde(default)]
    pub value: Option<Value>,
    /// Why it did not return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CodeError>,
    /// Session keys it set, or deleted when `None`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kv: Vec<(String, Option<Value>)>,
    /// Texts it sent, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_messages: Vec<SideMessage>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_session: bool,
    /// What it changed of the user's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<ProfileChange>>,
}

/// Why a call of code gave no value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeError {
    /// `not_found`, `invalid_args`, `failed`, `timeout` or `outcome_unknown`.
    pub code: String,
    pub message: String,
}

/// A text that code sent beside the response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideMessage {
    pub to: String,
    pub text: String,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelPurpose {
    Chat,
    Router,
    /// Reads a structured answer out of a reply.
    Extract,
}

impl ModelPurpose {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Router => "router",
            Self::Extract => "extract",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    System,
    User,
    Assistant,
    Tool,
}

/// One message of a model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatMessage {
    pub role: ChatRole,
    pub content: String,
    /// The calls an assistant message asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatToolCall>,
    /// The call a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl ChatMessage {
    pub fn new(role: ChatRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatToolCall {
    pub id: String,
    pub name: String,
    pub args: Value,
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatAnswer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The object, when structured output was asked for and given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ModelUsage>,
}

/// A text to hand to a transport. The effect's id is its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendRequest {
    pub transport: String,
    pub to: String,
    pub text: String,
    /// Speech is made of the text when it is sent.
    #[serde(default, skip_serializing_if = "Modality::is_text")]
    pub modality: Modality,
    /// Attempts that failed.
    #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
    pub attempts: u32,
    /// What the text is for; absent in entries of releases before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<CandidateOrigin>,
    /// The ids of the parts that the network took: a long text is several messages there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent_parts: Vec<Option<String>>,
}

/// A notice of a question to somebody outside. What it says is read from the session when it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoticeRequest {
    pub transport: String,
    pub to: String,
    #[serde(flatten)]
    pub about: NoticeSubject,
    /// Attempts that failed.
    #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
    pub attempts: u32,
}

/// What a notice is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NoticeSubject {
    #[serde(rename = "escalation_id")]
    Escalation(EscalationId),
    /// A text that waits for an approval.
    #[serde(rename = "draft_id")]
    Draft(InterruptId),
}

/// How a piece of work ended.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkOutcome {
    Continue,
    Code(CodeOutcome),
    Model(Result<ChatAnswer, CodeError>),
    Tool(CodeOutcome),
    /// The transport took the message, or refused it for good.
    Sent(Result<SentMessage, CodeError>),
    Transcript(Result<String, CodeError>),
    /// The run that was started.
    Workflow(Result<RunId, CodeError>),
    Escalations(Result<Vec<OpenEscalation>, CodeError>),
    /// What the tool answers. The code `scope_denied` means a schedule that is not the user's.
    Schedule(Result<Value, CodeError>),
    /// Whether the workflow took the answer. Also without an error, its question may have been answered elsewhere.
    WorkflowAnswered {
        interrupt: InterruptId,
        error: Option<CodeError>,
    },
    /// Somebody was told; nothing follows from it.
    Reported,
    /// Nobody could be told of an escalation.
    NoticeFailed(CodeError),
}
