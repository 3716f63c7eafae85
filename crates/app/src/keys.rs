//! API keys of the caller's tenant.
//!
//! A secret is in exactly one outcome and is never stored. Nobody hands out more than they hold, nor takes
//! away what is above them: `access` says what that means.

use crate::admission::items;
use crate::app::App;
use crate::detached_request::run_to_completion;
use crate::error::{AppError, ForbiddenReason, ResourceKind};
use crate::idempotency::{Committed, Completion, Idempotency};
use crate::rfc3339::parse_time;
use tandem_access::{
    Identity, KeyDraft, KeyError, KeyRecord, MadeKeys, NewKey, Revocation, RevokedKeys, Scope,
    Secret, expiry_of_new_key, may_create_key, may_revoke_key, principal_of_new_key,
};
use tandem_record::{AgentId, Principal, WorkspaceId};

const MAX_NAME_CHARS: usize = 128;

/// A key that a caller asks for.
pub struct CreateKey {
    pub name: String,
    pub scopes: Vec<String>,
    pub roles: Vec<String>,
    /// Who acts through it: a name that groups and approver lists know.
    pub principal: Option<String>,
    /// Must be the caller's own tenant, which is also the default.
    pub tenant: Option<String>,
    pub workspace: Option<String>,
    /// The only agent it is good for.
    pub agent: Option<String>,
    /// RFC 3339, not after the expiry of the caller's key. When left out: that expiry, or never.
    pub expires_at: Option<String>,
    pub test: bool,
}

/// A new key with its secret. What is stored for a repeated request must not contain the secret.
pub struct IssuedKey {
    pub record: KeyRecord,
    pub secret: Secret,
}

impl CreateKey {
    /// What is stored as it is, with its places.
    fn names(&self) -> impl Iterator<Item = (String, &str)> {
        let named = [
            ("/name", Some(&self.name)),
            ("/principal", self.principal.as_ref()),
            ("/workspace", self.workspace.as_ref()),
            ("/agent", self.agent.as_ref()),
        ];
        let given = named
            .into_iter()
            .filter_map(|(place, name)| Some((place.to_owned(), name?.as_str())));
        given.chain(items("/roles", &self.roles))
    }

    fn into_key(self, caller: &Identity) -> Result<NewKey, AppError> {
        let fits = |name: &String| (1..=MAX_NAME_CHARS).contains(&name.chars().count());
        if !fits(&self.name) {
            return Err(AppError::invalid("/name", "must have 1 to 128 characters"));
        }
        let home = caller.key_tenant();
        if self.tenant.as_ref().is_some_and(|t| t != home.as_str()) {
            return Err(ForbiddenReason::NotMember.into());
        }
        if !self.principal.as_ref().is_none_or(fits) {
            let message = "must have 1 to 128 characters";
            return Err(AppError::invalid("/principal", message));
        }
        let agent = self.agent.map(AgentId::from).or(caller.agent.clone());
        let mut scopes = Vec::with_capacity(self.scopes.len());
        for (i, name) in self.scopes.iter().enumerate() {
            let scope = Scope::parse(name)
                .ok_or_else(|| AppError::invalid(format!("/scopes/{i}"), "is not a scope"))?;
            if agent.is_some() && !scope.concerns_conversations() {
                let message = "does nothing for a key that is good for one agent only";
                return Err(AppError::invalid(format!("/scopes/{i}"), message));
            }
            scopes.push(scope);
        }
        let workspace = self.workspace.map(WorkspaceId::from);
        let requested = self.expires_at.as_deref();
        let requested = requested.map(|text| parse_time("/expiresAt", text));
        Ok(NewKey {
            name: self.name,
            tenant: home,
            workspace: workspace.or_else(|| caller.workspace.clone()),
            agent,
            principal: principal_of_new_key(caller, self.principal.map(Principal::from)),
            scopes: scopes.into_iter().collect(),
            roles: self.roles,
            expires_at: expiry_of_new_key(caller, requested.transpose()?)?,
            test: self.test,
        })
    }
}

impl App {
    pub async fn create_key(
        &self,
        caller: &Identity,
        requested: CreateKey,
        idempotency: Idempotency<IssuedKey>,
    ) -> Result<Completion<IssuedKey>, AppError> {
        caller.require_scope(Scope::Keys)?;
        self.check_no_secrets(requested.names())?;
        let (keyring, by, now) = (self.inner.keyring.clone(), caller.actor(), self.now());
        let new = requested.into_key(caller)?;
        let protected = keyring.protected(&new.tenant, now).await?;
        may_create_key(caller, &new, protected.as_ref())?;
        if let Some(principal) = &new.principal {
            keyring.check_new_principal(&new.tenant, principal).await?;
        }
        let drafted = KeyDraft::with_new_secret(new, &by, now)?;
        self.commit_key(drafted, idempotency).await
    }

