//! Statements that nearly every job of a transaction runs. Looking one up among all that are
//! prepared, and putting it back, costs a good part of running it; here it is done once for a
//! transaction.

use rusqlite::{CachedStatement, Connection, Result};

pub(crate) struct Often<'c> {
    connection: &'c Connection,
    /// A handful: looking through them is quicker than hashing their text.
    taken: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> Often<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            taken: Vec::new(),
        }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// Two copies of one constant would merely be prepared twice.
    pub(crate) fn get(&mut self, sql: &'static str) -> Result<&mut CachedStatement<'c>> {
        let found = self.taken.iter();
        let at = match found
            .map(|(taken, _)| *taken)
            .position(|t| std::ptr::eq(t, sql))
        {
            Some(at) => at,
            None => {
                self.taken.push((sql, self.connection.prepare_cached(sql)?));
                self.taken.len() - 1
            }
        };
        Ok(&mut self.taken[at].1)
    }
}
