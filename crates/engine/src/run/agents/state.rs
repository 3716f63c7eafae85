//! What the run's agents have decided, handed over and verified so far. Only the fold of an event
//! changes it.

use super::workers::{Dispatching, Verifying};
use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::{AgentEvent, NodeId, Seq};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Agents {
    /// The pinned agent that worked last.
    pub(super) pinned: Option<Value>,
    /// The supervising agent, as its author pinned it or as it named itself first.
    pub(super) orchestrator: Option<Value>,
    pub(super) decided: Option<PublishedDecision>,
    /// Decisions published so far.
    pub(super) decisions: u32,
    /// The agent of the worker that got the last handoff.
    pub(super) worker: Option<String>,
    /// The supervisor's reasoning about its decision in this iteration.
    pub(super) reasoning: Option<String>,
    /// The start of each supervisor's current iteration.
    pub(super) iteration_starts: BTreeMap<NodeId, Seq>,
    /// Verdicts of verifiers so far.
    pub(super) verdicts: u32,
    /// The newest verdict on the newest decision or its results.
    pub(super) verdict: Option<AgentEvent>,
    /// The workers of each dispatch node, by the definition's node index.
    pub(super) dispatching: BTreeMap<usize, Dispatching>,
    /// The subject of each node's verification, with a verdict that has not been acted on yet.
    pub(super) verifying: BTreeMap<usize, Verifying>,
}

/// The newest decision of a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct PublishedDecision {
    pub(in crate::run) seq: Seq,
    pub(in crate::run) node: NodeId,
    pub(in crate::run) agent_id: String,
    pub(in crate::run) decision: Value,
    pub(in crate::run) iteration: u32,
}

impl Agents {
    /// Whether a node waits for a verifier, or for what follows from its verdict.
    pub(in crate::run) fn verifies(&self, ix: usize) -> bool {
        self.verifying.contains_key(&ix)
    }
}

impl Run {
    /// The workers of a dispatch node.
    pub(in crate::run) fn dispatching(&self, ix: usize) -> Option<&Dispatching> {
        self.state.agents.dispatching.get(&ix)
    }

    /// The subject of a node's verification.
    pub(in crate::run) fn verifying(&self, ix: usize) -> Option<&Verifying> {
        self.state.agents.verifying.get(&ix)
    }

    /// The newest decision of a supervisor.
    pub(in crate::run) fn newest_decision(&self) -> Option<&PublishedDecision> {
        self.state.agents.decided.as_ref()
    }

    /// The pinned agent that worked last.
    pub(in crate::run) fn pinned_agent(&self) -> Option<&Value> {
        self.state.agents.pinned.as_ref()
    }

    /// The supervising agent.
    pub(in crate::run) fn orchestrator(&self) -> Option<&Value> {
        self.state.agents.orchestrator.as_ref()
    }

    /// The start of a supervisor's current iteration.
    pub(in crate::run) fn iteration_start_of(&self, supervisor: &NodeId) -> Option<Seq> {
        let starts = &self.state.agents.iteration_starts;
        starts.get(supervisor).copied()
    }
}
