//! The beginning of a run somebody asked for, made anew or forked: decided and committed, and
//! decided again when another run moved the memory it stands on.

use crate::decision_input::DecisionInput;
use crate::deeds::Deed;
use crate::runtime::Runtime;
use crate::submit::{Answer, Answering, Delivery, MAX_CONFLICTS, SubmitError, contended};
use tandem_record::{Partition, RunId};
use tandem_store::{Conflict, Error, Fault, Guard};

/// A run about to begin.
pub(crate) struct Founding<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) owner: &'a Partition,
    pub(crate) deed: Deed,
    pub(crate) answering: Option<Answering>,
    pub(crate) guard: Option<Guard>,
}

impl Runtime {
    /// Commits the first events of a run.
    pub(crate) async fn found(
        &self,
        founding: Founding<'_>,
        input: &DecisionInput<'_>,
    ) -> Result<(), SubmitError> {
        let Founding {
            run,
            owner,
            deed,
            answering,
            guard,
        } = founding;
        for _ in 0..MAX_CONFLICTS {
            let decision = match self.ask_engine(owner, input).await {
                Ok(decision) => decision,
                Err(SubmitError::Refused(refusal)) => {
                    return Box::pin(self.record_refusal(
                        &owner.tenant,
                        refusal,
                        answering.as_ref(),
                    ))
                    .await;
                }
                Err(other) => return Err(other),
            };
            let delivery = Delivery {
                deed: Some(deed.clone()),
                ..Delivery::default()
            };
            let stored = answering
                .as_ref()
                .and_then(|a| self.answer(a, &Answer::Created(run)));
            let slot = self.inner.live.slot(run);
            let mut held = slot.lock().await;
            let made = self
                .make_durable(&mut held, None, decision, stored, delivery, guard.clone())
                .await;
            match made {
                Ok(()) => return Ok(()),
                Err(Error::Fault(fault)) => return Err(fault.into()),
                Err(Error::Conflict(Conflict::KeyUsed)) => return Err(SubmitError::AnsweredBefore),
                Err(Error::Conflict(Conflict::Guard(_))) => {
                    return Err(SubmitError::ScopeBusy(None));
                }
                Err(Error::Conflict(conflict @ Conflict::Position { .. })) => {
                    let message = format!("the id of a new run was taken: {conflict}");
                    return Err(Fault::retryable("contended", message).into());
                }
                Err(Error::Conflict(Conflict::MemoryMoved)) => {
                    self.inner.metrics.conflicts.inc();
                }
            }
        }
        Err(contended(run).into())
    }
}
