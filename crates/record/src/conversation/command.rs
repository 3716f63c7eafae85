//! The commands of a session, and its replies.

use super::{
    AdminActor, AgentMode, ClosedWorkflowQuestion, DraftDecision, FlowRef, InboundMessage,
    ParentNode, ProfileChange, ProxyInput, ScheduledTurn, SessionStart, WorkOutcome,
    WorkflowQuestion, WorkflowResult,
};
use crate::{EffectId, EscalationId, FlowId, InterruptId, MessageId, ProxyId, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum SessionCommand {
    /// The first message of a new session.
    Start {
        start: Box<SessionStart>,
        message: Box<InboundMessage>,
    },
    /// A session begins without a message.
    Open { start: Box<SessionStart> },
    /// A message of the user.
    Receive { message: Box<InboundMessage> },
    /// The same. If nothing else is under way or waits, its turn begins in the same decision: the message is
    /// durable before anything outside happens for it.
    ReceiveAndBegin { message: Box<InboundMessage> },
    /// A piece of work was performed, or failed for good.
    FinishWork {
        effect: EffectId,
        outcome: Box<WorkOutcome>,
    },
    /// A durable timer is due.
    FireTimer(SessionTimer),
    /// An admin acts. Whether the actor may was decided before, by the agent's rules.
    Act {
        actor: AdminActor,
        request: AdminRequest,
    },
    /// An admin wrote a command elsewhere that acts on this session. Whether they may is decided by
    /// its turn.
    RunCommand {
        message: Box<InboundMessage>,
        /// The transport the admin writes by.
        transport: String,
        /// The word that named this session.
        target: String,
    },
    /// An admin wrote for a bridge of this session.
    ReceiveProxyInput {
        proxy: ProxyId,
        input: Box<ProxyInput>,
    },
    /// A workflow ended that a flow of this session started.
    WorkflowFinished {
        interrupt: InterruptId,
        result: Box<WorkflowResult>,
    },
    /// A workflow asks something that this session shows.
    WorkflowAsked {
        /// The wait of the flow that started it.
        interrupt: InterruptId,
        question: Box<WorkflowQuestion>,
    },
    /// A question of a workflow is no longer open.
    WorkflowQuestionClosed(Box<ClosedWorkflowQuestion>),
    /// A node of a workflow starts a flow and waits for its end.
    StartFlow {
        flow_id: FlowId,
        input: Option<Value>,
        parent: ParentNode,
        on_active: OnActiveFlow,
    },
    /// A schedule begins a turn.
    BeginScheduled { turn: Box<ScheduledTurn> },
    /// The workflow that a flow was started for does not wait any more.
    CancelFlow { parent: ParentNode },
    /// Strict mode ran the code of a flow run again, and it did something else.
    ReportNondeterminism(Box<Nondeterminism>),
    /// The profile of the user was changed from outside.
    ChangeProfile(Box<ProfileChange>),
    /// Somebody answered the user from the agent's own account, past this host.
    RecordExternalReply {
        message_id: MessageId,
        text: String,
        sent_at: Timestamp,
    },
    /// A text was about to be sent that a person's takeover holds back.
    WithholdText { effect: EffectId },
    /// The agent's rules allowed or refused an action.
    RecordAuthorization(Box<super::AuthorizationDecision>),
    /// A command of an admin with the answer of the agent's rules that allows it. Both are one decision: no crash
    /// can keep the one without the other.
    Authorized {
        decision: Box<super::AuthorizationDecision>,
        command: Box<SessionCommand>,
    },
}

impl SessionCommand {
    /// The command without what allows it.
    #[must_use]
    pub fn plain(&self) -> &Self {
        match self {
            Self::Authorized { command, .. } => command.plain(),
            command => command,
        }
    }
}

/// The code of a flow run does not do the same each time.
#[derive(Clone, Debug, PartialEq)]
pub struct Nondeterminism {
    pub flow: FlowRef,
    pub code_hash: String,
    pub step: u32,
    pub expected: Value,
    pub actual: Value,
}

/// Names a durable timer of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum SessionTimer {
    /// The session was idle for too long.
    Idle,
    /// The deadline of the interrupt a flow waits at.
    Interrupt { id: InterruptId },
    /// The deadline of an escalation.
    Escalation { id: EscalationId },
    /// The end of a bridge's own time.
    Proxy { id: ProxyId },
    /// The window in which messages become one turn closes.
    Burst,
    /// A question is still unanswered.
    Reminder { id: InterruptId, index: u32 },
    /// The user did not allow a call of the model in time.
    Approval { id: InterruptId },
    /// The person who has the floor gave no sign for too long.
    TakeoverIdle,
}

/// What happens to a flow of a workflow while another flow is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnActiveFlow {
    #[default]
    Wait,
    Fail,
    /// A flow that merely asks is ended. An open interrupt is never ended by this.
    Preempt,
}

/// What an operator does with a diverged run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceAction {
    Abort,
    /// Its code was restored.
    Retry,
    /// A new run with the same input.
    Restart,
}

/// What an admin may do to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum AdminRequest {
    Resolve {
        /// `None`: the session's open escalation.
        escalation: Option<EscalationId>,
        decision: EscalationDecision,
    },
    Desk {
        escalation: EscalationId,
        action: DeskAction,
    },
    StartFlow {
        flow_id: FlowId,
        input: Option<Value>,
    },
    AbortFlow,
    EndSession,
    SetMode {
        mode: AgentMode,
    },
    /// A held text is sent or dropped.
    DecideDraft {
        draft: InterruptId,
        decision: DraftDecision,
    },
    SettleDivergence {
        run: RunId,
        action: DivergenceAction,
    },
    /// The actor speaks with the user from now on, and the agent does not.
    TakeOver,
    /// A text to the user by the person who has the floor.
    SendTakeoverMessage {
        /// Its identity as the caller gave it.
        message_id: MessageId,
        text: String,
    },
    /// The agent speaks again.
    HandBack {
        note: Option<String>,
    },
    /// The answer of the user to the open question, given on their behalf.
    AnswerForUser {
        interrupt: InterruptId,
        value: Value,
    },
    StopProxy {
        proxy: ProxyId,
        reason: Option<String>,
    },
}

/// Whose work an escalation becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskAction {
    /// The admin's who acts.
    Claim,
    /// Nobody's.
    Release,
    Assign {
        to: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct EscalationDecision {
    pub approved: bool,
    pub message: Option<String>,
    pub action_data: Option<Value>,
    /// Whom the caller named as the decider.
    pub claimed_by: Option<String>,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionReply {
    /// The message was accepted; its turn may be under way or wait.
    Accepted {
        turn: u64,
    },
    /// Something changed, or nothing was left to do.
    Done,
    Escalation(Box<super::EscalationRecord>),
    /// The bridge is stopped. `turn` hands that to the flow that waited; without one it was stopped before, or
    /// nobody waited.
    ProxyStopped {
        was_active: bool,
        turn: Option<u64>,
    },
}
