//! Statements that nearly every job of a transaction runs. Looking one up among all that are
//! prepared, and putting it back, costs a good part of running it; here it is done once for a
//! transaction.

use rusqlite::{CachedStatement, Connection, Result};

pub(crate) struct StatementCache<'c> {
    connection: &'c Connection,
    /// A handful: looking through them is quicker than hashing their text.
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

    /// Two copies of one constant would merely be prepared twice.
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
