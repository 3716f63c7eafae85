//! Workflow documents coming in and going out of use.

use crate::runtime::Runtime;
use crate::submit::MAX_CONFLICTS;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::definition::{ChildReference, Permissions, child_references};
use tandem_engine::pack::Brought;
use tandem_engine::{Definition, Problem};
use tandem_record::{Object, TenantId, WorkflowId};
use tandem_store::{
    AuditDraft, Commit, DefinitionRecord, Error, Fault, Guard, Registered, RegistryChange,
};

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Registration {
    Created,
    Changed,
    Unchanged,
}

/// A registration, and what the document's author should know about it.
#[derive(Debug)]
pub struct Told {
    pub registration: Registration,
    pub warnings: Vec<Problem>,
    /// Workflows it starts that nobody registered yet.
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
    /// Makes a document what its id means: for one tenant, or for all with `None`.
    pub async fn register(
        &self,
        tenant: Option<&TenantId>,
        document: &Value,
        permissions: Permissions<'_>,
    ) -> Result<Registration, RegisterError> {
        let told = self
            .register_and_tell(tenant, document, permissions)
            .await?;
        Ok(told.registration)
    }

    /// The same, with what its author should know.
    pub async fn register_and_tell(
        &self,
        tenant: Option<&TenantId>,
        document: &Value,
        permissions: Permissions<'_>,
    ) -> Result<Told, RegisterError> {
        let permissions = Permissions {
            packs: Brought::By(self.packs()),
            unknown_settings: !self.inner.config.strict_documents,
            ..permissions
        };
        let mut unknown_children = Vec::new();
        for child in child_references(document) {
            if self.meant(tenant, &child.workflow).await?.is_none() {
                unknown_children.push(child);
            }
        }
        let definition = Definition::admit(document, permissions).map_err(|mut problems| {
            problems.extend(unknown_children.iter().map(ChildReference::unknown));
            RegisterError::Invalid(problems)
        })?;
        let warnings = definition.warnings.clone();
        let registration = self.put_in_use(tenant, document, definition).await?;
        Ok(Told {
            registration,
            warnings,
            unknown_children,
        })
    }

    async fn put_in_use(
        &self,
        tenant: Option<&TenantId>,
        document: &Value,
        definition: Definition,
    ) -> Result<Registration, RegisterError> {
        let definition = Arc::new(definition);
        let problems = self.providers().check(&definition);
        if !problems.is_empty() {
            return Err(RegisterError::Invalid(problems));
        }
        let document: Arc<str> = Arc::from(document.to_string());
        for _ in 0..MAX_CONFLICTS {
            let known = self.own_registration(tenant, definition.id()).await?;
            let outcome = match &known {
                None => Registration::Created,
                Some(known) if known.hash == definition.hash => {
                    return Ok(Registration::Unchanged);
                }
                Some(_) => Registration::Changed,
            };
            let change = RegistryChange::Register {
                tenant: tenant.cloned(),
                definition: DefinitionRecord {
                    hash: definition.hash.clone(),
                    workflow: definition.id().clone(),
                    document: Arc::clone(&document),
                },
                at: self.clock().now(),
            };
            let guard = means(tenant, definition.id(), known);
            let details = Object::from_iter([("definition".to_owned(), json!(definition.hash))]);
            let told = self.told_registry(tenant, "workflow.register", definition.id(), details);
            if self.commit_registry(change, guard, told).await? {
                self.inner.definitions.remember(&definition);
                return Ok(outcome);
            }
        }
        Err(contended(definition.id()).into())
    }

    /// `false` when the tenant has no document of that id.
    pub async fn unregister(&self, tenant: &TenantId, id: &WorkflowId) -> Result<bool, Fault> {
        for _ in 0..MAX_CONFLICTS {
            let known = self.own_registration(Some(tenant), id).await?;
            if known.is_none() {
                return Ok(false);
            }
            let change = RegistryChange::Unregister {
                tenant: Some(tenant.clone()),
                workflow: id.clone(),
            };
            let guard = means(Some(tenant), id, known);
            let told = self.told_registry(Some(tenant), "workflow.unregister", id, Object::new());
            if self.commit_registry(change, guard, told).await? {
                return Ok(true);
            }
        }
        Err(contended(id))
    }

    /// The document an id means for a tenant.
    pub async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
    ) -> Result<Option<Registered>, Fault> {
        self.store().registered(tenant, id).await
    }

    pub async fn workflows(&self, tenant: &TenantId) -> Result<Vec<Registered>, Fault> {
        self.store().list_registered(tenant).await
    }

    /// The compiled document an id means for a tenant.
    pub async fn current_definition(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
    ) -> Result<Option<Arc<Definition>>, Fault> {
        self.inner
            .definitions
            .current(&**self.store(), tenant, id)
            .await
    }

    async fn own_registration(
        &self,
        tenant: Option<&TenantId>,
        id: &WorkflowId,
    ) -> Result<Option<Registered>, Fault> {
        let found = self.meant(tenant, id).await?;
        Ok(found.filter(|r| r.shared == tenant.is_none()))
    }

    /// What an id means for a tenant, its own document or the shared one.
    async fn meant(
        &self,
        tenant: Option<&TenantId>,
        id: &WorkflowId,
    ) -> Result<Option<Registered>, Fault> {
        // Nobody is called this, so the shared document is what this tenant would see.
        let nobody = TenantId::new("");
        self.store().registered(tenant.unwrap_or(&nobody), id).await
    }

    fn told_registry(
        &self,
        tenant: Option<&TenantId>,
        action: &str,
        id: &WorkflowId,
        details: Object,
    ) -> AuditDraft {
        let now = self.clock().now();
        AuditDraft::new(now, tenant, &self.actor, action, id.as_str(), details)
    }

    /// `false` when somebody else changed what the id means: look again.
    async fn commit_registry(
        &self,
        change: RegistryChange,
        guard: Guard,
        told: AuditDraft,
    ) -> Result<bool, Fault> {
        let commit = Commit {
            registry: vec![change],
            guards: vec![guard],
            audit: vec![told],
            ..Commit::default()
        };
        let result = self.store().commit(commit).await;
        self.inner.definitions.forget_current();
        match result {
            Ok(()) => Ok(true),
            Err(Error::Fault(fault)) => Err(fault),
            Err(Error::Conflict(_)) => Ok(false),
        }
    }
}

/// What is registered is replaced only while it is what the caller was told about.
fn means(tenant: Option<&TenantId>, id: &WorkflowId, known: Option<Registered>) -> Guard {
    Guard::Means {
        tenant: tenant.cloned(),
        workflow: id.clone(),
        hash: known.map(|known| known.hash),
    }
}

fn contended(id: &WorkflowId) -> Fault {
    let message = format!("workflow {id} is changed too often by others");
    Fault::retryable("contended", message)
}
