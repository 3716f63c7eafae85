mod bearer;
mod keyring;
mod keyring_cache;
mod policy;
mod rate;
mod roster;
mod scope;
mod sign_in;
mod store;
mod visitor;

use crate::{Identity, Keyring, NewKey, Scope};
use std::sync::Arc;
use store::FakeKeys;
use tandem_record::{TenantId, Timestamp};

const NOW: Timestamp = Timestamp(1_767_225_600_000);

fn tenant() -> TenantId {
    TenantId::new("default")
}

fn new_key(name: &str) -> NewKey {
    NewKey::new(name, tenant(), [Scope::RunsRead, Scope::RunsCreate])
}

fn keyring() -> (Keyring, Arc<FakeKeys>) {
    let store = Arc::new(FakeKeys::default());
    (Keyring::new(store.clone()), store)
}

fn identity(key_id: &str) -> Identity {
    Identity {
        key_id: Arc::from(key_id),
        principal: "somebody".into(),
        tenant: tenant(),
        workspace: None,
        agent: None,
        scopes: [Scope::RunsRead].into_iter().collect(),
        roles: Arc::from([]),
        test_key: false,
        expires_at: None,
    }
}