    /// Makes a second key for the same principal; the old one works until it is revoked or expires.
    pub async fn rotate_key(
        &self,
        caller: &Identity,
        key_id: &str,
        expires_at: Option<&str>,
        idempotency: Idempotency<IssuedKey>,
    ) -> Result<Completion<IssuedKey>, AppError> {
        caller.require_scope(Scope::Keys)?;
        let expires_at = expires_at.map(|text| parse_time("/expiresAt", text));
        let expires_at = expires_at.transpose()?;
        let record = self.find_key(caller, key_id).await?;
        let (keyring, by, now) = (self.inner.keyring.clone(), caller.actor(), self.now());
        let protected = keyring.protected(&record.tenant, now).await?;
        let expires_at = expiry_of_new_key(caller, expires_at)?;
        // The answer holds a working secret of that key's powers, as if the caller had made it.
        let second = NewKey::like(&record, expires_at);
        may_create_key(caller, &second, protected.as_ref())?;
        let (tenant, id) = (&record.tenant, &record.key_id);
        let drafting = keyring.draft_rotation(tenant, id, expires_at, &by, now);
        self.commit_key(drafting.await?, idempotency).await
    }

    /// Stores a key and the response to its request in one commit.
    async fn commit_key(
        &self,
        (draft, secret): (KeyDraft, Secret),
        idempotency: Idempotency<IssuedKey>,
    ) -> Result<Completion<IssuedKey>, AppError> {
        let issued = IssuedKey {
            record: draft.record().clone(),
            secret,
        };
        let keyring = self.inner.keyring.clone();
        let create = |response| async move {
            match keyring.create(draft, response).await {
                Ok(_) => Ok(Committed::Done),
                Err(KeyError::IdempotencyKeyUsed) => Ok(Committed::KeyUsed),
                Err(error) => Err(error.into()),
            }
        };
        self.execute_with_response(idempotency, issued, create)
            .await
    }

    /// Revokes a key and what it made. Sessions opened with these keys end with them.
    pub async fn revoke_key(
        &self,
        caller: &Identity,
        key_id: &str,
        made: MadeKeys,
        idempotency: Idempotency<RevokedKeys>,
    ) -> Result<Completion<RevokedKeys>, AppError> {
        caller.require_scope(Scope::Keys)?;
        let record = self.find_key(caller, key_id).await?;
        let (keyring, by, now) = (self.inner.keyring.clone(), caller.actor(), self.now());
        let protected = keyring.protected(&record.tenant, now).await?;
        may_revoke_key(caller, &record, protected.as_ref())?;
        let id = record.key_id.clone();
        // Nothing the caller may not revoke: what a key makes is never above it.
        let revocation = Revocation::new(record, made, caller, protected.as_ref());
        let (sessions, codes) = (self.inner.sessions.clone(), self.inner.codes.clone());
        let revoked = run_to_completion(async move {
            let revoked = keyring.revoke_with_made(revocation, &by, now).await;
            let also = revoked.iter().flat_map(|revoked| &revoked.also);
            for id in also.chain([&id]) {
                codes.remove_key(id);
                sessions.close_for_key(id);
            }
            revoked
        });
        let revoked = revoked.await?;
        self.complete(idempotency, revoked).await
    }

    /// Keys the caller may see, oldest first: those of its tenant and, when it is bound to one, of its
    /// workspace.
    pub async fn list_keys(&self, caller: &Identity) -> Result<Vec<KeyRecord>, AppError> {
        caller.require_scope(Scope::Keys)?;
        let keyring = &self.inner.keyring;
        let mut keys = keyring.list(Some(&caller.key_tenant())).await?;
        if caller.test_key {
            keys.retain(|key| Identity::of_key(key).test_key);
        }
        if caller.workspace.is_some() {
            keys.retain(|key| key.workspace == caller.workspace);
        }
        Ok(keys)
    }

    /// One of the keys the caller may see.
    pub async fn find_key(&self, caller: &Identity, key_id: &str) -> Result<KeyRecord, AppError> {
        let keys = self.list_keys(caller).await?;
        let found = keys.into_iter().find(|key| key.key_id == key_id);
        found.ok_or(AppError::NotFound(ResourceKind::Key))
    }
}
