//! Workflow documents and code of flows by content, and the document each workflow id stands for.
//! Documents are never deleted: a run may pin any of them.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_record::{DefinitionHash, Partition, TenantId, Timestamp, WorkflowId};
use tandem_store::{Fault, ReadDefinitions, RegisteredWorkflow, RegistryChange};

pub(crate) fn change(connection: &Connection, change: &RegistryChange) -> Result<()> {
    match change {
        RegistryChange::Register {
            owner,
            definition,
            at,
        } => {
            store(connection, &definition.hash, &definition.document)?;
            unregister(connection, owner.as_ref(), &definition.workflow)?;
            connection
                .prepare_cached(
                    "INSERT INTO registry (tenant, workspace, workflow, hash, registered_at)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    owner.as_ref().map(|owner| owner.tenant.as_str()),
                    workspace(owner.as_ref()),
                    definition.workflow.as_str(),
                    definition.hash.as_str(),
                    at.0,
                ])
                .map(drop)
        }
        RegistryChange::Unregister { owner, workflow } => {
            unregister(connection, owner.as_ref(), workflow)
        }
    }
}

/// A document that is stored already is the same.
pub(crate) fn store(connection: &Connection, hash: &DefinitionHash, document: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO definitions (hash, document) VALUES (?1, ?2)")?
        .execute([hash.as_str(), document])
        .map(drop)
}

fn workspace(owner: Option<&Partition>) -> Option<&str> {
    owner?.workspace.as_ref().map(AsRef::as_ref)
}

/// The document registered under an id for a workspace, a tenant, or as shared.
pub(crate) fn registered_hash(
    connection: &Connection,
    owner: Option<&Partition>,
    workflow: &WorkflowId,
) -> Result<Option<DefinitionHash>> {
    let found = registered_for(connection, owner, workflow)?;
    Ok(found.map(|registered| registered.hash))
}

/// One statement for each kind of owner, each with its own index.
macro_rules! where_owned {
    (shared) => {
        " WHERE tenant IS NULL AND workflow = ?1"
    };
    (tenant) => {
        " WHERE tenant = ?2 AND workspace IS NULL AND workflow = ?1"
    };
    (workspace) => {
        " WHERE tenant = ?2 AND workspace = ?3 AND workflow = ?1"
    };
}

fn unregister(
    connection: &Connection,
    owner: Option<&Partition>,
    workflow: &WorkflowId,
) -> Result<()> {
    let id = workflow.as_str();
    match owner.map(|owner| (owner.tenant.as_str(), workspace(Some(owner)))) {
        None => connection
            .prepare_cached(concat!("DELETE FROM registry", where_owned!(shared)))?
            .execute([id])?,
        Some((tenant, None)) => connection
            .prepare_cached(concat!("DELETE FROM registry", where_owned!(tenant)))?
            .execute([id, tenant])?,
        Some((tenant, Some(workspace))) => connection
            .prepare_cached(concat!("DELETE FROM registry", where_owned!(workspace)))?
            .execute([id, tenant, workspace])?,
    };
    Ok(())
}

/// In the order [`from_row`] reads them.
macro_rules! select {
    () => {
        "SELECT workflow, hash, document, tenant IS NULL, registered_at, workspace
         FROM registry JOIN definitions USING (hash)"
    };
}

fn from_row(row: &Row<'_>) -> Result<RegisteredWorkflow> {
    Ok(RegisteredWorkflow {
        workflow: WorkflowId::new(row.get_ref(0)?.as_str()?),
        hash: DefinitionHash::new(row.get_ref(1)?.as_str()?),
        document: row.get_ref(2)?.as_str()?.into(),
        shared: row.get(3)?,
        registered_at: Timestamp(row.get(4)?),
        workspace: row.get_ref(5)?.as_str_or_null()?.map(Into::into),
    })
}

/// What is registered for this owner itself.
fn registered_for(
    connection: &Connection,
    owner: Option<&Partition>,
    workflow: &WorkflowId,
) -> Result<Option<RegisteredWorkflow>> {
    let id = workflow.as_str();
    match owner.map(|owner| (owner.tenant.as_str(), workspace(Some(owner)))) {
        None => connection
            .prepare_cached(concat!(select!(), where_owned!(shared)))?
            .query_row([id], from_row),
        Some((tenant, None)) => connection
            .prepare_cached(concat!(select!(), where_owned!(tenant)))?
            .query_row([id, tenant], from_row),
        Some((tenant, Some(workspace))) => connection
            .prepare_cached(concat!(select!(), where_owned!(workspace)))?
            .query_row([id, tenant, workspace], from_row),
    }
    .optional()
}

fn find(
    connection: &Connection,
    owner: &Partition,
    workflow: &WorkflowId,
) -> Result<Option<RegisteredWorkflow>> {
    if owner.workspace.is_some()
        && let Some(found) = registered_for(connection, Some(owner), workflow)?
    {
        return Ok(Some(found));
    }
    let tenant = Partition::from(owner.tenant.clone());
    match registered_for(connection, Some(&tenant), workflow)? {
        Some(found) => Ok(Some(found)),
        None => registered_for(connection, None, workflow),
    }
}

/// Shared documents come first, then the tenant's: the more specific document replaces the less
/// specific one.
fn list(connection: &Connection, owner: &Partition) -> Result<Vec<RegisteredWorkflow>> {
    let mut select = connection.prepare_cached(concat!(
        select!(),
        " WHERE tenant IS NULL OR (tenant = ?1 AND (workspace IS NULL OR workspace = ?2))
          ORDER BY tenant IS NOT NULL, workspace IS NOT NULL"
    ))?;
    let found = select.query_map(
        params![owner.tenant.as_str(), workspace(Some(owner))],
        from_row,
    )?;
    let mut visible = BTreeMap::new();
    for registered in found {
        let registered = registered?;
        visible.insert(registered.workflow.clone(), registered);
    }
    Ok(visible.into_values().collect())
}

fn list_registered_in_workspaces(
    connection: &Connection,
    tenant: &TenantId,
) -> Result<Vec<RegisteredWorkflow>> {
    connection
        .prepare_cached(concat!(
            select!(),
            " WHERE tenant = ?1 AND workspace IS NOT NULL ORDER BY workspace, workflow"
        ))?
        .query_map([tenant.as_str()], from_row)?
        .collect()
}

#[async_trait]
impl ReadDefinitions for SqliteStore {
    async fn definition(&self, hash: &DefinitionHash) -> Result<Option<Arc<str>>, Fault> {
        let hash = hash.clone();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached("SELECT document FROM definitions WHERE hash = ?1")?
                    .query_row([hash.as_str()], |row| Ok(row.get_ref(0)?.as_str()?.into()))
                    .optional()
            })
            .await
    }

    async fn registered(
        &self,
        owner: &Partition,
        workflow: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault> {
        let (owner, workflow) = (owner.clone(), workflow.clone());
        self.readers
            .read(move |connection| find(connection, &owner, &workflow))
            .await
    }

    async fn list_registered(&self, owner: &Partition) -> Result<Vec<RegisteredWorkflow>, Fault> {
        let owner = owner.clone();
        self.readers
            .read(move |connection| list(connection, &owner))
            .await
    }

    async fn list_registered_in_workspaces(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<RegisteredWorkflow>, Fault> {
        let tenant = tenant.clone();
        self.readers
            .read(move |connection| list_registered_in_workspaces(connection, &tenant))
            .await
    }
}
