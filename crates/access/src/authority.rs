//! Which keys a key may create, rotate and revoke.
//!
//! A key is *above* another key in three cases: it holds a scope the other lacks; the other is
//! bound to a workspace and this one is bound to no workspace or to another one; it is a live key
//! and the other is a test key. A caller cannot create or change a key above its own. A new key
//! also must not expire later than the key of its creator, and must not have a role or principal
//! that the creator may not assign. A holder of [`Scope::Groups`] for the whole tenant may assign
//! every role and principal except the reserved role.

use crate::{Identity, KeyRecord, NewKey, Scope, ScopeSet};
use tandem_record::{Principal, Timestamp, WorkspaceId};

/// Permits conformance node types in workflows of any id. Only a holder can assign it, and the
/// first holder is configured by the operator.
pub const RESERVED_ROLE: &str = "conformance";

/// Why a caller may not create, rotate or revoke a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyChangeDenied {
    #[error("the scope {0} is not the caller's to give or take")]
    Scope(Scope),
    #[error("the key is bound to another workspace than the caller, or to none")]
    Workspace,
    #[error("a test key can only make and change test keys")]
    LiveKey,
    #[error("the role {0:?} is not the caller's to give")]
    Role(String),
    #[error("the caller may not say that somebody else acts through a key")]
    Principal,
    /// With the expiry of the caller's own key.
    #[error("the key would outlive the caller's own")]
    Outlives(Timestamp),
    #[error("the tenant's first key can only be revoked by another key of the same principal")]
    Protected,
}

/// The permissions of an existing key or of a key to be created.
struct KeyPermissions<'a> {
    scopes: ScopeSet,
    workspace: Option<&'a WorkspaceId>,
    test: bool,
}

fn check_not_above(caller: &Identity, key: &KeyPermissions<'_>) -> Result<(), KeyChangeDenied> {
    let missing = key.scopes.iter().find(|s| !caller.scopes.contains(*s));
    if let Some(scope) = missing {
        return Err(KeyChangeDenied::Scope(scope));
    }
    if caller.workspace.is_some() && caller.workspace.as_ref() != key.workspace {
        return Err(KeyChangeDenied::Workspace);
    }
    if caller.test_key && !key.test {
        return Err(KeyChangeDenied::LiveKey);
    }
    Ok(())
}

/// Whether the caller manages approver groups in every workspace.
fn manages_groups(caller: &Identity) -> bool {
    caller.scopes.contains(Scope::Groups) && caller.workspace.is_none()
}

fn check_roles(caller: &Identity, roles: &[String]) -> Result<(), KeyChangeDenied> {
    let may_give =
        |role: &String| caller.has_role(role) || (role != RESERVED_ROLE && manages_groups(caller));
    match roles.iter().find(|role| !may_give(role)) {
        Some(role) => Err(KeyChangeDenied::Role(role.clone())),
        None => Ok(()),
    }
}

/// The expiry of a key created by the caller: as requested, or that of the caller's own key when
/// nothing is requested.
pub fn expiry_of_new_key(
    caller: &Identity,
    requested: Option<Timestamp>,
) -> Result<Option<Timestamp>, KeyChangeDenied> {
    match (caller.expires_at, requested) {
        (Some(end), Some(requested)) if requested > end => Err(KeyChangeDenied::Outlives(end)),
        (end, requested) => Ok(requested.or(end)),
    }
}

/// Whether the caller may create this key.
pub fn may_create_key(caller: &Identity, new: &NewKey) -> Result<(), KeyChangeDenied> {
    let permissions = KeyPermissions {
        scopes: new.scopes,
        workspace: new.workspace.as_ref(),
        test: new.test,
    };
    check_not_above(caller, &permissions)?;
    check_roles(caller, &new.roles)?;
    let own = |name: &Principal| *name == caller.principal;
    if !new.principal.as_ref().is_none_or(own) && !manages_groups(caller) {
        return Err(KeyChangeDenied::Principal);
    }
    expiry_of_new_key(caller, new.expires_at).map(drop)
}

/// Whether the caller may get a second key for the principal of this one.
pub fn may_rotate_key(caller: &Identity, key: &KeyRecord) -> Result<(), KeyChangeDenied> {
    check_reach(caller, key)?;
    check_roles(caller, &key.roles)?;
    // The principal matters only for a key that can decide.
    let decides = ScopeSet::from_stored(&key.scopes).contains(Scope::ApprovalsRespond);
    if decides && key.principal != caller.principal && !manages_groups(caller) {
        return Err(KeyChangeDenied::Principal);
    }
    Ok(())
}

/// Whether the caller may revoke this key of its tenant. `protected` is the key that [`protected`]
/// returns.
pub fn may_revoke_key(
    caller: &Identity,
    key: &KeyRecord,
    protected: Option<&KeyRecord>,
) -> Result<(), KeyChangeDenied> {
    let itself = *caller.key_id == *key.key_id;
    if protected.is_some_and(|protected| protected.key_id == key.key_id) {
        let outlives = match (caller.expires_at, key.expires_at) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(theirs)) => own >= theirs,
        };
        let follows = caller.principal == key.principal && outlives;
        if itself || !follows || check_reach(caller, key).is_err() {
            return Err(KeyChangeDenied::Protected);
        }
        return Ok(());
    }
    if itself {
        return Ok(());
    }
    check_reach(caller, key)
}

fn check_reach(caller: &Identity, key: &KeyRecord) -> Result<(), KeyChangeDenied> {
    let permissions = KeyPermissions {
        scopes: ScopeSet::from_stored(&key.scopes),
        workspace: key.workspace.as_ref(),
        test: Identity::of_key(key).test_key,
    };
    check_not_above(caller, &permissions)
}

/// The key of a tenant that no other principal may revoke, so that the tenant's keys can always be
/// administered: the key the operator configured, else the oldest key that administers keys in
/// every workspace. Of several created in one millisecond it is the one with the most scopes.
pub(crate) fn protected(
    keys: Vec<KeyRecord>,
    configured: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Option<KeyRecord> {
    let administers = |key: &KeyRecord| {
        key.revoked_at.is_none()
            && key.expires_at.is_none_or(|at| at > now)
            && key.workspace.is_none()
            && !Identity::of_key(key).test_key
            && ScopeSet::from_stored(&key.scopes).contains(Scope::Keys)
    };
    keys.into_iter().filter(administers).min_by_key(|key| {
        let scopes = std::cmp::Reverse(key.scopes.len());
        let id = key.key_id.clone();
        (!configured(&key.key_id), key.created_at, scopes, id)
    })
}
