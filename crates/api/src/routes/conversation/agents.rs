//! Agents as they are loaded, their users, and all their events.

use crate::api::SharedState;
use crate::caller::{Caller, OfConversations, RunsCreate, RunsRead};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::paging::{cursor, limit, parse_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tandem_app::conversation::FoundUser;
use tandem_app::{AppError, ChatUserFilter, ListingPage};
use tandem_record::conversation::{ProfileChange, SessionStart};
use tandem_record::{AgentId, ChatUserId, SessionId};
use tandem_wire::conversation::{self as wire, AgentLogPosition, EventReader};
use utoipa::ToSchema;

#[utoipa::path(
    get, path = "/v1/host/tandem/agents", tag = "conversations", operation_id = "listAgents",
    responses((status = 200, description = "The agents of this host", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
) -> Result<Json<Value>, Problem> {
    let agents = api.app.list_agents(&caller)?;
    Ok(Json(json!({"agents": agents})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/agents/{agentId}", tag = "conversations",
    operation_id = "readAgent", params(("agentId" = String, Path)),
    responses((status = 200, description = "One agent: its flows with the hashes of their code, and errors of its files", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(agent): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let agent = api.app.read_agent(&caller, &AgentId::from(agent))?;
    Ok(Json(json!(agent)))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/agents/{agentId}/users", tag = "conversations",
    operation_id = "listChatUsers",
    params(("agentId" = String, Path), ("tag" = Option<String>, Query),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Users of the agent, in order of their ids", body = Value))
)]
pub(super) async fn users(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(agent): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    params.only(&["tag", "limit", "cursor"])?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let page = ListingPage {
        after: after.map(ChatUserId::from),
        limit: limit(&params)?,
    };
    let filter = ChatUserFilter {
        tag: params.get("tag").map(str::to_owned),
        active_since: None,
    };
    let agent = AgentId::from(agent);
    let listed = api.app.list_chat_users(&caller, &agent, &filter, &page);
    let (users, next) = listed.await?;
    let users: Vec<Value> = users.iter().map(shown_user).collect();
    let mut body = json!({"users": users});
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(next.as_str()));
    }
    Ok(Json(body))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ChatUserChange)]
pub(super) struct UserChangeRequest {
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
    /// Merged into the preferences; `null` removes a key.
    #[serde(default)]
    preferences: Option<Value>,
    #[serde(default)]
    consent: Option<ConsentChange>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsentChange {
    /// Whether the user accepts messages they did not cause.
    proactive: bool,
}

#[utoipa::path(
    patch, path = "/v1/host/tandem/users/{userId}", tag = "conversations",
    operation_id = "changeChatUser", params(("userId" = String, Path)),
    request_body = UserChangeRequest,
    responses((status = 200, description = "The changed user", body = Value))
)]
pub(super) async fn change_user(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    PathParams(user): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let sent: UserChangeRequest = request.json()?;
    let change = ProfileChange {
        name_is_chosen: sent.display_name.is_some(),
        display_name: sent.display_name,
        tags: sent.tags,
        preferences: sent.preferences,
        proactive: sent.consent.map(|consent| consent.proactive),
    };
    let render = |user: &FoundUser| ApiResponse::ok(shown_user(user));
    respond(ticket, render, |idempotency| {
        let user = ChatUserId::from(user);
        api.app.change_chat_user(&caller, user, change, idempotency)
    })
    .await
}

fn shown_user(user: &FoundUser) -> Value {
    let FoundUser {
        agent,
        profile,
        created_at,
        last_active_at,
    } = user;
    wire::user(profile, agent, *created_at, *last_active_at)
}

#[utoipa::path(
    get, path = "/v1/host/tandem/agents/{agentId}/events", tag = "conversations",
    operation_id = "readAgentEvents",
    params(("agentId" = String, Path),
           ("after" = Option<i64>, Query, description = "The position of the last event already seen; -1 for all")),
    responses((status = 200, description = "Events of the agent and of all its sessions, in order of their commits", body = Value))
)]
pub(super) async fn events(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(agent): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    params.only(&["after"])?;
    let after = after(&params)?.map_or(0, |position| position);
    let agent = AgentId::from(agent);
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let page = api.app.read_agent_events(&caller, &agent, after).await?;
    let texts = api.app.text_masking(&agent);
    let mut starts: BTreeMap<SessionId, Option<SessionStart>> = BTreeMap::new();
    let mut events: Vec<(u64, Value)> = Vec::new();
    for logged in &page.events {
        let start = match starts.entry(logged.session.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let found = api.app.session_start(&caller, &logged.session).await;
                unknown.insert(match found {
                    Ok(start) => Some(start),
                    // Of another workspace, or purged meanwhile.
                    Err(AppError::NotFound(_)) => None,
                    Err(error) => return Err(error.into()),
                })
            }
        };
        if let Some(session) = start {
            let reader = EventReader { session, texts };
            let position = AgentLogPosition(logged.position);
            let shown = wire::event(&logged.event, reader, Some(position));
            events.push((logged.position, shown));
        }
    }
    events.extend(page.own.iter().map(|own| {
        let position = AgentLogPosition(own.position);
        let shown = wire::agent_level_event(&own.event, &agent, position);
        (own.position, shown)
    }));
    events.extend(page.schedules.iter().filter_map(|logged| {
        let position = AgentLogPosition(logged.position);
        let run = logged.run.as_deref();
        let shown = wire::schedule_event(&logged.event, &logged.schedule, run, position)?;
        Some((logged.position, shown))
    }));
    events.sort_by_key(|(position, _)| *position);
    let events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
    Ok(Json(json!({"events": events, "lastPosition": page.last})))
}

/// The last sequence or position a reader has; `None` for none.
pub(super) fn after(params: &Params) -> Result<Option<u64>, Problem> {
    match params.get("after") {
        None | Some("-1") => Ok(None),
        Some(_) => params.number("after", 0..=u64::MAX),
    }
}
