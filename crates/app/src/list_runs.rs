//! Listing runs, newest first.

use crate::app::App;
use crate::error::AppError;
use tandem_access::{Identity, Scope};
use tandem_record::RunId;
use tandem_runtime::{Page, RunFilter, RunListing, RunPosition};

impl App {
    /// Runs the caller may see. The filter's workspace is the caller's.
    pub async fn list_runs(
        &self,
        caller: &Identity,
        filter: RunFilter,
        page: &Page,
    ) -> Result<RunListing, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let filter = RunFilter {
            workspace: caller.workspace.clone(),
            ..filter
        };
        let runtime = self.runtime();
        Ok(runtime.list_runs(&caller.tenant, &filter, page).await?)
    }

    /// Where a run stands in the caller's listings.
    pub async fn run_position(
        &self,
        caller: &Identity,
        run: &RunId,
    ) -> Result<Option<RunPosition>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let of = caller.partition();
        Ok(self.runtime().run_position(&of, run).await?)
    }
}
