//! What would follow from a decision, told before it is made. Reads the state and changes nothing;
//! later events may still turn the run elsewhere.

use super::state::Run;
use crate::graph::binding::RunScope;
use crate::node::Kind;
use serde_json::json;
use tandem_record::{NodeId, NodeStatus, Object};
use tandem_schema::{MAX_WORK, Meter};

/// Where a run would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// These nodes come next; with none left, the branch ends here.
    Nodes(Vec<NodeId>),
    /// No edge is drawn for it: the node fails.
    Fails,
}

impl Run {
    /// After a question at `node` is closed with this action.
    pub fn foresee(&self, node: &NodeId, action: &str) -> Ahead {
        let Some(ix) = self.def.index(node) else {
            return Ahead::Nodes(Vec::new());
        };
        let compiled = &self.def.nodes[ix];
        if action == "refine" {
            // As the loop-back does: what feeds the gate works again.
            let sources = compiled.incoming.iter().map(|&e| self.def.edges[e].source);
            let mut done = sources.filter(|s| self.state.nodes[*s].status == NodeStatus::Completed);
            let producer = done.next().map(|s| self.def.nodes[s].id.clone());
            return Ahead::Nodes(producer.into_iter().collect());
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
        // Only a gate's rejection needs an edge; an agent's held decision just does not happen.
        let gated = matches!(compiled.kind, Kind::ApprovalGate(_));
        if action == "reject" && gated && !drawn {
            return Ahead::Fails;
        }
        next.dedup();
        Ahead::Nodes(next)
    }
}
