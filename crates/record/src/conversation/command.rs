//! The commands of a session, and its replies.

use super::{
    AdminActor, AgentMode, DraftDecision, InboundMessage, ParentNode, SessionStart, WorkOutcome,
    WorkflowResult,
};
use crate::{EffectId, EscalationId, FlowId, InterruptId, RunId};
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
    /// A workflow ended that a flow of this session started.
    WorkflowFinished {
        interrupt: InterruptId,
        result: Box<WorkflowResult>,
    },
    /// A node of a workflow starts a flow and waits for its end.
    StartFlow {
        flow_id: FlowId,
        input: Option<Value>,
        parent: ParentNode,
        on_active: OnActiveFlow,
    },
    /// The workflow that a flow was started for does not wait any more.
    CancelFlow { parent: ParentNode },
    /// The agent's rules allowed or refused an action.
    RecordAuthorization(Box<super::AuthorizationDecision>),
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
    /// The window in which messages become one turn closes.
    Burst,
    /// A question is still unanswered.
    Reminder { id: InterruptId, index: u32 },
    /// The user did not allow a call of the model in time.
    Approval { id: InterruptId },
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
    /// The answer of the user to the open question, given on their behalf.
    AnswerForUser {
        interrupt: InterruptId,
        value: Value,
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
}
