//! Cancelling many runs. Each run is cancelled by its own commit. Cancelling twice is harmless, so the
//! response may be stored after the mutation.

use crate::app::App;
use crate::conversation::AdminCall;
use crate::error::AppError;
use crate::idempotency::{Completion, Idempotency};
use tandem_record::{RunId, RunStatus};

const MAX_RUNS: usize = 100;
const MAX_ID_CHARS: usize = 128;
const MAX_REASON_CHARS: usize = 512;

/// What came of one of the runs: its status afterwards, or why it was not cancelled.
pub struct BulkCancelResult {
    pub run: RunId,
    pub result: Result<RunStatus, AppError>,
}

impl App {
    /// Cancels runs in the order they are named, those of flows with the rights of an admin. A fault of the host
    /// ends the whole request.
    pub async fn cancel_runs(
        &self,
        call: &AdminCall<'_>,
        runs: Vec<RunId>,
        reason: Option<String>,
        idempotency: Idempotency<Vec<BulkCancelResult>>,
    ) -> Result<Completion<Vec<BulkCancelResult>>, AppError> {
        check(&runs, reason.as_deref())?;
        let mut results = Vec::with_capacity(runs.len());
        for run in runs {
            let result = match self.cancel_found(call, &run, reason.clone()).await {
                Err(error) if error.is_fault() => return Err(error),
                result => result,
            };
            results.push(BulkCancelResult { run, result });
        }
        self.complete(idempotency, results).await
    }

    async fn cancel_found(
        &self,
        call: &AdminCall<'_>,
        run: &RunId,
        reason: Option<String>,
    ) -> Result<RunStatus, AppError> {
        let cancelled = match run.is_flow_run() {
            true => {
                self.cancel_flow_run(call, run.clone(), Idempotency::none())
                    .await?
            }
            false => {
                self.cancel_run(call.caller, run.clone(), reason, Idempotency::none())
                    .await?
            }
        };
        Ok(cancelled.done().status)
    }
}

fn check(runs: &[RunId], reason: Option<&str>) -> Result<(), AppError> {
    if runs.is_empty() || runs.len() > MAX_RUNS {
        return Err(AppError::TooManyRuns { limit: MAX_RUNS });
    }
    let misfit = runs
        .iter()
        .map(RunId::as_str)
        .position(|id| id.is_empty() || id.chars().count() > MAX_ID_CHARS);
    if let Some(index) = misfit {
        let path = format!("/runIds/{index}");
        return Err(AppError::invalid(path, "must have 1 to 128 characters"));
    }
    if reason.unwrap_or_default().chars().count() > MAX_REASON_CHARS {
        let message = "must have at most 512 characters";
        return Err(AppError::invalid("/reason", message));
    }
    Ok(())
}
