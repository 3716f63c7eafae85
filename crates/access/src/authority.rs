//! Which keys a key may make, rotate and revoke.
//!
//! A key is *above* another when it holds a scope the other lacks, when it is bound to no workspace or
//! another one and the other is bound, or when it is a live key and the other a test key. Nobody makes
//! or touches what is above them. What is made besides must not outlive its maker, nor act with a role
//! or as a principal its maker has no say over; whoever holds [`Scope::Groups`] for the whole tenant
//! decides who may decide, and so has a say over all of them but the reserved role.

use crate::{Identity, KeyRecord, NewKey, Scope, ScopeSet};
use tandem_record::{Principal, Timestamp, WorkspaceId};

/// Lifts the bounds of conformance workflows. Handed on by holders only, and nobody holds it unless the
/// operator says so.
pub const RESERVED_ROLE: &str = "conformance";

/// Why a key may not be made, rotated or revoked by a caller.
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
    /// With the time the caller's own key ends.
    #[error("the key would outlive the caller's own")]
    Outlives(Timestamp),
    #[error("the tenant's first key can only be revoked by another key of the same principal")]
    Protected,
}

/// What a key may do, whether it exists or is yet to be made.
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

/// Whether the caller decides who may decide, in every workspace.
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

/// The end of a key made by the caller: as requested, and with the caller's own key when nothing is requested.
pub fn expiry_of_new_key(
    caller: &Identity,
    requested: Option<Timestamp>,
) -> Result<Option<Timestamp>, KeyChangeDenied> {
    match (caller.expires_at, requested) {
        (Some(end), Some(requested)) if requested > end => Err(KeyChangeDenied::Outlives(end)),
        (end, requested) => Ok(requested.or(end)),
    }
}

/// Whether the caller may make this key.
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

/// Whether the caller may have a second key like this one, which acts as the same principal.
pub fn may_rotate_key(caller: &Identity, key: &KeyRecord) -> Result<(), KeyChangeDenied> {
    check_reach(caller, key)?;
    check_roles(caller, &key.roles)?;
    // Who acts through a key matters where it decides.
    let decides = ScopeSet::from_stored(&key.scopes).contains(Scope::ApprovalsRespond);
    if decides && key.principal != caller.principal && !manages_groups(caller) {
        return Err(KeyChangeDenied::Principal);
    }
    Ok(())
}

/// Whether the caller may revoke this key of its tenant, given the one that is [`protected`].
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

/// The key of a tenant that nobody else may take away, so that somebody can always administer its
/// keys: the one the operator configured, else the oldest that administers keys in every workspace, of
/// several made in one millisecond the one with the most scopes.
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
