//! The commands of a run, and the replies. The engine turns a command into events or refuses it.

use crate::conversation::FlowReport;
use crate::{DeciderSnapshot, RunId, TimerKey, Timestamp, Vote};
use crate::{
    Denial, EffectId, ErrorInfo, InterruptId, NodeId, Object, PackAnswer, Principal, RunStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Stop the run; `by_parent` when the cancel comes from a parent run.
    Cancel {
        reason: Option<String>,
        by: Option<Principal>,
        by_parent: Option<RunId>,
    },
    Pause {
        reason: Option<String>,
        policy: DrainPolicy,
    },
    Resume {
        reason: Option<String>,
    },
    /// A durable timer is due.
    FireTimer(TimerKey),
    /// An effect was performed, or failed for good.
    FinishEffect {
        effect: EffectId,
        outcome: EffectOutcome,
    },
    /// A child run reports.
    ReportChildOutcome {
        node: NodeId,
        outcome: ChildOutcome,
    },
    /// A flow that a node started has ended, or could not begin.
    ReportFlow(Box<FlowReport>),
    /// A person answers an open interrupt.
    ResolveInterrupt {
        node: NodeId,
        /// The exact interrupt; a node may open another one later.
        interrupt: Option<InterruptId>,
        value: Value,
        by: Option<Principal>,
        /// The credential was a signed link, not a key.
        by_link: bool,
        /// The result of access control that allowed the decision.
        decider: DeciderSnapshot,
    },
    /// A person without permission tried to answer. Recorded; the interrupt stays open.
    DenyDecision {
        node: NodeId,
        interrupt: Option<InterruptId>,
        /// `None` for a signed link.
        by: Option<Principal>,
        why: Denial,
    },
    /// An external event that a node waits for, or will wait for.
    DeliverEvent {
        /// The sender's own id of the event; a second delivery with the same id changes nothing.
        event_id: String,
        event_type: String,
        payload: Object,
        by: Option<Principal>,
    },
    /// Continue with ready work, after a decision that stopped early.
    Continue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrainPolicy {
    Immediate,
    DrainCurrentNode,
}

impl DrainPolicy {
    pub const ALL: [Self; 2] = [Self::Immediate, Self::DrainCurrentNode];
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum EffectOutcome {
    Done {
        outputs: Object,
    },
    Failed {
        error: ErrorInfo,
    },
    /// The answer of a pack's node.
    Pack(Box<PackAnswer>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum ChildOutcome {
    /// The child waits; the parent mirrors it.
    Waiting {
        child: RunId,
        /// The run that owns the interrupt: the child itself, or one of its descendants.
        asker: RunId,
        node: NodeId,
        status: RunStatus,
        interrupt: InterruptId,
        kind: String,
        /// The interrupt's key and data; absent in reports of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// The child continues after waiting.
    Resumed { child: RunId },
    Ended {
        child: RunId,
        status: RunStatus,
        /// The variables that the parent maps, if the child completed and has them.
        variables: Object,
        /// Those of them that come from a tool server.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        untrusted: Vec<String>,
        error: Option<ErrorInfo>,
    },
}

/// The engine's answer to an accepted command.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Nothing to do: a stale timer, or a repeated effect result.
    Unchanged,
    Accepted,
    Cancel {
        status: RunStatus,
        already_terminal: bool,
    },
    Paused {
        at: Timestamp,
    },
    Resumed {
        at: Timestamp,
    },
    Resolved {
        interrupt: InterruptId,
        node: NodeId,
        kind: String,
        /// `None` while more votes are needed, or after a follow-up question.
        outcome: Option<String>,
        votes: Vec<Vote>,
        status: RunStatus,
    },
    /// They may not decide.
    Denied {
        by: Option<Principal>,
        why: Denial,
    },
    /// An external event was accepted.
    ExternalEventAccepted {
        outcome: ExternalEventOutcome,
        status: RunStatus,
    },
}

/// The result of an external event.
#[derive(Clone, Debug, PartialEq)]
pub enum ExternalEventOutcome {
    /// It answered this interrupt.
    Matched {
        node: NodeId,
        interrupt: InterruptId,
    },
    /// No node waits for it yet; it is stored for the first wait that matches.
    Retained,
    /// It was delivered before.
    Duplicate,
}
