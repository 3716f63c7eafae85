//! Limits how many runs a run may start, including the children of its children.
//!
//! A limit on depth is not enough: each level may start many runs. So every run has an allowance. A
//! root has the host's limit. A child gets a part of what its parent has left: it is recorded at
//! the child's creation (`ParentLink::descendants`) and subtracted from the parent's allowance by
//! the event that names the child (`NodeDispatched::granted`). When the child ends, the unused part
//! is returned with the event that records its end. No run can give away more than it has, so all
//! descendants of a root together stay within the root's allowance, and each decision needs only
//! the run it is about.
//!
//! A child whose workflow starts no children gets nothing besides its own place. Otherwise the rest
//! is divided by the nodes and workers of the parent that may still start children beside it, after
//! a quarter is kept in reserve: the allowance of a child that never reports back must not use up
//! everything.

use crate::definition::Definition;
use crate::node::{Kind, VerifierSource};
use crate::run::agents::WorkerStep;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Limits;
use crate::run::state::Run;
use tandem_record::ErrorInfo;

impl Kind {
    fn starts_children(&self) -> bool {
        match self {
            Self::SubWorkflow(_) | Self::Dispatch(_) => true,
            Self::Supervisor(config) => {
                let source = config.verifier.as_ref().map(|verifier| &verifier.source);
                matches!(source, Some(VerifierSource::Workflow { .. }))
            }
            _ => false,
        }
    }
}

impl Run {
    /// Number of descendants this run may still start.
    pub(in crate::run) fn descendants_left(&self, limits: &Limits) -> u64 {
        let request = self.started_request();
        let parent = request.and_then(|request| request.parent.as_ref());
        let allowed = parent.and_then(|parent| parent.descendants);
        let allowed = allowed.map_or(limits.max_descendants, |n| n.min(limits.max_descendants));
        allowed.saturating_sub(self.state.children.descendants)
    }

    /// Nodes and workers that may start children while another child exists.
    fn child_starters(&self) -> u64 {
        let nodes = self.def.nodes.iter().enumerate();
        let open = nodes.filter(|(ix, node)| {
            node.kind.starts_children() && !self.node(*ix).status.is_settled()
        });
        open.map(|(ix, _)| match self.dispatching(ix) {
            Some(dispatching) => {
                let workers = dispatching.workers.iter();
                let waiting = workers.filter(|w| w.step == WorkerStep::Pending).count();
                waiting as u64 + 1
            }
            None => 1,
        })
        .sum()
    }
}

impl DecisionDraft<'_> {
    /// Whether one more run may be started.
    pub(in crate::run) fn admit_descendant(&self) -> Result<(), ErrorInfo> {
        if self.run.descendants_left(self.cx.limits) > 0 {
            return Ok(());
        }
        let limit = self.cx.limits.max_descendants;
        Err(ErrorInfo::new(
            "descendants_exceeded",
            format!("a run and its children bring about at most {limit} runs"),
        ))
    }

    /// How many descendants a new child may start itself.
    pub(in crate::run) fn descendants_to_grant(&self, child: &Definition) -> u64 {
        if !child.nodes.iter().any(|node| node.kind.starts_children()) {
            return 0;
        }
        let left = self.run.descendants_left(self.cx.limits).saturating_sub(1);
        (left - left / 4) / self.run.child_starters().max(1)
    }
}
