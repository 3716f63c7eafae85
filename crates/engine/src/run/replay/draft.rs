//! What a decision repeats from a source's log.

use crate::run::draft::DecisionDraft;
use crate::run::state::Run;
use std::collections::VecDeque;
use tandem_record::{RecordedEvent, RunId, Seq};

pub(in crate::run) struct ReplayDraft {
    /// The first event of this decision. Events before it are stored, or copied from a source.
    pub(super) first_own_seq: Seq,
    /// Events a fork already has for work it repeats. Each one replaces a drafted event.
    pub(super) already_recorded: VecDeque<RecordedEvent>,
    /// The run replays another one: what cannot be repeated is refused.
    pub(super) replaying: bool,
    /// The run id that names the artifacts a replay creates again, if it is not the replay's own.
    pub(super) artifact_owner: Option<RunId>,
}

impl ReplayDraft {
    pub(in crate::run) fn begin(run: &Run) -> Self {
        Self {
            first_own_seq: run.next_seq(),
            already_recorded: VecDeque::new(),
            replaying: false,
            artifact_owner: None,
        }
    }
}

impl DecisionDraft<'_> {
    /// Whether the run replays another one.
    pub(crate) fn is_replaying(&self) -> bool {
        self.replay.replaying
    }

    /// The first event of this decision.
    pub(in crate::run) fn first_own_seq(&self) -> Seq {
        self.replay.first_own_seq
    }

    /// Whether the work that is executed was recorded before.
    pub(in crate::run) fn repeats_recorded_work(&self) -> bool {
        !self.replay.already_recorded.is_empty()
    }

    /// The next event of work that was recorded before.
    pub(in crate::run) fn peek_recorded(&self) -> Option<&RecordedEvent> {
        self.replay.already_recorded.front()
    }

    pub(in crate::run) fn take_recorded(&mut self) -> Option<RecordedEvent> {
        self.replay.already_recorded.pop_front()
    }

    /// The run id in the names of artifacts that the engine names.
    pub(crate) fn artifact_owner(&self) -> &RunId {
        let owner = self.replay.artifact_owner.as_ref();
        owner.unwrap_or(self.run.id())
    }
}
