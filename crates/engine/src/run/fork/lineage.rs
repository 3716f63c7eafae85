//! What a run knows of where it comes from, and of those that come from it.

use crate::run::state::{Child, Run};
use tandem_record::{ForkMode, RunId, Seq, Timestamp};

impl Run {
    /// Live children this run would take down with it.
    pub(crate) fn live_children(&self) -> impl Iterator<Item = &Child> {
        self.state
            .children
            .iter()
            .filter(|c| !c.status.is_terminal() && !c.inherited)
    }

    /// Children whose end was told at `from` or later, with the event that told it.
    pub fn children_ended_since(&self, from: Seq) -> impl Iterator<Item = (&RunId, Seq)> {
        let children = self.state.children.iter();
        children.filter_map(move |c| Some((&c.run_id, c.ended.filter(|seq| *seq >= from)?)))
    }

    /// Where the run's own events begin: below it a fork tells what its source did.
    pub fn fork_point(&self) -> Seq {
        let fork = self
            .state
            .request
            .as_ref()
            .and_then(|r| r.forked_from.as_ref());
        fork.map_or(Seq(0), |f| f.from_seq)
    }

    /// From when the run's time counts. A branch has the time of a new run, though its log begins
    /// with its source's; a replay takes the source's time.
    pub(crate) fn begun_at(&self) -> Timestamp {
        let request = self.state.request.as_ref();
        let fork = request.and_then(|r| r.forked_from.as_ref());
        let branched = fork.filter(|f| f.mode == ForkMode::Branch).map(|f| f.at);
        self.state.created_at.max(branched.unwrap_or_default())
    }
}
