//! Limits how many runs there are below one root, at any depth. A limit on depth is not enough: each
//! level may start many runs.
//!
//! The runs of a tree are counted where all of them are known, outside the engine. A decision that
//! starts children has to have a place for each of them: it stops with [`Need::Places`] and is made
//! again with as many as the tree has left, which nobody else is given meanwhile.

use crate::run::draft::DecisionDraft;
use crate::run::refusal::Need;
use crate::run::state::Run;
use tandem_record::{ErrorInfo, ParentLink, RunId};

/// Places for new runs in the tree of a run, for one decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreePlaces {
    pub reserved: u64,
    /// There are no more.
    pub is_full: bool,
}

impl Run {
    /// The run at the top of this run's tree.
    pub fn tree_root(&self) -> RunId {
        let request = self.started_request();
        let parent = request.and_then(|request| request.parent.as_ref());
        parent.map_or(self.id(), ParentLink::tree_root).clone()
    }

    /// Whether its tree has no other run, as far as this run knows: it is the root and started none.
    pub fn is_alone_in_tree(&self) -> bool {
        let request = self.started_request();
        request.is_some_and(|request| request.parent.is_none()) && self.children().is_empty()
    }
}

impl DecisionDraft<'_> {
    /// Whether one more run may be started. Sets `needs` when that is not known yet. A replay starts
    /// none.
    pub(in crate::run) fn admit_descendant(&mut self) -> Result<(), ErrorInfo> {
        let needed = self.children.created.len() as u64 + 1;
        let places = self.cx.places;
        if needed <= places.reserved || self.run.state.lifecycle.is_replay() {
            return Ok(());
        }
        if !places.is_full {
            self.needs = Some(Need::Places(needed));
        }
        let limit = self.cx.limits.max_descendants;
        Err(ErrorInfo::new(
            "descendants_exceeded",
            format!("there are at most {limit} runs below one root"),
        ))
    }
}
