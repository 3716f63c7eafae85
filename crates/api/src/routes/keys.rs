//! API keys of the caller's tenant.
//!
//! A secret is in exactly one answer and is never stored. A request that is repeated under its
//! idempotency key makes no second key; it gets the key's description without the secret. Nobody hands out more than they hold, nor takes away what is above them: `access` says
//! what that means.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, Keys};
use crate::detached_request::run_to_completion;
use crate::known_secrets::items;
use crate::mutation::{IdempotencyCheck, Mutation, MutationOutcome, Ticket};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_access::{
    Identity, KeyDraft, KeyError, KeyRecord, NewKey, Scope, Secret, expiry_of_new_key,
    may_create_key, may_revoke_key, may_rotate_key, principal_of_new_key,
};
use tandem_record::{Principal, Timestamp, WorkspaceId};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

const MAX_NAME_CHARS: usize = 128;
const SECRET_NOT_REPEATED: &str = "This key was made by an earlier request with the same Idempotency-Key. Its \
    secret was in that answer and is not stored. If it is lost, revoke the key and make another one under a \
    new Idempotency-Key.";

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewKey)]
pub(super) struct KeyRequest {
    name: String,
    scopes: Vec<String>,
    #[serde(default)]
    roles: Vec<String>,
    /// Who acts through it: a name that groups and approver lists know. When left out, the caller; with
    /// a caller that has tandem:groups and is bound to no workspace, a principal of its own.
    #[serde(default)]
    principal: Option<String>,
    /// Must be the caller's own tenant, which is also the default.
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    workspace: Option<String>,
    /// RFC 3339, not after the expiry of the caller's key. When left out: that expiry, or never.
    #[serde(default)]
    expires_at: Option<String>,
    #[serde(default)]
    test: bool,
}

#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RotateKey)]
pub(super) struct Rotation {
    /// RFC 3339, not after the expiry of the caller's key. When left out: that expiry, or never.
    #[serde(default)]
    expires_at: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/keys", tag = "keys", operation_id = "createKey",
    request_body = KeyRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    description = "Makes a key. The secret is in this answer and nowhere else: a request repeated under \
                   its Idempotency-Key gets the same keyId without the secret.",
    responses((status = 201, description = "The key and its secret", body = Value))
)]
pub(super) async fn create(
    State(api): State<SharedState>,
    caller: Caller<Keys>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: KeyRequest = request.json()?;
    api.check_no_secrets(requested.names())?;
    let (keyring, by, now) = (api.keyring.clone(), caller.actor(), api.now());
    let new = requested.into_key(&caller)?;
    let protected = keyring.protected(&new.tenant, now).await?;
    may_create_key(&caller, &new, protected.as_ref())?;
    let drafted = KeyDraft::with_new_secret(new, &by, now)?;
    commit_with_secret(&api, ticket, drafted).await
}

