//! API keys of the caller's tenant.
//!
//! A secret is in exactly one answer and is never stored. A request that is repeated under its
//! idempotency key makes no second key; it gets the key's description without the secret.

use crate::api::SharedState;
use crate::caller::{Caller, Keys};
use crate::mutation::{IdempotencyCheck, Mutation, respond, respond_storing};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_access::{Identity, KeyRecord, MadeKeys, RevokedKeys, Scope};
use tandem_app::{CreateKey, IssuedKey};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

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
    /// The only agent it is good for: it reads and writes the conversations of that agent and nothing else.
    #[serde(default)]
    agent: Option<String>,
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
    let test_scope = requested
        .scopes
        .iter()
        .position(|s| s == Scope::Test.as_str());
    if let Some(at) = test_scope.filter(|_| !api.test_seams) {
        let message = "is served with --test-seams only";
        return Err(Problem::invalid(&format!("/scopes/{at}"), message));
    }
    let requested = CreateKey {
        name: requested.name,
        scopes: requested.scopes,
        roles: requested.roles,
        principal: requested.principal,
        tenant: requested.tenant,
        workspace: requested.workspace,
        agent: requested.agent,
        expires_at: requested.expires_at,
        test: requested.test,
    };
    respond_storing(ticket, render_issued, render_repeated, |idempotency| {
        api.app.create_key(&caller, requested, idempotency)
    })
    .await
}

#[utoipa::path(
    get, path = "/v1/host/tandem/keys", tag = "keys", operation_id = "listKeys",
    responses((status = 200, description = "Keys of the tenant, oldest first, without secrets", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<Keys>,
) -> Result<Json<Value>, Problem> {
    let keys = api.app.list_keys(&caller).await?;
    let keys: Vec<Value> = keys.iter().map(|key| served(&api, to_json(key))).collect();
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
    let found = api.app.find_key(&caller, &key).await?;
    Ok(Json(served(&api, to_json(&found))))
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/keys/{keyId}", tag = "keys", operation_id = "revokeKey",
    params(("keyId" = String, Path), ("made" = Option<String>, Query, description = "keep or revoke")),
    description = "Keys that hold a scope the caller lacks, or are of another workspace, are out of reach. The \
                   tenant's first key is revoked only by another key of the same principal. Keys that it made \
                   are revoked with it, and those that they made, unless a rotated key takes its place; \
                   made=keep and made=revoke decide otherwise.",
    responses((status = 200, description = "Revoked; sessions opened with it have ended. alsoRevoked: keys \
                                            that ended with it; kept: keys it made that stay", body = Value))
)]
pub(super) async fn revoke(
    State(api): State<SharedState>,
    caller: Caller<Keys>,
    PathParams(key): PathParams<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let made = match params.get("made") {
        None => MadeKeys::FollowSuccessor,
        Some("keep") => MadeKeys::Keep,
        Some("revoke") => MadeKeys::Revoke,
        Some(_) => return Err(Problem::invalid("made", "must be keep or revoke")),
    };
    let id = key.clone();
    let render = move |revoked: &RevokedKeys| {
        ApiResponse::ok(json!({
            "keyId": id,
            "alsoRevoked": revoked.also,
            "kept": revoked.kept,
        }))
    };
    respond(ticket, render, |idempotency| {
        api.app.revoke_key(&caller, &key, made, idempotency)
    })
    .await
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
    let expires_at = expires_at.as_deref();
    respond_storing(ticket, render_issued, render_repeated, |idempotency| {
        api.app.rotate_key(&caller, &key, expires_at, idempotency)
    })
    .await
}

/// The only response with the secret.
fn render_issued(issued: &IssuedKey) -> ApiResponse {
    let mut shown = to_json(&issued.record);
    shown["secret"] = json!(issued.secret.expose());
    ApiResponse::created(shown)
}

/// What is stored for a repetition holds no secret.
fn render_repeated(issued: &IssuedKey) -> ApiResponse {
    let mut shown = to_json(&issued.record);
    shown["message"] = json!(SECRET_NOT_REPEATED);
    ApiResponse::created(shown)
}

/// A key without scopes that this host serves no routes for.
fn served(api: &SharedState, mut key: Value) -> Value {
    let scopes = key["scopes"].as_array_mut().filter(|_| !api.test_seams);
    if let Some(scopes) = scopes {
        scopes.retain(|scope| scope != Scope::Test.as_str());
    }
    key
}

fn to_json(record: &KeyRecord) -> Value {
    json!({
        "keyId": record.key_id,
        "name": record.name,
        "tenant": record.tenant,
        "workspace": record.workspace,
        "agent": record.agent,
        "principal": record.principal,
        "scopes": record.scopes,
        "roles": record.roles,
        "test": Identity::of_key(record).test_key,
        "createdAt": rfc3339(record.created_at),
        "expiresAt": record.expires_at.map(rfc3339),
        "revokedAt": record.revoked_at.map(rfc3339),
        "madeBy": record.made_by,
        "rotates": record.rotates,
    })
}
