//! What a turn of a supervisor's loop sees of memory: the scope as it was when the turn began. What
//! is written in a turn, by the run or by its workers, is seen from the next turn on, so all that
//! happens in one turn is decided on the same knowledge, also after a wait or a restart.
//!
//! A turn begins with the supervisor's start and lasts until its next; a retry is the same turn.

use super::state::Run;
use super::turn::Turn;
use crate::definition::Definition;
use crate::node::{Kind, MemoryAction};
use tandem_record::{Event, Recorded, RunId, RunRequest, Seq};

impl Definition {
    /// The supervisor in whose loop a node is.
    fn turn_head(&self, ix: usize) -> Option<usize> {
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
    pub(super) fn turn_began(&self, ix: usize) -> Option<Seq> {
        let head = self.def.turn_head(ix)?;
        let turns = &self.state.agents.turns;
        turns.get(&self.def.nodes[head].id).copied()
    }

    /// The same, where turns have a view of their own. Below that version of the execution model
    /// what a child wrote is seen as soon as its end is recorded.
    pub(super) fn turn_seen(&self, ix: usize) -> Option<Seq> {
        self.turn_began(ix)
            .filter(|_| has_turn_views(self.request()))
    }

    /// Where the turn began whose view a node reads. Writing looks at the scope as it is.
    pub(super) fn turn_read(&self, ix: usize) -> Option<Seq> {
        let writes = match &self.def.nodes[ix].kind {
            Kind::Memory(config) => matches!(config.action, MemoryAction::Put { .. }),
            _ => false,
        };
        self.turn_seen(ix).filter(|_| !writes)
    }

    /// A supervisor's start begins a turn, unless it is tried again.
    pub(super) fn begin_turn(&mut self, ix: usize, attempt: u32, seq: Seq) {
        if attempt == 0 {
            let node = self.def.nodes[ix].id.clone();
            self.state.agents.turns.insert(node, seq);
        }
    }
}

impl Turn<'_> {
    /// Children whose end this decision recorded, as far as the reading node sees them.
    pub(super) fn joined_now(&self) -> Vec<RunId> {
        if self.replaying {
            return Vec::new();
        }
        let ended = self.run.children_ended_since(self.floor);
        let seen = ended.filter(|(_, at)| self.sees(*at));
        seen.map(|(child, _)| child.clone()).collect()
    }

    /// Whether the reading node sees what an event of this decision left.
    pub(super) fn sees(&self, at: Seq) -> bool {
        self.turn_view.is_none_or(|began| at < began)
    }
}

/// The version of the execution model that gives every turn a view of its own.
const TURN_VIEWS_SINCE: u32 = 5;

fn has_turn_views(request: &RunRequest) -> bool {
    let kept_to = request.execution_model;
    kept_to.is_none_or(|version| version >= TURN_VIEWS_SINCE)
}

/// Where memory is read on the way through a log, and before which event, so that all of it can be
/// looked up at once.
pub(super) fn reads(turn: &Turn<'_>, log: &[Recorded]) -> Vec<(usize, Seq)> {
    let def = &turn.run.def;
    let mut began = vec![None; def.nodes.len()];
    let mut reads = Vec::new();
    let first = log.first().map(|recorded| &recorded.event);
    let has_views = match first {
        Some(Event::RunStarted { request, .. }) => has_turn_views(request),
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
            Kind::Memory(_) if turn.is_repeatable(ix) => {
                let head = def.turn_head(ix).filter(|_| has_views);
                let view = head.and_then(|head| began[head]);
                reads.push((ix, view.unwrap_or(recorded.seq)));
            }
            _ => {}
        }
    }
    reads
}