#[utoipa::path(
    get, path = "/v1/host/tandem/keys", tag = "keys", operation_id = "listKeys",
    responses((status = 200, description = "Keys of the tenant, oldest first, without secrets", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<Keys>,
) -> Result<Json<Value>, Problem> {
    let keys: Vec<Value> = visible_keys(&api, &caller)
        .await?
        .iter()
        .map(to_json)
        .collect();
    Ok(Json(json!({"keys": keys})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/keys/{keyId}", tag = "keys", operation_id = "readKey",
    params(("keyId" = String, Path)),
    responses((status = 200, description = "The key, without its secret", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<Keys>,
    PathParams(key): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(to_json(&find(&api, &caller, &key).await?)))
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/keys/{keyId}", tag = "keys", operation_id = "revokeKey",
    params(("keyId" = String, Path)),
    description = "Keys that hold a scope the caller lacks, or are of another workspace, are out of reach. The \
                   tenant's first key is revoked only by another key of the same principal.",
    responses((status = 204, description = "Revoked; sessions opened with it have ended"))
)]
pub(super) async fn revoke(
    State(api): State<SharedState>,
    caller: Caller<Keys>,
    PathParams(key): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let record = find(&api, &caller, &key).await?;
    let (keyring, by, now) = (api.keyring.clone(), caller.actor(), api.now());
    let protected = keyring.protected(&record.tenant, now).await?;
    may_revoke_key(&caller, &record, protected.as_ref())?;
    let id = record.key_id;
    let (sessions, codes) = (api.sessions.clone(), api.codes.clone());
    run_to_completion(async move {
        let revoked = keyring.revoke(&record.tenant, &id, &by, now).await;
        codes.remove_key(&id);
        sessions.close_for_key(&id);
        revoked
    })
    .await?;
    ticket.complete(&api, ApiResponse::no_content()).await
}

#[utoipa::path(
    post, path = "/v1/host/tandem/keys/{keyId}:rotate", tag = "keys", operation_id = "rotateKey",
    params(("keyId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = Option<Rotation>,
    description = "Makes a second key for the same principal; the old one works until it is \
                   revoked or expires. A request repeated under its Idempotency-Key gets the same \
                   keyId without the secret.",
    responses((status = 201, description = "The new key and its secret", body = Value))
)]
pub(super) async fn rotate(
    State(api): State<SharedState>,
    caller: Caller<Keys>,
    PathParams(key): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let Rotation { expires_at } = request.optional_json()?;
    let expires_at = expires_at.as_deref().map(parse_time).transpose()?;
    let record = find(&api, &caller, &key).await?;
    let (keyring, by, now) = (api.keyring.clone(), caller.actor(), api.now());
    let protected = keyring.protected(&record.tenant, now).await?;
    // The answer holds a working secret of that key's powers.
    may_rotate_key(&caller, &record, protected.as_ref())?;
    let expires_at = expiry_of_new_key(&caller, expires_at)?;
    let (tenant, id) = (&record.tenant, &record.key_id);
    let drafting = keyring.draft_rotation(tenant, id, expires_at, &by, now);
    commit_with_secret(&api, ticket, drafting.await?).await
}

impl KeyRequest {
    /// What is stored as it is, with its places.
    fn names(&self) -> impl Iterator<Item = (String, &str)> {
        let named = [
            ("/name", Some(&self.name)),
            ("/principal", self.principal.as_ref()),
            ("/workspace", self.workspace.as_ref()),
        ];
        let given = named
            .into_iter()
            .filter_map(|(place, name)| Some((place.to_owned(), name?.as_str())));
        given.chain(items("/roles", &self.roles))
    }

    fn into_key(self, caller: &Identity) -> Result<NewKey, Problem> {
        if !(1..=MAX_NAME_CHARS).contains(&self.name.chars().count()) {
            return Err(Problem::invalid("/name", "must have 1 to 128 characters"));
        }
        let home = caller.key_tenant();
        if self.tenant.as_ref().is_some_and(|t| t != home.as_str()) {
            return Err(Problem::tenant_membership_required());
        }
        let fits = |name: &String| (1..=MAX_NAME_CHARS).contains(&name.chars().count());
        if !self.principal.as_ref().is_none_or(fits) {
            let message = "must have 1 to 128 characters";
            return Err(Problem::invalid("/principal", message));
        }
        let mut scopes = Vec::with_capacity(self.scopes.len());
        for (i, name) in self.scopes.iter().enumerate() {
            let scope = Scope::parse(name)
                .ok_or_else(|| Problem::invalid(&format!("/scopes/{i}"), "is not a scope"))?;
            scopes.push(scope);
        }
        let workspace = self.workspace.map(WorkspaceId::from);
        let requested = self.expires_at.as_deref().map(parse_time).transpose()?;
        Ok(NewKey {
            name: self.name,
            tenant: home,
            workspace: workspace.or_else(|| caller.workspace.clone()),
            principal: principal_of_new_key(caller, self.principal.map(Principal::from)),
            scopes: scopes.into_iter().collect(),
            roles: self.roles,
            expires_at: expiry_of_new_key(caller, requested)?,
            test: self.test,
        })
    }
}

/// Keys the caller may see: those of its tenant and, when it is bound to one, of its workspace.
async fn visible_keys(api: &ApiState, caller: &Identity) -> Result<Vec<KeyRecord>, Problem> {
    let mut keys = api.keyring.list(Some(&caller.key_tenant())).await?;
    if caller.test_key {
        keys.retain(|key| Identity::of_key(key).test_key);
    }
    if caller.workspace.is_some() {
        keys.retain(|key| key.workspace == caller.workspace);
    }
    Ok(keys)
}

async fn find(api: &ApiState, caller: &Identity, key_id: &str) -> Result<KeyRecord, Problem> {
    let found = visible_keys(api, caller)
        .await?
        .into_iter()
        .find(|key| key.key_id == key_id);
    found.ok_or_else(|| Problem::not_found("key"))
}

fn parse_time(text: &str) -> Result<Timestamp, Problem> {
    let parsed = text.parse::<jiff::Timestamp>();
    let at = parsed.map_err(|_| Problem::invalid("/expiresAt", "must be an RFC 3339 time"))?;
    Ok(Timestamp(at.as_millisecond()))
}

/// Makes the key and answers with its secret. What is stored for a repetition, in the same commit, holds
/// no secret.
async fn commit_with_secret(
    api: &SharedState,
    ticket: Ticket,
    (draft, secret): (KeyDraft, Secret),
) -> Result<Response, Problem> {
    let mut shown = to_json(draft.record());
    let mut stored = shown.clone();
    shown["secret"] = json!(secret.expose());
    stored["message"] = json!(SECRET_NOT_REPEATED);
    let stored = ApiResponse::created(stored).stored();
    let keyring = api.keyring.clone();
    ticket
        .commit_storing(
            api,
            ApiResponse::created(shown),
            stored,
            |response| async move {
                match keyring.create(draft, response).await {
                    Ok(_) => Ok(MutationOutcome::Done),
                    Err(KeyError::IdempotencyKeyUsed) => Ok(MutationOutcome::IdempotencyKeyUsed),
                    Err(error) => Err(error.into()),
                }
            },
        )
        .await
}

fn to_json(record: &KeyRecord) -> Value {
    json!({
        "keyId": record.key_id,
        "name": record.name,
        "tenant": record.tenant,
        "workspace": record.workspace,
        "principal": record.principal,
        "scopes": record.scopes,
        "roles": record.roles,
        "test": Identity::of_key(record).test_key,
        "createdAt": rfc3339(record.created_at),
        "expiresAt": record.expires_at.map(rfc3339),
        "revokedAt": record.revoked_at.map(rfc3339),
    })
}
