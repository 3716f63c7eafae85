//! Host-wide settings.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result};
use tandem_store::{Fault, SettingsStore};

fn get(connection: &Connection, name: &str) -> Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM settings WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

fn set(connection: &Connection, name: &str, value: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO settings (name, value) VALUES (?1, ?2)")?
        .execute([name, value])
        .map(drop)
}

#[async_trait]
impl SettingsStore for SqliteStore {
    async fn get(&self, name: &str) -> Result<Option<String>, Fault> {
        let name = name.to_owned();
        self.readers
            .read(move |connection| get(connection, &name))
            .await
    }

    async fn set(&self, name: &str, value: &str) -> Result<(), Fault> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.writer
            .write_internal(move |tx| Ok(set(tx.connection, &name, &value)?))
            .await
    }

    async fn set_if_absent(&self, name: &str, value: &str) -> Result<String, Fault> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.writer
            .write_internal(move |tx| {
                if let Some(stored) = get(tx.connection, &name)? {
                    return Ok(stored);
                }
                set(tx.connection, &name, &value)?;
                Ok(value.clone())
            })
            .await
    }
}
