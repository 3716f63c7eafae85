//! What admins do to a session that they pick at random, whatever goes on there.

use super::people::actor;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::json;
use tandem_record::conversation::{AdminRequest, SessionCommand};
use tandem_record::{MessageId, SessionId, TenantId};
use tandem_runtime::Runtime;
use tandem_store::{ListingPage, SessionFilter};

/// An admin starts a flow in a session, whatever goes on there.
pub(super) async fn start_flow(
    runtime: &Runtime,
    tenant: &TenantId,
    admin: &str,
    rng: &mut SmallRng,
) {
    let Some(session) = any_session(runtime, tenant, rng).await else {
        return;
    };
    let command = SessionCommand::Act {
        actor: actor(admin),
        request: AdminRequest::StartFlow {
            flow_id: format!("f{}", rng.random_range(0..5)).into(),
            input: Some(json!({ "by": admin })),
        },
    };
    // Refused while something else goes on.
    drop(runtime.submit_to_session(&session, command).await);
}

/// An admin takes a conversation over, speaks in it or gives it back, whatever goes on there.
pub(super) async fn act_in_takeover(
    runtime: &Runtime,
    tenant: &TenantId,
    admin: &str,
    count: u32,
    rng: &mut SmallRng,
) {
    let Some(session) = any_session(runtime, tenant, rng).await else {
        return;
    };
    let message_id = MessageId::from(format!("h-{admin}-{count}"));
    let request = match rng.random_range(0..4) {
        0 => AdminRequest::HandBack { note: None },
        1 => AdminRequest::SendTakeoverMessage {
            message_id: message_id.clone(),
            text: format!("{tenant} {admin} {count}"),
        },
        _ => AdminRequest::TakeOver,
    };
    let is_message = matches!(request, AdminRequest::SendTakeoverMessage { .. });
    let actor = actor(admin);
    let command = SessionCommand::Act { actor, request };
    if is_message {
        let sent = runtime.send_takeover_message(&session, &message_id, command);
        return drop(sent.await);
    }
    drop(runtime.submit_to_session(&session, command).await);
}

async fn any_session(
    runtime: &Runtime,
    tenant: &TenantId,
    rng: &mut SmallRng,
) -> Option<SessionId> {
    let filter = SessionFilter {
        active: Some(true),
        ..SessionFilter::default()
    };
    let page = ListingPage {
        after: None,
        limit: 100,
    };
    let listed = runtime.store().list_sessions(tenant, &filter, &page).await;
    let listing = listed.ok()??;
    let place = rng.random_range(0..listing.rows.len().max(1));
    listing.rows.get(place).map(|row| row.session_id.clone())
}
