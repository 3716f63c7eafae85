//! API keys, by the hash of their secret.

use crate::SqliteStore;
use crate::fault;
use crate::processes::raise_epoch;
use crate::writer::JobError;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{Principal, TenantId, Timestamp};
use tandem_store::{CachedData, ChooseKeys, Fault, KeyRecord, Keys};

const SELECT: &str = "SELECT key_id, hash, name, tenant, workspace, principal, scopes, roles,
    created_at, expires_at, revoked_at, made_by, rotates, agent FROM keys";

fn from_row(row: &Row<'_>) -> Result<KeyRecord> {
    let strings = |column: usize| -> Result<Vec<String>> {
        serde_json::from_str(row.get_ref(column)?.as_str()?)
            .map_err(|error| fault::malformed(column, error))
    };
    let time = |column: usize| -> Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp))
    };
    Ok(KeyRecord {
        key_id: row.get(0)?,
        hash: row.get(1)?,
        name: row.get(2)?,
        tenant: TenantId::new(row.get_ref(3)?.as_str()?),
        workspace: row.get_ref(4)?.as_str_or_null()?.map(Into::into),
        principal: Principal::new(row.get_ref(5)?.as_str()?),
        scopes: strings(6)?,
        roles: strings(7)?,
        created_at: Timestamp(row.get(8)?),
        expires_at: time(9)?,
        revoked_at: time(10)?,
        made_by: row.get(11)?,
        rotates: row.get(12)?,
        agent: row.get_ref(13)?.as_str_or_null()?.map(Into::into),
    })
}

/// Refuses a key with the secret of another one, and one whose maker is revoked.
pub(crate) fn check(connection: &Connection, key: &KeyRecord) -> Result<(), JobError> {
    let duplicate: Option<String> = connection
        .prepare_cached("SELECT key_id FROM keys WHERE hash = ?1 AND key_id <> ?2")?
        .query_row([&key.hash, &key.key_id], |row| row.get(0))
        .optional()?;
    if let Some(duplicate) = duplicate {
        return Err(key.duplicates(&duplicate).into());
    }
    let maker_is_revoked: Option<bool> = connection
        .prepare_cached("SELECT revoked_at IS NOT NULL FROM keys WHERE key_id = ?1")?
        .query_row([&key.made_by], |row| row.get(0))
        .optional()?;
    match maker_is_revoked {
        Some(true) => Err(key.maker_is_revoked().into()),
        Some(false) | None => Ok(()),
    }
}

pub(crate) fn put(connection: &Connection, key: &KeyRecord) -> Result<()> {
    let strings =
        |strings: &[String]| serde_json::to_string(strings).expect("strings are plain JSON");
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO keys (key_id, hash, name, tenant, workspace, principal, scopes,
                 roles, created_at, expires_at, revoked_at, made_by, rotates, agent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            key.key_id,
            key.hash,
            key.name,
            key.tenant.as_str(),
            key.workspace.as_ref().map(AsRef::as_ref),
            key.principal.as_str(),
            strings(&key.scopes),
            strings(&key.roles),
            key.created_at.0,
            key.expires_at.map(|at| at.0),
            key.revoked_at.map(|at| at.0),
            key.made_by,
            key.rotates,
            key.agent.as_ref().map(AsRef::as_ref),
        ])?;
    Ok(())
}

fn list(connection: &Connection, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>> {
    connection
        .prepare_cached(&format!(
            "{SELECT} WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created_at, key_id"
        ))?
        .query_map([tenant.map(AsRef::as_ref)], from_row)?
        .collect()
}

#[async_trait]
impl Keys for SqliteStore {
    async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>, Fault> {
        let hash = hash.to_owned();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(&format!("{SELECT} WHERE hash = ?1"))?
                    .query_row([&hash], from_row)
                    .optional()
            })
            .await
    }

    async fn list_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault> {
        let tenant = tenant.cloned();
        let read = move |connection: &Connection| list(connection, tenant.as_ref());
        self.readers.read(read).await
    }

    async fn revoke_keys(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        choose: ChooseKeys,
    ) -> Result<Vec<String>, Fault> {
        let tenant = tenant.clone();
        self.writer
            .write_internal(move |tx| {
                let connection = tx.connection;
                let (ids, audits): (Vec<_>, Vec<_>) = choose(&list(connection, Some(&tenant))?)
                    .into_iter()
                    .unzip();
                let mut recorded = Vec::new();
                for (id, audit) in ids.iter().zip(audits) {
                    let revoked = connection
                        .prepare_cached(
                            "UPDATE keys SET revoked_at = ?3
                             WHERE tenant = ?1 AND key_id = ?2 AND revoked_at IS NULL",
                        )?
                        .execute(params![tenant.as_str(), id, at.0])?;
                    recorded.extend((revoked > 0).then_some(audit));
                }
                if !recorded.is_empty() {
                    raise_epoch(connection, CachedData::Keys)?;
                    tx.chain.append(&mut tx.statements, &recorded)?;
                }
                Ok(ids)
            })
            .await
    }
}
