//! Why a command is not carried out. Each refusal is a legitimate answer with a protocol code, not
//! a fault.

use crate::definition::Problem;
use crate::run::calls::ModelNeed;
use crate::run::memory::MemoryNeed;
use tandem_record::{ClosedInterrupt, NodeId, RunStatus, Timestamp, WorkflowId};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("the request does not fit: {}", summary(.0))]
    Invalid(Vec<Problem>),
    /// The workflow needs something this host does not provide.
    #[error("node {node} of type {type_id} needs the capability {capability}")]
    CapabilityRequired {
        capability: &'static str,
        type_id: String,
        node: NodeId,
    },
    /// The workflow uses something made for conformance tests, and this run may not.
    #[error("node {node} uses {type_id} as only conformance tests may")]
    TypeRefused { type_id: String, node: NodeId },
    #[error("a run that is {} cannot be paused", .status.as_str())]
    NotPausable {
        status: RunStatus,
        paused_at: Option<Timestamp>,
    },
    #[error("a run that is {} cannot be resumed", .status.as_str())]
    NotPaused { status: RunStatus },
    #[error("node {node} never opened an interrupt")]
    InterruptNotFound { node: NodeId },
    #[error("the question was decided before")]
    AlreadyResolved(ClosedInterrupt),
    /// Only the host itself ends this wait.
    #[error("the wait at node {node} is ended by the host only")]
    NotAnswerable { node: NodeId },
    /// The run was cancelled while the interrupt was open.
    #[error("the interrupt was closed when its run ended")]
    InterruptGone,
    /// The run has ended: no external event affects it any more.
    #[error("a run that is {} accepts no more events", .status.as_str())]
    RunEnded { status: RunStatus },
    #[error("the run keeps {limit} events that no node waits for yet; it accepts no more")]
    TooManyEvents { limit: usize },
    #[error("the event does not match what the run waits for")]
    CorrelationMismatch { keys: Vec<String> },
}

fn summary(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .take(3)
        .map(|p| format!("{} {}", p.path, p.message))
        .collect();
    lines.join("; ")
}

/// A decision that could not be made yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Undecided {
    Refused(Refusal),
    /// The engine needs this before it can continue.
    Needs(Need),
}

/// What has to be looked up for a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// The definition of a workflow id.
    Workflow(WorkflowId),
    /// The memory of a run.
    Memory(Box<MemoryNeed>),
    /// The answer of a provider that answers by program, for a replay.
    Model(Box<ModelNeed>),
    /// Places for this many new runs in the run's tree.
    Places(u64),
    /// More work than the context allows: decide again where there is time for it.
    MoreWork,
}

impl From<Refusal> for Undecided {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
