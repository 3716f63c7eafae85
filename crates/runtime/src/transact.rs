//! Commands to streams of several machines in one commit: all are carried out, or none.

use crate::driven_machine::{CommandMeta, DrivenMachine};
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::{MAX_CONFLICTS, SubmitError};
use crate::transaction::Transaction;
use std::sync::Arc;
use tandem_record::{StreamId, TenantId};
use tandem_store::{Conflict, Error, Fault};

/// What a transaction is made of.
pub trait TransactionParts: Sync {
    type Reply: Send;

    /// Submits the parts. Called again after a conflict.
    fn submit_to(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> impl Future<Output = Result<Self::Reply, SubmitError>> + Send;
}

impl Runtime {
    /// Commits what `parts` submits to streams of one tenant. An error of a part abandons all.
    pub async fn transact<P: TransactionParts>(
        &self,
        tenant: &TenantId,
        parts: &P,
    ) -> Result<P::Reply, SubmitError> {
        for _ in 0..MAX_CONFLICTS {
            let mut transaction = Transaction::begin(self, tenant).await?;
            let reply = match parts.submit_to(&mut transaction).await {
                Ok(_) | Err(_) if transaction.is_stale => continue,
                Ok(reply) => reply,
                Err(error) => return Err(error),
            };
            match transaction.commit().await {
                Ok(()) => return Ok(reply),
                Err(Error::Fault(fault)) => return Err(fault.into()),
                Err(Error::Conflict(Conflict::KeyUsed)) => {
                    return Err(SubmitError::IdempotencyKeyUsed);
                }
                Err(Error::Conflict(Conflict::LeaseLost(_))) => return Err(SubmitError::LeaseLost),
                Err(Error::Conflict(conflict)) => {
                    self.inner.metrics.conflicts.inc();
                    tracing::debug!(%conflict, "sequence conflict: reload and retry");
                }
            }
        }
        let message = "the streams of a transaction are changed too often by others";
        Err(Fault::retryable("contended", message).into())
    }
}

impl Transaction<'_> {
    /// Decides a command and adds its decision. Streams are named in ascending order, each once, so
    /// that two transactions never wait for each other. A stream of another tenant is not found.
    pub async fn submit<M: DrivenMachine>(
        &mut self,
        driver: &Arc<MachineDriver<M>>,
        stream: &StreamId,
        command: &M::Command,
    ) -> Result<M::Reply, SubmitError> {
        if self.last_stream.as_ref().is_some_and(|last| last >= stream) {
            let message = format!("{stream} is not in order with the transaction's other streams");
            return Err(Fault::permanent("invalid", message).into());
        }
        self.last_stream = Some(stream.clone());
        let runtime = self.runtime;
        let mut slot = driver.cache.lock(stream).await;
        let current = runtime.load_machine(driver, stream, &mut slot).await?;
        let decided = M::decide_with_lookups(runtime, driver, &current, command).await;
        let mut decision = match decided {
            Ok(decision) => decision,
            Err(error) => {
                self.is_stale = runtime.is_behind(&current).await?;
                if !self.is_stale {
                    slot.machine = Some(current);
                }
                return Err(error);
            }
        };
        let reply = M::redact_reply(runtime, decision.reply);
        if current.head().is_none() && decision.events.is_empty() {
            // The stream does not begin, so it has no part in the commit.
            self.is_stale = runtime.is_behind(&current).await?;
            return Ok(reply);
        }
        if self.tenant() != Some(decision.after.tenant()) {
            slot.machine = Some(current);
            return Err(SubmitError::NotFound);
        }
        decision.reply = reply.clone();
        let meta = CommandMeta {
            audit_action: M::audit_action(command, &runtime.actor),
            ..CommandMeta::default()
        };
        self.add(driver, slot, Some(current), decision, meta)
            .await?;
        Ok(reply)
    }
}
