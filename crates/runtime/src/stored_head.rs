//! With several processes on one store, a cached run may lack events that another process appended. A
//! decision with events is checked by its commit. An answer without events is given only on the stored
//! head.

use crate::runtime::Runtime;
use tandem_engine::run::Run;
use tandem_record::StreamId;
use tandem_store::{Conflict, Error, Fault};

impl Runtime {
    /// Whether another process appended events to the run since it was folded.
    pub(crate) async fn is_behind(&self, run: &Run) -> Result<bool, Fault> {
        match self.check_stored_head(run).await {
            Ok(()) => Ok(false),
            Err(Error::Conflict(_)) => Ok(true),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }

    /// A conflict if the run is not at the end of its log. A process that is alone needs no read.
    pub(crate) async fn check_stored_head(&self, run: &Run) -> Result<(), Error> {
        if self.inner.config.is_single_process {
            return Ok(());
        }
        let stream = StreamId::of_run(run.id());
        let stored = self.store().events(&stream, run.head(), 0).await?;
        if stored.head == run.head() {
            return Ok(());
        }
        Err(Error::Conflict(Conflict::Position {
            stream,
            expected: run.head(),
            actual: stored.head,
        }))
    }
}
