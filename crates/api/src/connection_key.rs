//! The key a connection is used with. The host shares connections by tenant and key; it learns both here, as
//! soon as a request is authenticated and before its body is read.

use crate::problem::Problem;
use axum::http::request::Parts;
use std::sync::Arc;
use tandem_access::Identity;
use tandem_app::ShareRefused;
use tandem_record::TenantId;

/// Counts the connections of each tenant and key.
pub trait ConnectionsByKey: Send + Sync {
    /// Counts this connection for the key while its newest request is in progress, or refuses the request
    /// because the share of the key or of its tenant is used up.
    fn use_key(&self, tenant: &TenantId, key_id: &Arc<str>) -> Result<(), ShareRefused>;
}

/// Put into a request's extensions by the host.
#[derive(Clone)]
pub struct ConnectionKey(pub Arc<dyn ConnectionsByKey>);

/// Refuses a request of a caller that has too many connections.
pub(crate) fn check_connection(parts: &Parts, identity: &Identity) -> Result<(), Problem> {
    count_connection(parts, &identity.tenant, &identity.key_id)
}

/// The same for whoever has no key, under a name that stands for one.
pub(crate) fn count_connection(
    parts: &Parts,
    tenant: &TenantId,
    key: &Arc<str>,
) -> Result<(), Problem> {
    let Some(ConnectionKey(connection)) = parts.extensions.get() else {
        return Ok(());
    };
    let counted = connection.use_key(tenant, key);
    counted.map_err(Problem::too_many_connections)
}
