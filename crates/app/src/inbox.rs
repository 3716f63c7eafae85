//! The inbox: questions of the caller's runs, and what answers to them would lead to.

use crate::app::App;
use crate::error::AppError;
use tandem_access::{Identity, Scope};
use tandem_record::InterruptId;
use tandem_runtime::{
    InboxChoices, InboxPage, InboxQuery, InterruptFilter, InterruptListing, InterruptRow,
    NextStepsPreview, Page, RunPosition,
};

impl App {
    /// Questions the caller may see, newest first. The filter's workspace is the caller's.
    pub async fn list_interrupts(
        &self,
        caller: &Identity,
        filter: InterruptFilter,
        page: &Page,
    ) -> Result<InterruptListing, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let filter = InterruptFilter {
            workspace: caller.workspace.clone(),
            ..filter
        };
        let runtime = self.runtime();
        Ok(runtime.questions(&caller.tenant, &filter, page).await?)
    }

    /// One question the caller may see.
    pub async fn read_interrupt(
        &self,
        caller: &Identity,
        id: &InterruptId,
    ) -> Result<InterruptRow, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_interrupt(caller, id).await
    }

    /// Where a question stands in the caller's listings.
    pub async fn interrupt_position(
        &self,
        caller: &Identity,
        id: &InterruptId,
    ) -> Result<Option<RunPosition>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let of = caller.partition();
        Ok(self.runtime().question_position(&of, id).await?)
    }

    /// Open questions in inbox order. The query's workspace is the caller's.
    pub async fn read_inbox(
        &self,
        caller: &Identity,
        query: InboxQuery,
    ) -> Result<InboxPage, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let query = InboxQuery {
            workspace: caller.workspace.clone(),
            ..query
        };
        Ok(self.runtime().inbox(&caller.tenant, &query).await?)
    }

    /// Values by which the caller's open questions can be filtered.
    pub async fn inbox_choices(&self, caller: &Identity) -> Result<InboxChoices, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let workspace = caller.workspace.as_ref();
        let runtime = self.runtime();
        Ok(runtime.inbox_choices(&caller.tenant, workspace).await?)
    }

    /// Who may decide a question the caller may see, and what would follow from each of these answers.
    /// `None` when it is no longer open.
    pub async fn preview_next_steps(
        &self,
        caller: &Identity,
        question: &InterruptRow,
        actions: &[&str],
    ) -> Result<Option<NextStepsPreview>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let Some((run, node)) = question.run_and_node() else {
            return Ok(None);
        };
        let (tenant, at) = (&caller.tenant, (&node, &question.interrupt));
        let runtime = self.runtime();
        Ok(runtime
            .preview_next_steps(tenant, &run, at, actions)
            .await?)
    }
}
