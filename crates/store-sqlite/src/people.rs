//! Groups of approvers and delegations.

use crate::SqliteStore;
use crate::fault;
use async_trait::async_trait;
use rusqlite::{Connection, Result, Row, params};
use std::sync::atomic::Ordering;
use tandem_record::{Principal, TenantId, Timestamp};
use tandem_store::{DelegationRecord, Fault, GroupRecord, PeopleChange, ReadPeople};

pub(crate) fn change(connection: &Connection, change: &PeopleChange) -> Result<()> {
    match change {
        PeopleChange::PutGroup(group) => {
            let members = serde_json::to_string(&group.members).expect("names are plain JSON");
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO groups (tenant, name, members, changed_at)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    group.tenant.as_str(),
                    group.name,
                    members,
                    group.changed_at.0
                ])?;
        }
        PeopleChange::DropGroup { tenant, name } => {
            connection
                .prepare_cached("DELETE FROM groups WHERE tenant = ?1 AND name = ?2")?
                .execute([tenant.as_str(), name])?;
        }
        PeopleChange::PutDelegation(delegation) => {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO delegations
                         (tenant, id, from_principal, to_principal, starts_at, ends_at, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    delegation.tenant.as_str(),
                    delegation.id,
                    delegation.from.as_str(),
                    delegation.to.as_str(),
                    delegation.starts_at.0,
                    delegation.ends_at.0,
                    delegation.created_at.0,
                ])?;
        }
        PeopleChange::DropDelegation { tenant, id } => {
            connection
                .prepare_cached("DELETE FROM delegations WHERE tenant = ?1 AND id = ?2")?
                .execute([tenant.as_str(), id])?;
        }
    }
    Ok(())
}

pub(crate) fn has_any(connection: &Connection) -> Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM groups) OR EXISTS (SELECT 1 FROM delegations)",
        (),
        |row| row.get(0),
    )
}

fn group(row: &Row<'_>) -> Result<GroupRecord> {
    let members = serde_json::from_str(row.get_ref(2)?.as_str()?)
        .map_err(|error| fault::malformed(2, error))?;
    Ok(GroupRecord {
        tenant: TenantId::new(row.get_ref(0)?.as_str()?),
        name: row.get(1)?,
        members,
        changed_at: Timestamp(row.get(3)?),
    })
}

fn delegation(row: &Row<'_>) -> Result<DelegationRecord> {
    Ok(DelegationRecord {
        tenant: TenantId::new(row.get_ref(0)?.as_str()?),
        id: row.get(1)?,
        from: Principal::new(row.get_ref(2)?.as_str()?),
        to: Principal::new(row.get_ref(3)?.as_str()?),
        starts_at: Timestamp(row.get(4)?),
        ends_at: Timestamp(row.get(5)?),
        created_at: Timestamp(row.get(6)?),
    })
}

#[async_trait]
impl ReadPeople for SqliteStore {
    async fn groups(&self, tenant: &TenantId) -> Result<Vec<GroupRecord>, Fault> {
        if !self.has_people.load(Ordering::Acquire) {
            return Ok(Vec::new());
        }
        let tenant = tenant.clone();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT tenant, name, members, changed_at FROM groups
                         WHERE tenant = ?1 ORDER BY name",
                    )?
                    .query_map([tenant.as_str()], group)?
                    .collect()
            })
            .await
    }

    async fn delegations(
        &self,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Result<Vec<DelegationRecord>, Fault> {
        if !self.has_people.load(Ordering::Acquire) {
            return Ok(Vec::new());
        }
        let tenant = tenant.clone();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT tenant, id, from_principal, to_principal, starts_at, ends_at,
                             created_at
                         FROM delegations WHERE tenant = ?1 AND ends_at > ?2 ORDER BY id",
                    )?
                    .query_map(params![tenant.as_str(), now.0], delegation)?
                    .collect()
            })
            .await
    }
}
