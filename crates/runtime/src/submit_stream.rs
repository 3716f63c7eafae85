//! Submits a command to a stream of any machine: load, decide, commit, announce. On a sequence conflict
//! the stream is loaded again and the command is decided again, a bounded number of times.

use crate::driven_machine::{CommandMeta, DrivenMachine};
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::stream_cache::StreamSlot;
use crate::submit::{MAX_CONFLICTS, SubmitError};
use crate::transaction::Transaction;
use std::sync::Arc;
use tandem_engine::machine::Machine;
use tandem_record::StreamId;
use tandem_store::{Append, Conflict, Error, Fault, IdempotencyRecord};

/// What is asked of a machine, given how it stands. `None`: nothing.
pub(crate) type CommandFn<'a, M> =
    dyn Fn(&M) -> Result<Option<<M as Machine>::Command>, SubmitError> + Send + Sync + 'a;

/// What is stored with a reply.
pub type RecordsFn<'a, M> = dyn Fn(&<M as Machine>::Reply) -> Vec<CommitRecord> + Send + Sync + 'a;

/// What a commit stores beside the events of a command.
pub enum CommitRecord {
    /// The response to a request, or the id of a received message.
    Response(IdempotencyRecord),
    /// A stream of its own that begins and ends with it.
    Stream(Append),
}

/// How a command is submitted.
pub(crate) struct Submission<'a, M: DrivenMachine> {
    pub(crate) stream: &'a StreamId,
    pub(crate) meta: CommandMeta<M::TimerKey>,
    pub(crate) records: Option<&'a RecordsFn<'a, M>>,
    /// A caller requested it: it is audited, and the caller gets every error.
    pub(crate) is_requested: bool,
}

impl<'a, M: DrivenMachine> Submission<'a, M> {
    /// A command of the runtime itself.
    pub(crate) fn internal(stream: &'a StreamId, meta: CommandMeta<M::TimerKey>) -> Self {
        Self {
            stream,
            meta,
            records: None,
            is_requested: false,
        }
    }
}

pub(crate) fn contended(stream: &StreamId) -> Fault {
    let message = format!("{stream} is changed too often by others");
    Fault::retryable("contended", message)
}

impl Runtime {
    /// Submits a command to a stream of a machine beside the workflow run. `records` are stored in the
    /// commit of the command.
    pub async fn submit_command<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        stream: &StreamId,
        command: M::Command,
        records: Option<&RecordsFn<'_, M>>,
    ) -> Result<M::Reply, SubmitError> {
        let submission = Submission {
            stream,
            meta: CommandMeta::default(),
            records,
            is_requested: true,
        };
        let make_command = |_: &M| Ok(Some(command.clone()));
        let reply = self.submit_to_stream(driver, submission, &make_command);
        reply.await?.ok_or(SubmitError::NotFound)
    }

    /// The reply; `None` when the newest state asks for no command.
    pub(crate) async fn submit_to_stream<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        submission: Submission<'_, M>,
        make_command: &CommandFn<'_, M>,
    ) -> Result<Option<M::Reply>, SubmitError> {
        let Submission {
            stream,
            meta,
            records,
            is_requested,
        } = submission;
        for _ in 0..MAX_CONFLICTS {
            let mut slot = driver.cache.lock(stream).await;
            let current = self.load_machine(driver, stream, &mut slot).await?;
            let command = match make_command(&current) {
                Ok(Some(command)) => command,
                Ok(None) | Err(_) if self.is_behind(&current).await? => continue,
                Ok(None) => {
                    slot.machine = Some(current);
                    return Ok(None);
                }
                Err(refused) => {
                    slot.machine = Some(current);
                    return Err(refused);
                }
            };
            let mut meta = meta.clone();
            if is_requested {
                meta.audit_action = M::audit_action(&command, &self.actor);
            }
            let decided = M::decide_with_lookups(self, driver, &current, &command).await;
            let mut decision = match decided {
                Ok(decision) => decision,
                Err(SubmitError::Refused(_)) if self.is_behind(&current).await? => continue,
                Err(SubmitError::Refused(refusal)) => {
                    slot.machine = Some(current);
                    return Err(self.redacted_refusal(refusal).into());
                }
                Err(other) => return Err(other),
            };
            let reply = M::redact_reply(self, decision.reply);
            if current.head().is_none() && decision.events.is_empty() {
                // The stream does not begin, so there is nothing to commit.
                match self.is_behind(&current).await? {
                    true => continue,
                    false => return Ok(Some(reply)),
                }
            }
            // The audit entry of the decision is written from its reply.
            decision.reply = reply.clone();
            let mut transaction = Transaction::begin(self, decision.after.tenant()).await?;
            if let Some(records) = records {
                let stored = records(&reply).into_iter();
                stored.for_each(|record| transaction.store(record));
            }
            transaction
                .add(driver, slot, Some(current), decision, meta.clone())
                .await?;
            if transaction.is_stale {
                continue;
            }
            match transaction.commit().await {
                Ok(()) => return Ok(Some(reply)),
                Err(Error::Fault(fault)) if fault.code == "too_large" => {
                    Box::pin(self.abandon(driver, stream, meta, &fault)).await?;
                    // A caller gets the error; the runtime itself need not retry.
                    return match is_requested {
                        true => Err(fault.into()),
                        false => Ok(Some(reply)),
                    };
                }
                Err(Error::Fault(fault)) => return Err(fault.into()),
                Err(Error::Conflict(Conflict::KeyUsed)) => {
                    return Err(SubmitError::IdempotencyKeyUsed);
                }
                Err(Error::Conflict(Conflict::LeaseLost(_))) => return Err(SubmitError::LeaseLost),
                Err(Error::Conflict(conflict)) => {
                    self.inner.metrics.conflicts.inc();
                    tracing::debug!(%stream, %conflict, "sequence conflict: reload and retry");
                }
            }
        }
        Err(contended(stream).into())
    }

    /// The decision can never be stored, and a retry would decide the same. The machine gives up
    /// instead, in a small commit.
    async fn abandon<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        stream: &StreamId,
        meta: CommandMeta<M::TimerKey>,
        why: &Fault,
    ) -> Result<(), SubmitError> {
        let mut slot = driver.cache.lock(stream).await;
        let current = self.load_machine(driver, stream, &mut slot).await?;
        let Some(decision) = current.abandon(self, why) else {
            return Err(why.clone().into());
        };
        tracing::error!(%stream, error = %why, "a machine gives up: its decision cannot be stored");
        let mut transaction = Box::pin(Transaction::begin(self, decision.after.tenant())).await?;
        transaction
            .add(driver, slot, Some(current), decision, meta)
            .await?;
        match Box::pin(transaction.commit()).await {
            Ok(()) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault.into()),
            Err(Error::Conflict(_)) => Err(contended(stream).into()),
        }
    }

    /// The machine as of its last event: from the cache, else from snapshot and log.
    pub(crate) async fn load_machine<M: DrivenMachine>(
        &self,
        driver: &MachineDriver<M>,
        stream: &StreamId,
        slot: &mut StreamSlot<M>,
    ) -> Result<M, SubmitError> {
        if let Some(cached) = slot.machine.take() {
            return Ok(cached);
        }
        match Box::pin(M::load(self, driver, stream)).await? {
            Some(folded) => {
                slot.snapshot_at = folded.snapshot_at;
                driver.cache.set_size(stream, folded.machine.memory_bytes());
                Ok(folded.machine)
            }
            None => M::unstarted(stream).ok_or(SubmitError::NotFound),
        }
    }
}
