//! A preview of what would follow from a decision. Reads the state and changes nothing; later
//! events may still change the path of the run.

use crate::graph::binding::RunScope;
use crate::node::{Kind, OrchestratorDecision, Route};
use crate::run::lifecycle::Phase;
use crate::run::state::Run;
use serde_json::json;
use tandem_record::{NodeId, NodeStatus, Object, WorkflowId};
use tandem_schema::{MAX_WORK, Meter};

/// Where a run would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextSteps {
    /// These nodes come next; if empty, the branch ends here.
    Nodes(Vec<NodeId>),
    /// There is no edge for it: the node fails.
    NodeFails,
    /// A supervisor's held decision is carried out: these workflows are started.
    Workers(Vec<WorkflowId>),
    /// A supervisor's held decision is carried out: its run ends.
    RunEnds,
    /// The supervisor decides again.
    NextIteration(NodeId),
    /// The person's own decision is carried out instead.
    ReplacementCarriedOut,
    /// This answer would be refused.
    Refused,
}

impl Run {
    /// The next steps after an interrupt at `node` is closed with this action.
    pub fn predict_next_steps(&self, node: &NodeId, action: &str) -> NextSteps {
        let Some(ix) = self.def.index(node) else {
            return NextSteps::Nodes(Vec::new());
        };
        let compiled = &self.def.nodes[ix];
        let paused = self.phase() == Phase::Paused;
        match &compiled.kind {
            Kind::Dispatch(_) => return self.predict_after_held_decision(ix, action, paused),
            // The agent's low-confidence decision is not carried out, and nothing replaces it.
            Kind::Supervisor(_) | Kind::Conformance(_) if action == "reject" => {
                return NextSteps::NodeFails;
            }
            _ => {}
        }
        if action == "refine" {
            // As in the loop-back: the predecessor of the gate runs again.
            let sources = compiled.incoming.iter().map(|&e| self.def.edges[e].source);
            let mut done = sources.filter(|s| self.node(*s).status == NodeStatus::Completed);
            return match done.next() {
                Some(producer) if !paused => {
                    NextSteps::Nodes(vec![self.def.nodes[producer].id.clone()])
                }
                _ => NextSteps::Refused,
            };
        }
        let outputs = Object::from_iter([("action".to_owned(), json!(action))]);
        let scope = RunScope::with_output(self, &outputs);
        // Only shown: a condition that would take long to look at is taken for not met.
        let meter = Meter::with_limit(MAX_WORK / 500);
        let mut drawn = false;
        let mut next = Vec::new();
        for &e in &compiled.outgoing {
            let edge = &self.def.edges[e];
            let holds = edge
                .condition
                .as_ref()
                .map(|c| c.holds(&outputs, &scope, &meter));
            drawn |= holds == Some(true);
            if holds != Some(false) {
                next.push(self.def.nodes[edge.target].id.clone());
            }
        }
        // Only a gate's rejection needs an edge.
        let gated = matches!(compiled.kind, Kind::ApprovalGate(_));
        if action == "reject" && gated && !drawn {
            return NextSteps::NodeFails;
        }
        next.dedup();
        NextSteps::Nodes(next)
    }

    /// The next steps after an answer at a dispatch node, about a held decision or to the
    /// supervisor's own question.
    fn predict_after_held_decision(&self, ix: usize, action: &str, paused: bool) -> NextSteps {
        let decided = self.newest_decision();
        let Some(decided) = decided else {
            return NextSteps::Nodes(Vec::new());
        };
        let read = OrchestratorDecision::read(&decided.decision);
        let Ok(decision) = read else {
            return NextSteps::Nodes(Vec::new());
        };
        match (action, decision.route) {
            ("reject", _) | (_, Route::AskUser { .. } | Route::Approve { .. }) => {
                self.after_dispatch(ix, &decided.node)
            }
            // As for a real answer: nothing is carried out while the run is paused.
            _ if paused => NextSteps::Refused,
            ("edit-accept", _) => NextSteps::ReplacementCarriedOut,
            (_, Route::NextWorker(workers)) => NextSteps::Workers(workers),
            (_, Route::Terminate) => NextSteps::RunEnds,
        }
    }

    /// The back edge leads to the supervisor; without one, the run follows the other edges.
    fn after_dispatch(&self, ix: usize, supervisor: &NodeId) -> NextSteps {
        let head = self.def.index(supervisor);
        let repeats = head.and_then(|head| self.def.nodes[head].repeats.as_ref());
        if repeats.is_some_and(|repeats| repeats.tails.contains(&ix)) {
            return NextSteps::NextIteration(supervisor.clone());
        }
        let outgoing = self.def.nodes[ix].outgoing.iter();
        let targets = outgoing.map(|&e| self.def.edges[e].target);
        NextSteps::Nodes(targets.map(|t| self.def.nodes[t].id.clone()).collect())
    }
}
