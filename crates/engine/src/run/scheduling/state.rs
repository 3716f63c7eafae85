//! The state of the nodes and of the channel triggers. Only the fold of an event changes it.

use super::node_state::NodeState;
use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tandem_record::{NodeStatus, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Scheduling {
    /// By the definition's node index.
    pub(super) nodes: Vec<NodeState>,
    /// Transitions into started, the counter for the limit of node executions.
    pub(super) executions: u64,
    /// How often each channel trigger fired.
    pub(super) fired: BTreeMap<String, u32>,
    /// Triggers inside their debounce window.
    pub(super) armed: BTreeMap<String, Timestamp>,
}

impl Scheduling {
    pub(in crate::run) fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![NodeState::new(); nodes],
            executions: 0,
            fired: BTreeMap::new(),
            armed: BTreeMap::new(),
        }
    }

    /// Whether the state belongs to a definition with this many nodes.
    pub(in crate::run) fn has_nodes(&self, nodes: usize) -> bool {
        self.nodes.len() == nodes
    }

    pub(in crate::run) fn is_suspended(&self, ix: usize) -> bool {
        self.nodes[ix].status == NodeStatus::Suspended
    }
}

impl Run {
    /// How many nodes were started so far.
    pub(in crate::run) fn executions(&self) -> u64 {
        self.state.scheduling.executions
    }

    /// Triggers that wait to be fired, with the time from which they may.
    pub(in crate::run) fn armed_triggers(&self) -> &BTreeMap<String, Timestamp> {
        &self.state.scheduling.armed
    }
}
