//! The key a connection is used with. The host counts connections by key; it learns the key here, as soon
//! as a request is authenticated and before its body is read.

use crate::problem::Problem;
use axum::http::request::Parts;
use std::sync::Arc;
use tandem_access::Identity;

/// Counts the connections of each key.
pub trait ConnectionsByKey: Send + Sync {
    /// Counts this connection for the key. If the key has too many connections that are in use, the
    /// maximum is returned and the request is refused.
    fn use_key(&self, key_id: &Arc<str>) -> Result<(), usize>;
}

/// Put into a request's extensions by the host.
#[derive(Clone)]
pub struct ConnectionKey(pub Arc<dyn ConnectionsByKey>);

/// Refuses a request of a key that has too many connections.
pub(crate) fn check_connection(parts: &Parts, identity: &Identity) -> Result<(), Problem> {
    let Some(ConnectionKey(connection)) = parts.extensions.get() else {
        return Ok(());
    };
    let counted = connection.use_key(&identity.key_id);
    counted.map_err(Problem::too_many_connections)
}
