//! The runtime's side of a state machine: where it is cached, how its events are stored, and which
//! rows a commit writes for it beside its events.

use crate::audit_actions::AuditAction;
use crate::runtime::{Inner, Runtime};
use crate::stream_cache::StreamCache;
use crate::webhooks::TenantSubscriptions;
use tandem_engine::machine::{Decision, Machine};
use tandem_record::{EffectId, EffectKind, TimerKey};
use tandem_store::{Commit, Lane, LeaseId, NewEvent, RunRow};

/// What accompanies a command.
#[derive(Clone)]
pub(crate) struct CommandMeta<K = TimerKey> {
    /// The outbox entry this command completes; removed in the same commit. The lease it was
    /// performed under must still be held.
    pub(crate) completes: Option<(EffectId, LeaseId)>,
    /// The timer that fired.
    pub(crate) timer: Option<K>,
    /// The audit entry to write, if a caller requested the command.
    pub(crate) audit_action: Option<AuditAction>,
}

impl<K> Default for CommandMeta<K> {
    fn default() -> Self {
        Self {
            completes: None,
            timer: None,
            audit_action: None,
        }
    }
}

/// Rows that a decision changes, apart from those it added to the commit itself.
pub(crate) struct ProjectedRows {
    /// The row of the run listing, if it changed.
    pub(crate) run: Option<RunRow>,
    pub(crate) has_question_changes: bool,
    /// The feed of the tenant's webhooks grows.
    pub(crate) is_published: bool,
}

/// A machine that the runtime can load, commit and announce.
pub(crate) trait DrivenMachine: Machine {
    /// Increment when the snapshot changes shape; older snapshots are then ignored.
    const SNAPSHOT_FORMAT: u32;

    fn cache(inner: &Inner) -> &StreamCache<Self>;

    fn limits(inner: &Inner) -> &Self::Limits;

    /// The key of a timer as the store knows it.
    fn stored_timer_key(key: &Self::TimerKey) -> TimerKey;

    /// Removes secrets from the decision and encodes its events. If something was removed, the
    /// machine is folded again from the redacted events: memory and log never disagree.
    fn encode_events(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &mut Decision<Self>,
    ) -> Vec<NewEvent>;

    /// The lane whose workers perform an effect.
    fn lane(&self, effect: &EffectKind) -> Lane;

    /// Adds the rows that follow from the decision.
    fn project(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &Decision<Self>,
        audit_action: Option<&AuditAction>,
        subscriptions: &TenantSubscriptions,
        commit: &mut Commit,
    ) -> ProjectedRows;

    /// Wakes readers of the stream and counts the decision. Called after the commit only.
    fn announce(runtime: &Runtime, decision: &Decision<Self>, created: bool);
}
