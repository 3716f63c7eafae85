//! With several processes on one store, a cached machine may lack events that another process appended. A
//! decision with events is checked by its commit. An answer without events is given only on the stored
//! head.

use crate::runtime::Runtime;
use tandem_engine::machine::Machine;
use tandem_record::{Seq, StreamId};
use tandem_store::{Conflict, Error, Fault};

impl Runtime {
    /// Whether another process appended events to the stream since the machine was folded.
    pub(crate) async fn is_behind(&self, machine: &impl Machine) -> Result<bool, Fault> {
        match self
            .check_stored_head(&machine.stream(), machine.head())
            .await
        {
            Ok(()) => Ok(false),
            Err(Error::Conflict(_)) => Ok(true),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }

    /// A conflict if the stream does not end at `head`. A process that is alone needs no read.
    pub(crate) async fn check_stored_head(
        &self,
        stream: &StreamId,
        head: Option<Seq>,
    ) -> Result<(), Error> {
        if self.inner.config.is_single_process {
            return Ok(());
        }
        let stored = self.store().events(stream, head, 0).await?;
        if stored.head == head {
            return Ok(());
        }
        Err(Error::Conflict(Conflict::Position {
            stream: stream.clone(),
            expected: head,
            actual: stored.head,
        }))
    }
}
