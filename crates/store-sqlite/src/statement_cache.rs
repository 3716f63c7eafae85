//! Statements that nearly every job of a transaction runs. A lookup among all prepared statements,
//! and its return, costs a large part of running one; here it is done once per transaction.

use rusqlite::{CachedStatement, Connection, Result};

pub(crate) struct StatementCache<'c> {
    connection: &'c Connection,
    /// Only a few: a linear search is faster than hashing their text.
    prepared: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> StatementCache<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            prepared: Vec::new(),
        }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// Two copies of one constant are only prepared twice.
    pub(crate) fn get(&mut self, sql: &'static str) -> Result<&mut CachedStatement<'c>> {
        let found = self.prepared.iter();
        let at = match found
            .map(|(prepared, _)| *prepared)
            .position(|t| std::ptr::eq(t, sql))
        {
            Some(at) => at,
            None => {
                self.prepared
                    .push((sql, self.connection.prepare_cached(sql)?));
                self.prepared.len() - 1
            }
        };
        Ok(&mut self.prepared[at].1)
    }
}
