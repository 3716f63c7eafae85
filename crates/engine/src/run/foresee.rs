//! What would follow from a decision, told before it is made. Reads the state and changes nothing;
//! later events may still turn the run elsewhere.

use super::state::{Phase, Run};
use crate::graph::binding::RunScope;
use crate::node::{Kind, OrchestratorDecision, Route};
use serde_json::json;
use tandem_record::{NodeId, NodeStatus, Object, WorkflowId};
use tandem_schema::{MAX_WORK, Meter};

/// Where a run would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// These nodes come next; with none left, the branch ends here.
    Nodes(Vec<NodeId>),
    /// No edge is drawn for it: the node fails.
    Fails,
    /// A supervisor's held decision is carried out: these workflows are started.
    Workers(Vec<WorkflowId>),
    /// A supervisor's held decision is carried out: its run ends.
    Ends,
    /// The supervisor decides again.
    NextTurn(NodeId),
    /// What the person decides instead is carried out.
    Instead,
    /// The run goes nowhere with this answer: it would be refused.
    Refused,
}

impl Run {
    /// After a question at `node` is closed with this action.
    pub fn foresee(&self, node: &NodeId, action: &str) -> Ahead {
        let Some(ix) = self.def.index(node) else {
            return Ahead::Nodes(Vec::new());
        };
        let compiled = &self.def.nodes[ix];
        let paused = self.state.phase == Phase::Paused;
        match &compiled.kind {
            Kind::Dispatch(_) => return self.foresee_held(ix, action, paused),
            // What an unsure agent decided is not done, and nothing comes in its place.
            Kind::Supervisor(_) | Kind::MockAgent(_) if action == "reject" => return Ahead::Fails,
            _ => {}
        }
        if action == "refine" {
            // As the loop-back does: what feeds the gate works again.
            let sources = compiled.incoming.iter().map(|&e| self.def.edges[e].source);
            let mut done = sources.filter(|s| self.state.nodes[*s].status == NodeStatus::Completed);
            return match done.next() {
                Some(producer) if !paused => {
                    Ahead::Nodes(vec![self.def.nodes[producer].id.clone()])
                }
                _ => Ahead::Refused,
            };
        }
        let outputs = Object::from_iter([("action".to_owned(), json!(action))]);
        let scope = RunScope::with_output(self, &outputs);
        // Only shown: a condition that would take long to look at is taken for not met.
        let meter = Meter::up_to(MAX_WORK / 100);
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
            return Ahead::Fails;
        }
        next.dedup();
        Ahead::Nodes(next)
    }

    /// After an answer at a dispatch node: about a held decision, or to the supervisor's own question.
    fn foresee_held(&self, ix: usize, action: &str, paused: bool) -> Ahead {
        let decided = self.state.agents.decided.as_ref();
        let Some(decided) = decided else {
            return Ahead::Nodes(Vec::new());
        };
        let read = OrchestratorDecision::read(&decided.decision);
        let Ok(decision) = read else {
            return Ahead::Nodes(Vec::new());
        };
        match (action, decision.route) {
            ("reject", _) | (_, Route::AskUser { .. } | Route::Approve { .. }) => {
                self.after_dispatch(ix, &decided.node)
            }
            // As the answer is weighed: nothing is carried out while the run is paused.
            _ if paused => Ahead::Refused,
            ("edit-accept", _) => Ahead::Instead,
            (_, Route::NextWorker(workers)) => Ahead::Workers(workers),
            (_, Route::Terminate) => Ahead::Ends,
        }
    }

    /// The way back leads to the supervisor; without one, on along the edges.
    fn after_dispatch(&self, ix: usize, supervisor: &NodeId) -> Ahead {
        let head = self.def.index(supervisor);
        let repeats = head.and_then(|head| self.def.nodes[head].repeats.as_ref());
        if repeats.is_some_and(|repeats| repeats.tails.contains(&ix)) {
            return Ahead::NextTurn(supervisor.clone());
        }
        let outgoing = self.def.nodes[ix].outgoing.iter();
        let targets = outgoing.map(|&e| self.def.edges[e].target);
        Ahead::Nodes(targets.map(|t| self.def.nodes[t].id.clone()).collect())
    }
}
