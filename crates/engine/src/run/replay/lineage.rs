//! What a run records about its source, its children and its fork point.

use crate::run::state::{Child, Run};
use tandem_record::{ForkMode, RunId, Seq, Timestamp};

impl Run {
    /// Children of this run that have not ended, without those of the source of a fork.
    pub(crate) fn live_children(&self) -> impl Iterator<Item = &Child> {
        self.state
            .children
            .iter()
            .filter(|c| !c.status.is_terminal() && !c.inherited)
    }

    /// Children whose end was recorded at `from` or later, with the event that recorded it.
    pub fn children_ended_since(&self, from: Seq) -> impl Iterator<Item = (&RunId, Seq)> {
        let children = self.state.children.iter();
        children.filter_map(move |c| Some((&c.run_id, c.ended.filter(|seq| *seq >= from)?)))
    }

    /// The first of the run's own events; those below it were copied from the source.
    pub fn fork_point(&self) -> Seq {
        let fork = self
            .state
            .request
            .as_ref()
            .and_then(|r| r.forked_from.as_ref());
        fork.map_or(Seq(0), |f| f.from_seq)
    }

    /// The start of the run's time. A branch has the time of a new run although its log begins with
    /// its source's. A replay uses the source's time.
    pub(crate) fn begun_at(&self) -> Timestamp {
        let request = self.state.request.as_ref();
        let fork = request.and_then(|r| r.forked_from.as_ref());
        let branched = fork.filter(|f| f.mode == ForkMode::Branch).map(|f| f.at);
        self.state.created_at.max(branched.unwrap_or_default())
    }
}
