//! Workflow documents by content, and what an id means to whom. Documents are never deleted: a run
//! may pin any of them.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::sync::Arc;
use tandem_record::{DefinitionHash, TenantId, Timestamp, WorkflowId};
use tandem_store::{Fault, ReadDefinitions, Registered, RegistryChange};

pub(crate) fn change(connection: &Connection, change: &RegistryChange) -> Result<()> {
    match change {
        RegistryChange::Register {
            tenant,
            definition,
            at,
        } => {
            connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO definitions (hash, document) VALUES (?1, ?2)",
                )?
                .execute([definition.hash.as_str(), &definition.document])?;
            forget(connection, tenant.as_ref(), &definition.workflow)?;
            connection
                .prepare_cached(
                    "INSERT INTO registry (tenant, workflow, hash, registered_at)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    tenant.as_ref().map(AsRef::as_ref),
                    definition.workflow.as_str(),
                    definition.hash.as_str(),
                    at.0,
                ])
                .map(drop)
        }
        RegistryChange::Unregister { tenant, workflow } => {
            forget(connection, tenant.as_ref(), workflow)
        }
    }
}

/// The document a tenant itself, or everybody, has under an id.
pub(crate) fn meaning(
    connection: &Connection,
    tenant: Option<&TenantId>,
    workflow: &WorkflowId,
) -> Result<Option<DefinitionHash>> {
    let hash = |row: &Row<'_>| Ok(DefinitionHash::new(row.get_ref(0)?.as_str()?));
    match tenant {
        Some(tenant) => connection
            .prepare_cached("SELECT hash FROM registry WHERE tenant = ?1 AND workflow = ?2")?
            .query_row([tenant.as_str(), workflow.as_str()], hash),
        None => connection
            .prepare_cached("SELECT hash FROM registry WHERE tenant IS NULL AND workflow = ?1")?
            .query_row([workflow.as_str()], hash),
    }
    .optional()
}

fn forget(connection: &Connection, tenant: Option<&TenantId>, workflow: &WorkflowId) -> Result<()> {
    match tenant {
        Some(tenant) => connection
            .prepare_cached("DELETE FROM registry WHERE tenant = ?1 AND workflow = ?2")?
            .execute([tenant.as_str(), workflow.as_str()])?,
        None => connection
            .prepare_cached("DELETE FROM registry WHERE tenant IS NULL AND workflow = ?1")?
            .execute([workflow.as_str()])?,
    };
    Ok(())
}

/// workflow, hash, document, whether shared, registered_at.
fn from_row(row: &Row<'_>) -> Result<Registered> {
    Ok(Registered {
        workflow: WorkflowId::new(row.get_ref(0)?.as_str()?),
        hash: DefinitionHash::new(row.get_ref(1)?.as_str()?),
        document: row.get_ref(2)?.as_str()?.into(),
        shared: row.get(3)?,
        registered_at: Timestamp(row.get(4)?),
    })
}

fn find(
    connection: &Connection,
    tenant: &TenantId,
    workflow: &WorkflowId,
) -> Result<Option<Registered>> {
    let own = connection
        .prepare_cached(
            "SELECT workflow, hash, document, FALSE, registered_at
             FROM registry JOIN definitions USING (hash)
             WHERE tenant = ?1 AND workflow = ?2",
        )?
        .query_row([tenant.as_str(), workflow.as_str()], from_row)
        .optional()?;
    if own.is_some() {
        return Ok(own);
    }
    connection
        .prepare_cached(
            "SELECT workflow, hash, document, TRUE, registered_at
             FROM registry JOIN definitions USING (hash)
             WHERE tenant IS NULL AND workflow = ?1",
        )?
        .query_row([workflow.as_str()], from_row)
        .optional()
}

fn list(connection: &Connection, tenant: &TenantId) -> Result<Vec<Registered>> {
    connection
        .prepare_cached(
            "SELECT workflow, hash, document, tenant IS NULL, registered_at
             FROM registry AS shown JOIN definitions USING (hash)
             WHERE tenant = ?1 OR (tenant IS NULL AND NOT EXISTS (
                 SELECT 1 FROM registry WHERE tenant = ?1 AND workflow = shown.workflow))
             ORDER BY workflow",
        )?
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
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Registered>, Fault> {
        let (tenant, workflow) = (tenant.clone(), workflow.clone());
        self.readers
            .read(move |connection| find(connection, &tenant, &workflow))
            .await
    }

    async fn list_registered(&self, tenant: &TenantId) -> Result<Vec<Registered>, Fault> {
        let tenant = tenant.clone();
        self.readers
            .read(move |connection| list(connection, &tenant))
            .await
    }
}
