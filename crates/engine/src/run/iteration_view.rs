//! What a turn of a supervisor's loop sees of memory: the scope as it was when the turn began. What
//! is written in a turn, by the run or by its workers, is seen from the next turn on, so all that
//! happens in one turn is decided on the same knowledge, also after a wait or a restart.
//!
//! A turn begins with the supervisor's start and lasts until its next; a retry is the same turn.

use super::draft::DecisionDraft;
use super::state::Run;
use crate::definition::Definition;
use crate::node::{Kind, MemoryAction};
use tandem_record::{Event, RecordedEvent, RunId, RunRequest, Seq};

impl Definition {
    /// The supervisor in whose loop a node is.
    fn iteration_head(&self, ix: usize) -> Option<usize> {
        let heads = self.nodes.iter().enumerate();
        let mut around = heads.filter(|(_, node)| {
            let looped = node.repeats.as_ref().is_some_and(|l| l.body.contains(&ix));
            looped && matches!(node.kind, Kind::Supervisor(_))
        });
        around.next().map(|(head, _)| head)
    }
}

impl Run {
    /// Where the turn began that a node is part of.
    pub(super) fn iteration_start(&self, ix: usize) -> Option<Seq> {
        let head = self.def.iteration_head(ix)?;
        let starts = &self.state.agents.iteration_starts;
        starts.get(&self.def.nodes[head].id).copied()
    }

    /// The same, where turns have a view of their own. Below that version of the execution model
    /// what a child wrote is seen as soon as its end is recorded.
    pub(super) fn iteration_view_start(&self, ix: usize) -> Option<Seq> {
        self.iteration_start(ix)
            .filter(|_| has_stateful_loop(self.request()))
    }

    /// Where the turn began whose view a node reads. Writing looks at the scope as it is.
    pub(super) fn iteration_read_start(&self, ix: usize) -> Option<Seq> {
        let writes = match &self.def.nodes[ix].kind {
            Kind::Memory(config) => matches!(config.action, MemoryAction::Put { .. }),
            _ => false,
        };
        self.iteration_view_start(ix).filter(|_| !writes)
    }

    /// A supervisor's start begins a turn, unless it is tried again.
    pub(super) fn begin_iteration(&mut self, ix: usize, attempt: u32, seq: Seq) {
        if attempt == 0 {
            let node = self.def.nodes[ix].id.clone();
            self.state.agents.iteration_starts.insert(node, seq);
        }
    }
}

impl DecisionDraft<'_> {
    /// Children whose end this decision recorded, as far as the reading node sees them.
    pub(super) fn children_joined_now(&self) -> Vec<RunId> {
        if self.replaying {
            return Vec::new();
        }
        let ended = self.run.children_ended_since(self.first_own_seq);
        let visible = ended.filter(|(_, at)| self.is_visible(*at));
        visible.map(|(child, _)| child.clone()).collect()
    }

    /// Whether the reading node sees what an event of this decision left.
    pub(super) fn is_visible(&self, at: Seq) -> bool {
        self.iteration_view.is_none_or(|began| at < began)
    }
}

/// The version of the execution model that numbers turns and gives every turn a view of its own.
const STATEFUL_LOOP_SINCE: u32 = 5;

/// Whether a run keeps to a version with numbered turns.
pub(super) fn has_stateful_loop(request: &RunRequest) -> bool {
    let version = request.execution_model;
    version.is_none_or(|version| version >= STATEFUL_LOOP_SINCE)
}

/// Where memory is read on the way through a log, and before which event, so that all of it can be
/// looked up at once.
pub(super) fn memory_reads_in_log(
    draft: &DecisionDraft<'_>,
    log: &[RecordedEvent],
) -> Vec<(usize, Seq)> {
    let def = &draft.run.def;
    let mut began = vec![None; def.nodes.len()];
    let mut reads = Vec::new();
    let first = log.first().map(|recorded| &recorded.event);
    let has_views = match first {
        Some(Event::RunStarted { request, .. }) => has_stateful_loop(request),
        _ => true,
    };
    for recorded in log {
        let Event::NodeStarted { node, attempt, .. } = &recorded.event else {
            continue;
        };
        let Some(ix) = def.index(node) else {
            continue;
        };
        match &def.nodes[ix].kind {
            Kind::Supervisor(_) if *attempt == 0 => began[ix] = Some(recorded.seq),
            Kind::Memory(_) if draft.is_repeatable(ix) => {
                let head = def.iteration_head(ix).filter(|_| has_views);
                let view = head.and_then(|head| began[head]);
                reads.push((ix, view.unwrap_or(recorded.seq)));
            }
            _ => {}
        }
    }
    reads
}
