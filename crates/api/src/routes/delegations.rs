//! Delegations: a person lets another person decide for them for some time. A caller with the scope
//! to answer may delegate its own authority; delegating for others needs the scope for groups.

use super::groups::check_not_workspace_bound;
use crate::api::SharedState;
use crate::caller::{ApprovalsRespond, Caller};
use crate::detached_request::run_to_completion;
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_access::{Identity, Scope};
use tandem_record::{Principal, Timestamp};
use tandem_runtime::DelegationRecord;
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

const MAX_DELEGATIONS: usize = 1024;
const MAX_NAME_CHARS: usize = 256;
/// A year and a day.
const MAX_MS: u64 = 366 * 24 * 3600 * 1000;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewDelegation)]
pub(super) struct DelegationRequest {
    /// Principal who may act.
    to: String,
    /// Principal acted for; the caller when left out.
    #[serde(default)]
    from: Option<String>,
    /// RFC 3339; now, when left out.
    #[serde(default)]
    starts_at: Option<String>,
    ends_at: String,
}

#[utoipa::path(
    get, path = "/v1/host/tandem/delegations", tag = "people", operation_id = "listDelegations",
    responses((status = 200, description = "Delegations that have not ended: the caller's, or all with the scope tandem:groups", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
) -> Result<Json<Value>, Problem> {
    let all = api.runtime.delegations(&caller.tenant).await?;
    let visible = all.iter().filter(|delegation| may_see(&caller, delegation));
    let visible: Vec<Value> = visible.map(to_json).collect();
    Ok(Json(json!({"delegations": visible})))
}

#[utoipa::path(
    post, path = "/v1/host/tandem/delegations", tag = "people", operation_id = "delegate",
    request_body = DelegationRequest,
    responses((status = 201, description = "From its start until its end they may act", body = Value))
)]
pub(super) async fn create(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: DelegationRequest = request.json()?;
    let from = requested.from.as_deref().unwrap_or_default();
    let named = [("/to", requested.to.as_str()), ("/from", from)];
    api.check_no_secrets(named.map(|(place, name)| (place.to_owned(), name)))?;
    let delegation = requested.into_record(&caller, api.now())?;
    if delegation.from != caller.principal {
        caller.require_scope(Scope::Groups)?;
        check_not_workspace_bound(&caller)?;
    }
    let existing = api.runtime.delegations(&caller.tenant).await?;
    if existing.len() >= MAX_DELEGATIONS {
        let message = format!("would be one of more than {MAX_DELEGATIONS} delegations");
        return Err(Problem::invalid("", message));
    }
    let body = to_json(&delegation);
    let runtime = api.runtime_of(&caller);
    run_to_completion(async move { runtime.put_delegation(delegation).await }).await?;
    ticket.complete(&api, ApiResponse::created(body)).await
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/delegations/{delegationId}", tag = "people",
    operation_id = "endDelegation", params(("delegationId" = String, Path)),
    responses((status = 204, description = "They may not act any more"))
)]
pub(super) async fn delete(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams(id): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let all = api.runtime.delegations(&caller.tenant).await?;
    let found = all.into_iter().find(|d| d.id == id && may_see(&caller, d));
    if found.is_none() {
        return Err(Problem::not_found("delegation"));
    }
    let (runtime, tenant) = (api.runtime_of(&caller), caller.tenant.clone());
    run_to_completion(async move { runtime.drop_delegation(&tenant, &id).await }).await?;
    ticket.complete(&api, ApiResponse::no_content()).await
}

fn may_see(caller: &Identity, delegation: &DelegationRecord) -> bool {
    let own = [&delegation.from, &delegation.to].contains(&&caller.principal);
    own || (caller.require_scope(Scope::Groups).is_ok() && caller.workspace.is_none())
}

impl DelegationRequest {
    fn into_record(self, caller: &Identity, now: Timestamp) -> Result<DelegationRecord, Problem> {
        let from = self.from.unwrap_or_else(|| caller.principal.to_string());
        for (place, name) in [("/to", &self.to), ("/from", &from)] {
            if !(1..=MAX_NAME_CHARS).contains(&name.chars().count()) {
                return Err(Problem::invalid(place, "must name a principal"));
            }
        }
        if self.to == from {
            return Err(Problem::invalid("/to", "is the one who delegates"));
        }
        let starts_at = match &self.starts_at {
            Some(text) => parse_time("/startsAt", text)?,
            None => now,
        };
        let ends_at = parse_time("/endsAt", &self.ends_at)?;
        if ends_at <= now || ends_at <= starts_at {
            return Err(Problem::invalid(
                "/endsAt",
                "must lie after now and after the start",
            ));
        }
        if ends_at.ms_since(starts_at.max(now)) > MAX_MS {
            return Err(Problem::invalid("/endsAt", "is more than a year away"));
        }
        Ok(DelegationRecord {
            id: format!("dlg-{}", uuid::Uuid::new_v4().simple()),
            tenant: caller.tenant.clone(),
            from: Principal::from(from),
            to: Principal::from(self.to),
            starts_at,
            ends_at,
            created_at: now,
        })
    }
}

fn parse_time(place: &str, text: &str) -> Result<Timestamp, Problem> {
    let parsed = text.parse::<jiff::Timestamp>();
    let at = parsed.map_err(|_| Problem::invalid(place, "must be an RFC 3339 time"))?;
    Ok(Timestamp(at.as_millisecond()))
}

fn to_json(delegation: &DelegationRecord) -> Value {
    json!({
        "delegationId": delegation.id,
        "from": delegation.from,
        "to": delegation.to,
        "startsAt": rfc3339(delegation.starts_at),
        "endsAt": rfc3339(delegation.ends_at),
        "createdAt": rfc3339(delegation.created_at),
    })
}
