//! Registering and unregistering workflow documents.

use crate::runtime::Runtime;
use crate::submit::MAX_CONFLICTS;
use crate::transaction::Transaction;
use crate::workflow_schedules::{ScheduleCommands, schedule_owner};
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::definition::{ChildReference, ConformanceTypes, Permissions, child_references};
use tandem_engine::pack::AllowedPackTypes;
use tandem_engine::{Definition, Problem};
use tandem_record::{Object, Partition, TenantId, WorkflowId};
use tandem_store::{
    AuditDraft, Commit, CommitGuard, DefinitionRecord, Error, Fault, RegisteredWorkflow,
    RegistryChange,
};

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Registration {
    Created,
    Changed,
    Unchanged,
}

/// A registration with its warnings.
#[derive(Debug)]
pub struct RegistrationReport {
    pub registration: Registration,
    pub warnings: Vec<Problem>,
    /// Child workflows that are not registered yet.
    pub unknown_children: Vec<ChildReference>,
}

#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Errors first, then warnings.
    #[error("the document has {} problems", .0.len())]
    Invalid(Vec<Problem>),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Runtime {
    /// Registers a document under its id: for one workspace or tenant, or for all with `None`.
    pub async fn register(
        &self,
        owner: Option<&Partition>,
        document: &Value,
        permissions: Permissions<'static>,
    ) -> Result<Registration, RegisterError> {
        let report = self
            .register_with_report(owner, document, permissions)
            .await?;
        Ok(report.registration)
    }

    /// The same, with warnings for the author.
    pub async fn register_with_report(
        &self,
        owner: Option<&Partition>,
        document: &Value,
        permissions: Permissions<'static>,
    ) -> Result<RegistrationReport, RegisterError> {
        if let Some(problem) = self.known_secret_problem(owner, document) {
            return Err(RegisterError::Invalid(vec![problem]));
        }
        let mut unknown_children = Vec::new();
        for child in child_references(document) {
            if self
                .find_registered(owner, &child.workflow)
                .await?
                .is_none()
            {
                unknown_children.push(child);
            }
        }
        let (runtime, document) = (self.clone(), document.clone());
        let admitted = self.inner.definitions.admit(move || {
            let definition = runtime.admit(&document, permissions)?;
            Ok((definition, Arc::<str>::from(document.to_string())))
        });
        let admitted = Box::pin(self.with_deadline(admitted)).await?;
        let (definition, document) = admitted.map_err(|mut problems: Vec<Problem>| {
            problems.extend(unknown_children.iter().map(ChildReference::unknown));
            RegisterError::Invalid(problems)
        })?;
        let warnings = definition.warnings.clone();
        let registration = self
            .commit_registration(owner, document, definition)
            .await?;
        Ok(RegistrationReport {
            registration,
            warnings,
            unknown_children,
        })
    }

    /// Documents are stored and shown as they are, and so is the workspace they are registered for.
    fn known_secret_problem(&self, owner: Option<&Partition>, document: &Value) -> Option<Problem> {
        let workspace = owner.and_then(|owner| owner.workspace.as_ref());
        let named = workspace.filter(|named| self.holds_known_secret(named.as_str()));
        let path = match named {
            Some(_) => "workspace".to_owned(),
            None => {
                let checked = without_headers(document);
                self.inner.config.redactor.place_of_known_secret(&checked)?
            }
        };
        Some(Problem {
            path,
            message: "holds a secret of this host; it would be stored and shown as it is"
                .to_owned(),
            reason: None,
            type_id: None,
            node: None,
            capability: None,
            warning: false,
        })
    }

    async fn commit_registration(
        &self,
        owner: Option<&Partition>,
        document: Arc<str>,
        definition: Arc<Definition>,
    ) -> Result<Registration, RegisterError> {
        for _ in 0..MAX_CONFLICTS {
            let existing = self.own_registration(owner, definition.id()).await?;
            let outcome = match &existing {
                None => Registration::Created,
                Some(existing) if existing.hash == definition.hash => {
                    return Ok(Registration::Unchanged);
                }
                Some(_) => Registration::Changed,
            };
            let schedules = self
                .schedules_of_document(owner, existing.as_ref(), &definition)
                .map_err(RegisterError::Invalid)?;
            let change = RegistryChange::Register {
                owner: owner.cloned(),
                definition: DefinitionRecord {
                    hash: definition.hash.clone(),
                    workflow: definition.id().clone(),
                    document: Arc::clone(&document),
                },
                at: self.clock().now(),
            };
            let guard = registration_guard(owner, definition.id(), existing);
            let details = Object::from_iter([("definition".to_owned(), json!(definition.hash))]);
            let audit =
                self.registry_audit_draft(owner, "workflow.register", definition.id(), details);
            let committed = self.commit_registry(change, guard, audit, schedules);
            if committed.await? {
                let bytes = document.len();
                self.inner.definitions.cache_definition(&definition, bytes);
                return Ok(outcome);
            }
        }
        Err(contended(definition.id()).into())
    }

    /// Compiles a document for registration on this host.
    fn admit(
        &self,
        document: &Value,
        permissions: Permissions<'_>,
    ) -> Result<Arc<Definition>, Vec<Problem>> {
        let permissions = Permissions {
            packs: AllowedPackTypes::Listed(self.packs()),
            unknown_settings: !self.inner.config.strict_documents,
            conformance: match self.inner.config.conformance {
                true => permissions.conformance,
                false => ConformanceTypes::Off,
            },
        };
        let definition = Definition::admit(document, permissions)?;
        let mut problems = self.providers().check(&definition);
        problems.extend(self.agent_policy().registration_problem(&definition));
        if problems.is_empty() {
            Ok(Arc::new(definition))
        } else {
            Err(problems)
        }
    }

    /// `false` when the owner itself has no document with that id.
    pub async fn unregister(&self, owner: &Partition, id: &WorkflowId) -> Result<bool, Fault> {
        for _ in 0..MAX_CONFLICTS {
            let existing = self.own_registration(Some(owner), id).await?;
            let Some(registered) = &existing else {
                return Ok(false);
            };
            let schedules = Self::ended_schedules(Some(owner), registered);
            let change = RegistryChange::Unregister {
                owner: Some(owner.clone()),
                workflow: id.clone(),
            };
            let guard = registration_guard(Some(owner), id, existing);
            let audit =
                self.registry_audit_draft(Some(owner), "workflow.unregister", id, Object::new());
            let committed = self.commit_registry(change, guard, audit, schedules);
            if committed.await? {
                return Ok(true);
            }
        }
        Err(contended(id))
    }

    /// The document an id stands for in a workspace or a tenant.
    pub async fn workflow(
        &self,
        owner: &Partition,
        id: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault> {
        self.store().registered(owner, id).await
    }

    /// Workflows this owner can run.
    pub async fn workflows(&self, owner: &Partition) -> Result<Vec<RegisteredWorkflow>, Fault> {
        self.store().list_registered(owner).await
    }

    /// Documents of the tenant's workspaces.
    pub async fn workflows_of_workspaces(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<RegisteredWorkflow>, Fault> {
        self.store().list_registered_in_workspaces(tenant).await
    }

    /// The compiled document an id stands for in a workspace or a tenant.
    pub async fn current_definition(
        &self,
        owner: &Partition,
        id: &WorkflowId,
    ) -> Result<Option<Arc<Definition>>, Fault> {
        self.refresh_registry_cache().await?;
        self.inner
            .definitions
            .current(&**self.store(), owner, id)
            .await
    }

    async fn own_registration(
        &self,
        owner: Option<&Partition>,
        id: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault> {
        let found = self.find_registered(owner, id).await?;
        let workspace = owner.and_then(|owner| owner.workspace.as_ref());
        Ok(found.filter(|r| r.shared == owner.is_none() && r.workspace.as_ref() == workspace))
    }

    /// The document an id stands for in a workspace or a tenant: its own or the shared one.
    async fn find_registered(
        &self,
        owner: Option<&Partition>,
        id: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault> {
        // No tenant has the empty name, so this finds the shared document.
        let nobody = Partition::from(TenantId::new(""));
        self.store().registered(owner.unwrap_or(&nobody), id).await
    }

    fn registry_audit_draft(
        &self,
        owner: Option<&Partition>,
        action: &str,
        id: &WorkflowId,
        mut details: Object,
    ) -> AuditDraft {
        let now = self.clock().now();
        let tenant = owner.map(|owner| &owner.tenant);
        if let Some(workspace) = owner.and_then(|owner| owner.workspace.as_ref()) {
            details.insert("workspace".to_owned(), json!(workspace));
        }
        AuditDraft::new(now, tenant, &self.actor, action, id.as_str(), details)
    }

    /// `false` on a conflict: another caller changed the registration, or a schedule of it; reload and retry.
    async fn commit_registry(
        &self,
        change: RegistryChange,
        guard: CommitGuard,
        audit: AuditDraft,
        schedules: ScheduleCommands,
    ) -> Result<bool, Fault> {
        let (owner, workflow) = match &change {
            RegistryChange::Register {
                owner, definition, ..
            } => (owner.clone(), definition.workflow.clone()),
            RegistryChange::Unregister { owner, workflow } => (owner.clone(), workflow.clone()),
        };
        let result = if schedules.is_empty() {
            let commit = Commit {
                tenant: owner.as_ref().map(|owner| owner.tenant.clone()),
                registry: vec![change],
                guards: vec![guard],
                audit: vec![audit],
                ..Commit::default()
            };
            self.store().commit(commit).await.map(drop)
        } else {
            let tenant = schedule_owner(owner.as_ref(), None).tenant;
            let mut transaction = Transaction::begin(self, &tenant).await?;
            transaction.change_registry(change, guard, audit);
            if !transaction.change_schedules(schedules).await? {
                return Ok(false);
            }
            transaction.commit().await
        };
        self.inner
            .definitions
            .invalidate_current(owner.as_ref(), &workflow);
        match result {
            Ok(()) => Ok(true),
            Err(Error::Fault(fault)) => Err(fault),
            Err(Error::Conflict(_)) => Ok(false),
        }
    }
}

/// The registration must still be the one the caller expects.
pub(crate) fn registration_guard(
    owner: Option<&Partition>,
    id: &WorkflowId,
    existing: Option<RegisteredWorkflow>,
) -> CommitGuard {
    CommitGuard::RegisteredAs {
        owner: owner.cloned(),
        workflow: id.clone(),
        hash: existing.map(|existing| existing.hash),
    }
}

fn contended(id: &WorkflowId) -> Fault {
    let message = format!("workflow {id} is changed too often by others");
    Fault::retryable("contended", message)
}

/// The document without the headers of its calls. A header is where a call carries its credential; it is
/// sent from the definition and enters no log.
fn without_headers(document: &Value) -> Value {
    let mut document = document.clone();
    let nodes = document.get_mut("nodes").and_then(Value::as_array_mut);
    for node in nodes.into_iter().flatten() {
        if let Some(config) = node.get_mut("config").and_then(Value::as_object_mut) {
            config.remove("headers");
        }
    }
    document
}
