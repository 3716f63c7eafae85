//! `POST /agents/{agentId}/inbound`: a message of a user.

use crate::api::SharedState;
use crate::body::present;
use crate::caller::{Caller, OfConversations, RunsCreate};
use crate::mutation::Mutation;
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use tandem_app::conversation::{DeliveredMessage, DeliveryStatus, NewInbound};
use tandem_record::AgentId;
use tandem_wire::conversation::{InboundAnswer, InboundStatus, OutboundText};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = InboundMessage)]
pub(super) struct InboundRequest {
    /// The transport's id of the message; one id is processed once. Without it, the `Idempotency-Key` of the
    /// request is the id.
    #[serde(default)]
    message_id: Option<String>,
    /// The address of the sender.
    from: String,
    /// Needed, except beside `media`.
    #[serde(default, deserialize_with = "present")]
    body: Option<String>,
    /// `text` when absent.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    sender_profile: Option<SenderProfileRequest>,
    /// A recording or file. With `contentType` and `data` in base64 its bytes are kept with the session.
    #[serde(default)]
    media: Option<Value>,
    /// The id of the message it replies to. An admin who answers at a desk with several bridges says so which one is
    /// meant.
    #[serde(default)]
    quoted_message_id: Option<String>,
    /// A bridge relayed it: it is never relayed again.
    #[serde(default)]
    relayed: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SenderProfile)]
pub(super) struct SenderProfileRequest {
    #[serde(default)]
    display_name: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/agents/{agentId}/inbound", tag = "conversations",
    operation_id = "deliverMessage",
    params(("agentId" = String, Path),
           ("wait" = Option<bool>, Query, description = "Answer when the turn is over")),
    request_body = InboundRequest,
    responses((status = 200, description = "The turn is over, or the message was not processed", body = Value),
              (status = 202, description = "Accepted; its turn follows", body = Value))
)]
pub(super) async fn deliver(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    PathParams(agent): PathParams<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    params.only(&["wait"])?;
    let sent: InboundRequest = request.json()?;
    let Some(body) = sent
        .body
        .or_else(|| sent.media.as_ref().map(|_| String::new()))
    else {
        return Err(Problem::invalid("/body", "is needed"));
    };
    let keyed = || request.idempotency_key().map(|key| format!("key:{key}"));
    let new = NewInbound {
        agent: AgentId::from(agent),
        message_id: sent.message_id.or_else(keyed),
        from: sent.from,
        body,
        kind: sent.kind,
        display_name: sent.sender_profile.and_then(|profile| profile.display_name),
        media: sent.media,
        quoted_id: sent.quoted_message_id,
        relayed: sent.relayed,
        sent_at: None,
        waits: params.get("wait") == Some("true"),
    };
    let delivered = api.app.deliver_message(&caller, new).await?;
    let is_under_way = delivered.status == DeliveryStatus::Accepted;
    let answer = answer(delivered);
    Ok(match is_under_way {
        true => ApiResponse::accepted(answer).into_response(),
        false => ApiResponse::ok(answer).into_response(),
    })
}

pub(super) fn answer(delivered: DeliveredMessage) -> InboundAnswer {
    InboundAnswer {
        turn_id: delivered.turn_id,
        status: match delivered.status {
            DeliveryStatus::Processed => InboundStatus::Processed,
            DeliveryStatus::Accepted => InboundStatus::Accepted,
            DeliveryStatus::Duplicate => InboundStatus::Duplicate,
            DeliveryStatus::RateLimited => InboundStatus::Ratelimited,
            DeliveryStatus::Overloaded => InboundStatus::Overloaded,
        },
        session_id: delivered.session,
        outbound: delivered
            .outbound
            .into_iter()
            .map(|intent| OutboundText {
                id: intent.key,
                to: intent.to,
                text: intent.text,
                origin: intent.origin,
            })
            .collect(),
    }
}
