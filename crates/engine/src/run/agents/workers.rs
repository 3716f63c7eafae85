//! The state of a dispatch node: its workers and its verification. Plain data, part of the run's
//! state.

use serde::{Deserialize, Serialize};
use tandem_record::{
    ErrorInfo, NodeId, Object, RunId, RunStatus, Seq, VerificationSubject, VerifierVerdict,
    WorkflowId,
};

/// The state of a dispatch node while it carries out a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dispatching {
    /// The decision being carried out.
    pub(crate) decided: Seq,
    /// The supervisor that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) supervisor: Option<NodeId>,
    pub(crate) workers: Vec<WorkerState>,
}

/// ```text
/// Pending --began--> Began --succeeded--> Running --> Completed --> Harvested
///                      |                     +------> Failed | Cancelled
///                      +--failed--> Failed
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerState {
    pub(crate) workflow: WorkflowId,
    pub(crate) step: WorkerStep,
    pub(crate) child: Option<RunId>,
    /// The newest step of its handoff.
    pub(crate) last: Seq,
    /// Its variables for the parent, until the join.
    pub(crate) variables: Object,
    /// Those of them that come from a tool server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) untrusted: Vec<String>,
    pub(crate) error: Option<ErrorInfo>,
    /// The verdict on its output, if a verification was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<VerifierVerdict>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WorkerStep {
    Pending,
    Began,
    Running,
    Completed,
    Harvested,
    Failed,
    Cancelled,
}

impl WorkerStep {
    /// The status of its run.
    pub(crate) fn status(self) -> RunStatus {
        match self {
            Self::Pending | Self::Began => RunStatus::Pending,
            Self::Running => RunStatus::Running,
            Self::Completed | Self::Harvested => RunStatus::Completed,
            Self::Failed => RunStatus::Failed,
            Self::Cancelled => RunStatus::Cancelled,
        }
    }
}

impl WorkerState {
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.step, WorkerStep::Began | WorkerStep::Running)
    }

    pub(crate) fn has_ended(&self) -> bool {
        !self.is_live() && self.step != WorkerStep::Pending
    }
}

impl Dispatching {
    /// The worker that runs as this child.
    pub(crate) fn live_worker(&self, child: &RunId) -> Option<(usize, &WorkerState)> {
        let workers = self.workers.iter().enumerate();
        workers
            .filter(|(_, w)| w.step == WorkerStep::Running)
            .find(|(_, w)| w.child.as_ref() == Some(child))
    }
}

/// A result that waits for its verifier. Meanwhile nothing of it is merged and nothing ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verifying {
    #[serde(rename = "judged")]
    pub(crate) verification_subject: VerificationSubject,
    /// The supervisor whose verifier checks it; `None` for a verifier that answered at once.
    pub(crate) supervisor: Option<NodeId>,
    pub(crate) verdict: Option<VerifierVerdict>,
    /// What should be improved.
    pub(crate) feedback: Option<String>,
}

impl WorkerState {
    /// The verifier did not pass its output.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(
            self.verdict,
            Some(VerifierVerdict::Fail | VerifierVerdict::Revise)
        )
    }
}
