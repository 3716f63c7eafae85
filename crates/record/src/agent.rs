//! Agent events, and how work is handed from a supervisor to its workers.

use crate::{ErrorInfo, NodeId, Object, Principal, RunId, Seq, ToolTransport, Work, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event of an agent at a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentEvent {
    pub node: NodeId,
    pub agent_id: String,
    #[serde(rename = "said")]
    pub kind: AgentEventKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum AgentEventKind {
    Reasoned {
        reasoning: String,
        verbosity: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_count: Option<u64>,
    },
    /// One chunk of reasoning that is still being streamed.
    ReasoningDelta { delta: String, sequence: u32 },
    ToolCalled {
        tool: String,
        call: String,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        inputs: Option<Value>,
        /// `None` where no server was called. What was sent is recorded by its hash only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<ToolTransport>,
        /// The principal on whose behalf the call is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
    },
    ToolReturned {
        tool: String,
        call: String,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        outcome: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// It came from outside: it is data and grants no authority.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
    /// Work passes from `agent_id` to another agent.
    HandedOff {
        to: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        context: Option<Value>,
    },
    Decided {
        decision: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
    },
    /// A verdict about something that is not merged or ended yet.
    Verified {
        #[serde(rename = "judged")]
        verification_subject: VerificationSubject,
        verdict: VerifierVerdict,
        /// Names of the checked criteria that the author declared; never the findings.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        criteria: Vec<String>,
        /// The verifier's confidence in its own verdict.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
        /// What should be improved. For the next attempt; not part of the public verdict.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
}

/// A request to a verifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerificationRequest {
    pub node: NodeId,
    /// The supervisor whose verifier it is.
    pub supervisor: NodeId,
    pub agent_id: String,
    #[serde(rename = "judged")]
    pub verification_subject: VerificationSubject,
    /// How the verifier is called.
    pub work: Work,
}

/// What a verifier checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum VerificationSubject {
    /// The supervisor's decision to end the run.
    Decision { decided: Seq },
    /// A worker's output, before it is harvested.
    Output { index: u32, child: RunId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifierVerdict {
    Pass,
    Fail,
    /// Another iteration is needed.
    Revise,
}

impl VerifierVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Revise => "revise",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Pass, Self::Fail, Self::Revise];
        all.into_iter().find(|verdict| verdict.as_str() == text)
    }
}

/// The agent's confidence, and the threshold it missed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowConfidence {
    pub agent_id: String,
    pub threshold: f64,
    pub observed: f64,
}

/// One step in handing work to one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    pub node: NodeId,
    /// The index among the workers that the decision named; one may be named twice.
    pub index: u32,
    pub worker: WorkflowId,
    pub step: HandoffStep,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum HandoffStep {
    Began,
    /// The child run exists, or will exist after any crash.
    Succeeded {
        child: RunId,
        /// The agent the worker belongs to, if all its nodes belong to one agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    Failed {
        error: ErrorInfo,
    },
    ChildCompleted {
        child: RunId,
        /// The mapped variables, until they are harvested.
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        variables: Object,
        /// Those of them that come from a tool server.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        untrusted: Vec<String>,
    },
    ChildFailed {
        child: RunId,
        error: ErrorInfo,
    },
    ChildCancelled {
        child: RunId,
    },
    Harvested {
        child: RunId,
        keys: Vec<String>,
    },
}

impl HandoffStep {
    /// The phase as the protocol names it.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::Began => "dispatch.began",
            Self::Succeeded { .. } => "dispatch.succeeded",
            Self::Failed { .. } => "dispatch.failed",
            Self::ChildCompleted { .. } => "child.completed",
            Self::ChildFailed { .. } => "child.failed",
            Self::ChildCancelled { .. } => "child.cancelled",
            Self::Harvested { .. } => "output.harvested",
        }
    }

    pub fn child(&self) -> Option<&RunId> {
        match self {
            Self::Began | Self::Failed { .. } => None,
            Self::Succeeded { child, .. }
            | Self::ChildCompleted { child, .. }
            | Self::ChildFailed { child, .. }
            | Self::ChildCancelled { child }
            | Self::Harvested { child, .. } => Some(child),
        }
    }
}

/// The kind of interrupt that a decision below the floor opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EscalationKind {
    Clarify,
    Escalate,
}

/// How a fan-out of parallel workers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinOutcome {
    Satisfied,
    Failed,
    Partial,
}

impl JoinOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Satisfied => "satisfied",
            Self::Failed => "failed",
            Self::Partial => "partial",
        }
    }
}
