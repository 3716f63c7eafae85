//! Workflow documents: registering, unregistering, listing.
//!
//! A registered document belongs to the caller's workspace, or to its tenant if its key is bound to
//! none. A workspace's document overrides the tenant's document of the same id, for runs of that
//! workspace only. Registering the same document twice changes nothing, so the response may be
//! stored after the mutation.

use crate::app::App;
use crate::detached_request::run_to_completion;
use crate::error::{AppError, ForbiddenReason, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use serde_json::Value;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::{Partition, WorkflowId, WorkspaceId};
use tandem_runtime::{
    ChildReference, ConformanceTypes, Definition, Permissions, Problem, RegisteredWorkflow,
    Registration,
};

/// The owner of documents that a caller may read and change.
#[derive(Clone)]
pub struct WorkflowOwner(Partition);

/// A registered document, with warnings for its author.
pub struct RegisteredDocument {
    /// As the document names it.
    pub workflow_id: Value,
    pub registration: Registration,
    pub warnings: Vec<Problem>,
}

impl App {
    /// The owner of documents: the caller's partition. A key bound to no workspace may name one.
    pub fn workflow_owner(
        &self,
        caller: &Identity,
        workspace: Option<&str>,
    ) -> Result<WorkflowOwner, AppError> {
        let mut owner = caller.partition();
        if let Some(named) = workspace.map(WorkspaceId::new) {
            if caller.workspace.as_ref().is_some_and(|own| *own != named) {
                return Err(ForbiddenReason::BoundToOtherWorkspace.into());
            }
            if named.as_str().is_empty() {
                return Err(AppError::invalid("workspace", "must have a name"));
            }
            owner.workspace = Some(named);
        }
        Ok(WorkflowOwner(owner))
    }

    pub async fn register_workflow(
        &self,
        caller: &Identity,
        WorkflowOwner(owner): WorkflowOwner,
        document: Value,
        idempotency: Idempotency<RegisteredDocument>,
    ) -> Result<Completion<RegisteredDocument>, AppError> {
        caller.require_scope(Scope::Workflows)?;
        let permissions = Permissions {
            conformance: match caller.permits_conformance() {
                true => ConformanceTypes::Everywhere,
                false => ConformanceTypes::ByWorkflowId,
            },
            ..Permissions::default()
        };
        let workflow_id = document["id"].clone();
        let runtime = self.runtime_for(caller);
        let report = run_to_completion(async move {
            runtime
                .register_with_report(Some(&owner), &document, permissions)
                .await
        })
        .await?;
        let children = report.unknown_children.iter();
        let children = children.map(ChildReference::unknown);
        let registered = RegisteredDocument {
            workflow_id,
            registration: report.registration,
            warnings: report.warnings.into_iter().chain(children).collect(),
        };
        self.complete(idempotency, registered).await
    }

    /// The id means nothing any more; runs keep their version.
    pub async fn unregister_workflow(
        &self,
        caller: &Identity,
        WorkflowOwner(owner): WorkflowOwner,
        id: WorkflowId,
        idempotency: Idempotency<()>,
    ) -> Result<Completion<()>, AppError> {
        caller.require_scope(Scope::Workflows)?;
        let runtime = self.runtime_for(caller);
        let (of, workflow) = (owner.clone(), id.clone());
        let existed =
            run_to_completion(async move { runtime.unregister(&of, &workflow).await }).await?;
        if !existed {
            let visible = self.runtime().workflow(&owner, &id).await?;
            if owner.workspace.is_some() && visible.is_some_and(|visible| !visible.shared) {
                return Err(ForbiddenReason::WorkflowOfTenant.into());
            }
            return Err(AppError::NotFound(ResourceKind::Workflow));
        }
        self.complete(idempotency, ()).await
    }

    /// The document an id stands for.
    pub async fn read_workflow(
        &self,
        caller: &Identity,
        WorkflowOwner(owner): &WorkflowOwner,
        id: &WorkflowId,
    ) -> Result<RegisteredWorkflow, AppError> {
        caller.require_scope(Scope::ManifestRead)?;
        let found = self.runtime().workflow(owner, id).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Workflow))
    }

    /// The compiled document an id stands for.
    pub async fn read_definition(
        &self,
        caller: &Identity,
        id: &WorkflowId,
    ) -> Result<Arc<Definition>, AppError> {
        caller.require_scope(Scope::ManifestRead)?;
        let runtime = self.runtime();
        let found = runtime.current_definition(&caller.partition(), id).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Workflow))
    }

    /// Every workflow the caller may run.
    pub async fn list_runnable_workflows(
        &self,
        caller: &Identity,
    ) -> Result<Vec<RegisteredWorkflow>, AppError> {
        caller.require_scope(Scope::ManifestRead)?;
        Ok(self.runtime().workflows(&caller.partition()).await?)
    }

    /// The same; with a key bound to no workspace also those of the tenant's workspaces.
    pub async fn list_workflows(
        &self,
        caller: &Identity,
    ) -> Result<Vec<RegisteredWorkflow>, AppError> {
        let mut registered = self.list_runnable_workflows(caller).await?;
        if caller.workspace.is_none() {
            let theirs = self.runtime().workflows_of_workspaces(&caller.tenant);
            registered.extend(theirs.await?);
        }
        Ok(registered)
    }

    /// Ids by which the caller's runs can be filtered.
    pub async fn list_workflow_ids(&self, caller: &Identity) -> Result<Vec<WorkflowId>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let registered = self.runtime().workflows(&caller.partition()).await?;
        Ok(registered.into_iter().map(|r| r.workflow).collect())
    }
}
