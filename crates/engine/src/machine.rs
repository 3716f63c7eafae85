//! What every state machine of this host has in common. The runtime drives machines through these
//! types alone: it folds a stream, lets the machine decide, commits the [`Decision`], and performs
//! its timers and effects.
//!
//! A workflow run is a machine. Its stream is `run:<runId>`.
//!
//! Invariants of an implementation:
//! - [`Machine::evolve`] never fails. Folding the events of a decision gives [`Decision::after`].
//! - Timers follow from the state alone, so they can be rebuilt from the log.
//! - Deciding is pure: the same state, command and context give the same decision.

use crate::run::NewChildRun;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use tandem_record::{Effect, EffectId, Recorded, Seq, StreamId, TenantId, Timestamp};

/// The folded state of one stream, with the rules for its commands.
pub trait Machine: Clone + Debug + Send + Sync + Sized + 'static {
    type Event: Serialize + DeserializeOwned + Debug + Send + Sync;
    type Command: Clone + Debug + Send + Sync;
    type Reply: Clone + Debug + Send;
    /// Names a timer within the stream.
    type TimerKey: Clone + Debug + Ord + Send + Sync;
    /// What an effect does.
    type EffectKind: Serialize + DeserializeOwned + Clone + Debug + Send + Sync;
    /// Why there is no decision.
    type Undecided: Debug;
    /// Everything from outside that a decision may read.
    type Context<'a>;
    /// The host's settings that timers depend on.
    type Limits;
    /// What a snapshot stores.
    type Snapshot: Serialize + DeserializeOwned;

    fn stream(&self) -> StreamId;

    /// Who pays for its work.
    fn tenant(&self) -> &TenantId;

    /// The last event folded in; `None` before the first one.
    fn head(&self) -> Option<Seq>;

    /// No event follows any more.
    fn is_ended(&self) -> bool;

    /// About how much memory it takes.
    fn memory_bytes(&self) -> usize;

    fn evolve(&mut self, event: &Recorded<Self::Event>);

    fn decide(
        &self,
        command: &Self::Command,
        context: &Self::Context<'_>,
    ) -> Result<Decision<Self>, Self::Undecided>;

    /// The timers the state requires.
    fn required_timers(&self, limits: &Self::Limits) -> BTreeMap<Self::TimerKey, Timestamp>;

    fn snapshot(&self) -> &Self::Snapshot;
}

/// What is to be committed for one stream, and the machine as it is afterwards.
#[derive(Debug)]
pub struct Decision<M: Machine> {
    pub events: Vec<Recorded<M::Event>>,
    pub timers: Vec<TimerRequest<M::TimerKey>>,
    /// New effects. Their ids are stable: a repeated decision gives the same ids.
    pub effects: Vec<Effect<M::EffectKind>>,
    /// Effects that are no longer needed.
    pub dropped: Vec<EffectId>,
    /// Runs that the events name. They are created in the same commit.
    pub children: Vec<NewChildRun>,
    pub reply: M::Reply,
    pub after: M,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerRequest<K> {
    Set { key: K, due: Timestamp },
    Clear { key: K },
}

/// The changes that lead from one set of timers to another.
pub fn timer_changes<K: Clone + Ord>(
    before: &BTreeMap<K, Timestamp>,
    after: &BTreeMap<K, Timestamp>,
) -> Vec<TimerRequest<K>> {
    let cleared = before.keys().filter(|key| !after.contains_key(*key));
    let set = after
        .iter()
        .filter(|(key, due)| before.get(*key) != Some(due));
    cleared
        .map(|key| TimerRequest::Clear { key: key.clone() })
        .chain(set.map(|(key, due)| TimerRequest::Set {
            key: key.clone(),
            due: *due,
        }))
        .collect()
}
