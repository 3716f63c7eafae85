//! Which keys a key may create, rotate and revoke.
//!
//! A key is *above* another when it holds a scope the other lacks, when it is bound to no workspace or
//! another one and the other is bound, in the same way for agents, or when it is a live key and the other a test key. Nobody makes
//! or touches what is above them. What is made besides must not outlive its maker, nor act with a role
//! or as a principal its maker has no say over. The answer to a rotation holds a secret with the powers of
//! the rotated key, so whoever rotates a key must be one who may make it. Whoever holds [`Scope::Groups`] for the whole tenant
//! decides who may decide, and so has a say over all of them but the reserved role and the principal
//! of the protected key. Without it a maker only makes keys for itself: two principals are two people
//! in a quorum.

use crate::{CONFORMANCE_ROLE, Identity, KeyRecord, NewKey, Scope, ScopeSet};
use tandem_record::{AgentId, Principal, Timestamp, WorkspaceId};

/// Why a caller may not create, rotate or revoke a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyChangeDenied {
    #[error("the scope {0} is not the caller's to give or take")]
    Scope(Scope),
    #[error("the key is bound to another workspace than the caller, or to none")]
    Workspace,
    #[error("the key is bound to another agent than the caller, or to none")]
    Agent,
    #[error("a test key can only make and change test keys")]
    LiveKey,
    #[error("the role {0:?} is not the caller's to give")]
    Role(String),
    #[error("the caller may not make keys for other principals")]
    Principal,
    #[error("only the principal of the tenant's first key makes keys for itself")]
    ProtectedPrincipal,
    /// With the time the caller's own key ends.
    #[error("the key would outlive the caller's own")]
    Outlives(Timestamp),
    #[error("the tenant's first key can only be revoked by another key of the same principal")]
    Protected,
}

/// The permissions of an existing key or of a key to be created.
struct KeyPermissions<'a> {
    scopes: ScopeSet,
    workspace: Option<&'a WorkspaceId>,
    agent: Option<&'a AgentId>,
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
    if caller.agent.is_some() && caller.agent.as_ref() != key.agent {
        return Err(KeyChangeDenied::Agent);
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
    let may_give = |role: &String| {
        caller.has_role(role) || (role != CONFORMANCE_ROLE && manages_groups(caller))
    };
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

/// Who acts through a key made by the caller: as requested. When nothing is requested, the caller, unless
/// it decides who may decide; then the key gets a principal of its own.
pub fn principal_of_new_key(caller: &Identity, requested: Option<Principal>) -> Option<Principal> {
    match requested {
        None if !manages_groups(caller) => Some(caller.principal.clone()),
        requested => requested,
    }
}

/// Whether the caller may make a key through which `principal` acts; `None` is a new one.
fn check_principal(
    caller: &Identity,
    principal: Option<&Principal>,
    protected: Option<&KeyRecord>,
) -> Result<(), KeyChangeDenied> {
    if principal == Some(&caller.principal) {
        return Ok(());
    }
    // Its keys may revoke the protected one.
    if principal.is_some() && principal == protected.map(|key| &key.principal) {
        return Err(KeyChangeDenied::ProtectedPrincipal);
    }
    match manages_groups(caller) {
        true => Ok(()),
        false => Err(KeyChangeDenied::Principal),
    }
}

/// Whether the caller may make this key, given the one that is [`protected`].
pub fn may_create_key(
    caller: &Identity,
    new: &NewKey,
    protected: Option<&KeyRecord>,
) -> Result<(), KeyChangeDenied> {
    let permissions = KeyPermissions {
        scopes: new.scopes,
        workspace: new.workspace.as_ref(),
        agent: new.agent.as_ref(),
        test: new.test,
    };
    check_not_above(caller, &permissions)?;
    check_roles(caller, &new.roles)?;
    check_principal(caller, new.principal.as_ref(), protected)?;
    expiry_of_new_key(caller, new.expires_at).map(drop)
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
        agent: key.agent.as_ref(),
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
            && key.agent.is_none()
            && !Identity::of_key(key).test_key
            && ScopeSet::from_stored(&key.scopes).contains(Scope::Keys)
    };
    keys.into_iter().filter(administers).min_by_key(|key| {
        let scopes = std::cmp::Reverse(key.scopes.len());
        let id = key.key_id.clone();
        (!configured(&key.key_id), key.created_at, scopes, id)
    })
}
