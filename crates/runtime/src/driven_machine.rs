//! The runtime's side of a state machine: how its stream is loaded, how its events, timers and effects
//! are stored, who performs its effects, and which rows a commit writes beside its events.
//!
//! The workflow run is one such machine (`run_machine.rs`). The runtime knows the others only by this
//! trait and by the prefix of their streams (`machine_driver.rs`).

use crate::audit_actions::AuditAction;
use crate::fold_stream::FoldedStream;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::transaction::Companion;
use crate::webhooks::TenantSubscriptions;
use std::sync::Arc;
use tandem_engine::machine::{Decision, Machine};
use tandem_record::{Actor, Effect, EffectId, OrderKey, StreamId, TenantId, TimerKey, TimerName};
use tandem_store::{Commit, Fault, Lane, LeaseId, NewEvent, RunRow};

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

/// What a machine may use to make the rows of a commit.
pub struct Projection<'a> {
    pub runtime: &'a Runtime,
    pub(crate) audit_action: Option<&'a AuditAction>,
    pub(crate) subscriptions: &'a TenantSubscriptions,
}

/// Rows that a decision changes, apart from those it added to the commit itself.
#[derive(Default)]
pub struct ProjectedRows {
    /// The row of the run listing, if it changed. Only for streams of runs.
    pub run: Option<RunRow>,
    pub has_question_changes: bool,
    /// The feed of the tenant's webhooks grows.
    pub is_published: bool,
}

/// A machine that the runtime can load, commit and announce.
pub trait DrivenMachine: Machine {
    /// Its streams begin with this. The machine with the longest matching prefix drives a stream.
    const STREAM_PREFIX: &'static str;
    /// Increment when the snapshot changes shape; older snapshots are then ignored.
    const SNAPSHOT_FORMAT: u32;

    /// What the host provides to machines of this kind.
    type Settings: Send + Sync + 'static;
    /// What performing an effect gives. It is recorded afterwards, repeatedly if recording fails.
    type Outcome: Send + Sync;

    fn limits<'a>(runtime: &'a Runtime, settings: &'a Self::Settings) -> &'a Self::Limits;

    /// The machine as of its last event; `None` if the stream does not exist.
    fn load(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> impl Future<Output = Result<Option<FoldedStream<Self>>, Fault>> + Send;

    /// Whose stream it is; `None` if it does not exist.
    fn tenant_of(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> impl Future<Output = Result<Option<TenantId>, Fault>> + Send {
        async move {
            let folded = Self::load(runtime, driver, stream).await?;
            Ok(folded.map(|folded| folded.machine.tenant().clone()))
        }
    }

    /// The machine before its first event, if a command may begin the stream.
    fn unstarted(stream: &StreamId) -> Option<Self>;

    /// Decides, after looking up whatever the machine needs to. A machine that refuses a command
    /// replies so without events; only the workflow run has [`SubmitError::Refused`].
    fn decide_with_lookups(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        current: &Self,
        command: &Self::Command,
    ) -> impl Future<Output = Result<Decision<Self>, SubmitError>> + Send;

    /// A small decision in place of one that can never be stored.
    fn abandon(&self, _runtime: &Runtime, _why: &Fault) -> Option<Decision<Self>> {
        None
    }

    /// Removes secrets from a reply. One that holds only what is in the log has none.
    fn redact_reply(_runtime: &Runtime, reply: Self::Reply) -> Self::Reply {
        reply
    }

    /// The audit entry of a command that a caller submits.
    fn audit_action(_command: &Self::Command, _actor: &Actor) -> Option<AuditAction> {
        None
    }

    fn timer_name(key: &Self::TimerKey) -> TimerName;

    /// The reverse of [`Self::timer_name`]; `None` for a name it never gives.
    fn timer_key(name: &TimerName) -> Option<Self::TimerKey>;

    fn timer_command(key: Self::TimerKey) -> Self::Command;

    /// A short stable name for metrics and rows.
    fn effect_name(effect: &Self::EffectKind) -> &'static str;

    /// The lane whose workers perform an effect.
    fn lane(&self, effect: &Self::EffectKind) -> Lane;

    /// Effects with the same key are performed one after the other.
    fn order_key(&self, _effect: &Self::EffectKind) -> Option<OrderKey> {
        None
    }

    /// Whether [`Self::refuse_dispatch`] is called before an effect is performed.
    fn checks_dispatch(_effect: &Self::EffectKind) -> bool {
        false
    }

    /// Called just before an effect is performed, on the newest state: the command that records why it
    /// is not performed. The command is committed with the removal of the effect, under its lease.
    fn refuse_dispatch(&self, _effect: &Effect<Self::EffectKind>) -> Option<Self::Command> {
        None
    }

    /// Performs an effect. A fault means that nothing was done and that it is attempted again.
    fn perform(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        work: &LeasedEffect<Self::EffectKind>,
    ) -> impl Future<Output = Result<Self::Outcome, Fault>> + Send;

    /// Records the outcome of an effect, as a command to a stream of any machine
    /// ([`Runtime::submit_effect_result`]), or reschedules or removes the effect.
    fn record_outcome(
        runtime: &Runtime,
        driver: &Arc<MachineDriver<Self>>,
        work: &LeasedEffect<Self::EffectKind>,
        outcome: &Self::Outcome,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Removes secrets from the decision and encodes its events. If something was removed, the
    /// machine is folded again from the redacted events: memory and log never disagree.
    fn encode_events(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &mut Decision<Self>,
    ) -> Vec<NewEvent>;

    /// Commands to streams of other machines that belong to the decision.
    fn companions(_: &Arc<MachineDriver<Self>>, _: &mut Decision<Self>) -> Vec<Companion> {
        Vec::new()
    }

    /// Adds the rows that follow from the decision.
    fn project(
        projection: &Projection<'_>,
        before: Option<&Self>,
        decision: &Decision<Self>,
        commit: &mut Commit,
    ) -> ProjectedRows;

    /// Counts the decision and notifies others than the readers of the stream. Called after the
    /// commit only.
    fn announce(_runtime: &Runtime, _decision: &Decision<Self>, _created: bool) {}
}
