//! The state of a run: the fold of its log. Each slice of it is defined in the folder that owns it,
//! and only that folder names its fields. Other folders read it through methods of [`Run`]; only
//! [`super::evolve`] changes it.

use super::agents::Agents;
use super::children::Children;
use super::lifecycle::{Lifecycle, Phase, StateSize};
use super::questions::Questions;
use super::scheduling::Scheduling;
use super::shared_state::SharedState;
use super::values::Values;
use crate::definition::Definition;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tandem_record::{RunId, RunStatus, Sensitivity, Seq, Timestamp};

/// A run with the definition it is pinned to.
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) def: Arc<Definition>,
    pub(super) state: SharedState,
    pub(super) size: StateSize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(super) run_id: RunId,
    pub(super) head: Option<Seq>,
    /// Time of the last event. If the clock steps back, later events use this time.
    pub(super) last_at: Timestamp,
    pub(super) lifecycle: Lifecycle,
    pub(super) scheduling: Scheduling,
    pub(super) values: Values,
    pub(super) children: Children,
    pub(super) questions: Questions,
    pub(super) agents: Agents,
}

impl Run {
    /// A run before its first event.
    pub fn new(run_id: RunId, def: Arc<Definition>) -> Self {
        let nodes = def.nodes.len();
        Self {
            size: StateSize::of_new(nodes),
            def,
            state: SharedState::from(State {
                run_id,
                head: None,
                last_at: Timestamp::default(),
                lifecycle: Lifecycle::new(),
                scheduling: Scheduling::new(nodes),
                values: Values::default(),
                children: Children::default(),
                questions: Questions::default(),
                agents: Agents::default(),
            }),
        }
    }

    /// Restores a folded state from a snapshot.
    pub fn restore(def: Arc<Definition>, state: State) -> Option<Self> {
        if !state.scheduling.has_nodes(def.nodes.len()) {
            return None;
        }
        let mut run = Self {
            size: StateSize::of_new(0),
            def,
            state: SharedState::from(state),
        };
        run.recount_size();
        Some(run)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn definition(&self) -> &Arc<Definition> {
        &self.def
    }

    /// What is masked where the run is shown.
    pub fn sensitivity(&self) -> Arc<Sensitivity> {
        match self.started_request() {
            Some(request) => self.def.sensitivity_for(request),
            None => Arc::clone(&self.def.sensitivity),
        }
    }

    pub fn id(&self) -> &RunId {
        &self.state.run_id
    }

    /// The last event folded in.
    pub fn head(&self) -> Option<Seq> {
        self.state.head
    }

    pub(crate) fn next_seq(&self) -> Seq {
        self.state.head.map_or(Seq(0), Seq::next)
    }

    /// Time of the last event.
    pub(super) fn last_at(&self) -> Timestamp {
        self.state.last_at
    }

    pub fn status(&self) -> RunStatus {
        match self.phase() {
            Phase::Pending => RunStatus::Pending,
            Phase::Paused => RunStatus::Paused,
            Phase::Cancelling => RunStatus::Cancelling,
            Phase::Completed => RunStatus::Completed,
            Phase::Failed => RunStatus::Failed,
            Phase::Cancelled => RunStatus::Cancelled,
            Phase::Running if self.has_running() => RunStatus::Running,
            Phase::Running => self
                .first_suspended()
                .map_or(RunStatus::Running, |(_, s)| s.status),
        }
    }
}
