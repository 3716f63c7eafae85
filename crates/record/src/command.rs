//! What may be asked of a run, and what it answers. A command is a wish: the engine turns it into
//! events or refuses it.

use crate::{DeciderSnapshot, RunId, TimerKey, Timestamp, Vote};
use crate::{
    Denial, EffectId, ErrorInfo, InterruptId, NodeId, Object, PackAnswer, Principal, RunStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Stop the run; `by_parent` when the cancel comes down from a parent run.
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
    /// An effect was performed (or given up).
    FinishEffect {
        effect: EffectId,
        outcome: EffectOutcome,
    },
    /// A child run reports.
    ReportChildOutcome {
        node: NodeId,
        outcome: ChildOutcome,
    },
    /// Somebody answers an open interrupt.
    ResolveInterrupt {
        node: NodeId,
        /// The very question meant; a node may ask again later.
        interrupt: Option<InterruptId>,
        value: Value,
        by: Option<Principal>,
        /// The credential was a signed link, not a key.
        by_link: bool,
        /// What access control found when it let them decide.
        decider: DeciderSnapshot,
    },
    /// Somebody tried to answer who may not. Recorded; the question stays open.
    DenyDecision {
        node: NodeId,
        interrupt: Option<InterruptId>,
        /// `None` for a signed link.
        by: Option<Principal>,
        why: Denial,
    },
    /// Something happened outside that a node waits for, or will.
    DeliverEvent {
        /// The sender's own id of the event; a second delivery under it changes nothing.
        event_id: String,
        event_type: String,
        payload: Object,
        by: Option<Principal>,
    },
    /// Go on with ready work, after a decision that stopped early.
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
    /// What a pack's node answered.
    Pack(Box<PackAnswer>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum ChildOutcome {
    /// The child waits; the parent mirrors it.
    Waiting {
        child: RunId,
        /// Where the question is: the child itself, or a run further down.
        asker: RunId,
        node: NodeId,
        status: RunStatus,
        interrupt: InterruptId,
        kind: String,
        /// The question's key and what it shows; not in reports of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// The child goes on after waiting.
    Resumed { child: RunId },
    Ended {
        child: RunId,
        status: RunStatus,
        /// The variables the parent asked for, if the child completed and has them.
        variables: Object,
        /// Those of them that come from a tool server.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        untrusted: Vec<String>,
        error: Option<ErrorInfo>,
        /// Runs it was granted and did not bring about.
        #[serde(default)]
        unused: u64,
    },
}

/// The engine's answer to an accepted command.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Nothing was left to do: a stale timer, a repeated effect result.
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
        /// `None` while more votes are needed, or after a question back.
        outcome: Option<String>,
        votes: Vec<Vote>,
        status: RunStatus,
    },
    /// They may not decide.
    Denied {
        by: Option<Principal>,
        why: Denial,
    },
    /// An event from outside was taken.
    ExternalEventAccepted {
        outcome: ExternalEventOutcome,
        status: RunStatus,
    },
}

/// What became of an event from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum ExternalEventOutcome {
    /// It answered this question.
    Matched {
        node: NodeId,
        interrupt: InterruptId,
    },
    /// Nobody waits for it yet; it is kept for the first wait that fits.
    Retained,
    /// It was delivered before.
    Duplicate,
}
