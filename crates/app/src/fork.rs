//! Forking a run.

use crate::app::App;
use crate::error::AppError;
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Scope};
use tandem_record::{ForkMode, RunId, RunOptions, Seq, TraceContext};
use tandem_runtime::ForkRequest;

/// A fork that a caller asks for.
pub struct ForkRun {
    pub source: RunId,
    pub mode: ForkMode,
    /// Events below this sequence are kept. Required for a branch; 0 for a replay when left out.
    pub from_seq: Option<Seq>,
    /// Options that override those of the source; for branches only.
    pub overlay: RunOptions,
    pub trace: Option<TraceContext>,
}

/// A run that was made from another one.
pub struct ForkedRun {
    pub run: RunId,
    pub source: RunId,
    pub from_seq: Seq,
    pub mode: ForkMode,
}

impl ForkRun {
    /// Where the fork starts, after the checks that need no run.
    fn check(&self) -> Result<Seq, AppError> {
        let from_seq = match (self.from_seq, self.mode) {
            (None, ForkMode::Replay) => Seq(0),
            (None, ForkMode::Branch) => {
                return Err(AppError::invalid("/fromSeq", "is needed for a branch"));
            }
            (Some(from_seq), _) => from_seq,
        };
        let overlay = &self.overlay;
        let empty =
            overlay.configurable.is_none() && overlay.tags.is_none() && overlay.metadata.is_none();
        if self.mode == ForkMode::Replay && !empty {
            let message = "belongs to a branch; a replay runs with its source's options";
            return Err(AppError::invalid("/runOptionsOverlay", message));
        }
        Ok(from_seq)
    }
}

impl App {
    /// Forks a run the caller may see. The fork is durable and complete when this returns.
    pub async fn fork_run(
        &self,
        caller: &Identity,
        mut requested: ForkRun,
        idempotency: Idempotency<ForkedRun>,
    ) -> Result<Completion<ForkedRun>, AppError> {
        caller.require_scope(Scope::RunsCreate)?;
        caller.require_scope(Scope::RunsRead)?;
        let from_seq = requested.check()?;
        self.admit_mock_provider(caller, requested.overlay.configurable.as_mut())?;
        // A run past retention is still found here, to return its own error.
        let source = self.find_run_or_expired(caller, &requested.source).await?;
        let is_flow = source.row.run_id.is_flow_run();
        let overlay = &requested.overlay;
        if is_flow && *overlay != RunOptions::default() {
            let message = "runs of flows have no options";
            return Err(AppError::invalid("/runOptionsOverlay", message));
        }
        let (named, mode) = (requested.source, requested.mode);
        let convert = move |run: &RunId| ForkedRun {
            run: run.clone(),
            source: named.clone(),
            from_seq,
            mode,
        };
        let stored = idempotency.for_creation(convert.clone());
        let request = ForkRequest {
            mode,
            from_seq,
            overlay: requested.overlay,
            trace: requested.trace,
            conformance_role: caller.permits_conformance(),
        };
        let runtime = self.runtime_for(caller);
        let forked = Box::pin(async move {
            let run = runtime.fork_run(&source, request, stored).await?;
            Ok(convert(&run))
        });
        self.execute(idempotency, forked).await
    }
}
