//! Users, as their rows show them.

use super::{Logs, ensure, store_failed};
use std::collections::BTreeMap;
use tandem_record::conversation::{ListedChatUser, SessionEventBody as Body};
use tandem_record::{ChatUserId, SessionId, TenantId, Timestamp};
use tandem_runtime::Runtime;

/// What the logs say about a user.
#[derive(Default)]
struct Known {
    tenant: Option<TenantId>,
    session: Option<SessionId>,
    last_active_at: Timestamp,
    proactive: Option<bool>,
}

/// A user has one active session at a time; Z-260: they are active when they write; what they agreed to is what
/// they said last, in whichever session.
pub(super) async fn check(runtime: &Runtime, logs: &Logs) -> Result<(), String> {
    let mut users: BTreeMap<ChatUserId, Known> = BTreeMap::new();
    for (session, event) in logs.order.iter().flatten() {
        let log = &logs.sessions[session];
        let user = &log.folded.start().user.id;
        let known = users.entry(user.clone()).or_default();
        match &event.event.body {
            Body::SessionStarted(_) => {
                ensure(known.session.is_none(), || {
                    format!("{user} begins {session} during {:?}", known.session)
                })?;
                known.session = Some(session.clone());
                known.tenant = Some(log.tenant.clone());
            }
            Body::SessionEnded { .. } => known.session = None,
            Body::MessageReceived { .. } => {
                known.last_active_at = known.last_active_at.max(event.at);
            }
            Body::ProfileChanged(change) => known.proactive = change.proactive.or(known.proactive),
            _ => {}
        }
    }
    for (user, known) in users {
        let tenant = known
            .tenant
            .ok_or_else(|| format!("{user} is of no tenant"))?;
        let row = runtime.store().chat_user(&tenant, &user).await;
        let row = row.map_err(store_failed)?;
        let row = row.ok_or_else(|| format!("{user} of {tenant} has no row"))?;
        let listed: ListedChatUser = serde_json::from_str(&row.body).map_err(|e| e.to_string())?;
        let proactive = listed.profile.consent.map(|consent| consent.proactive);
        ensure(proactive == known.proactive, || {
            format!(
                "{user} agreed to {:?}, the row says {proactive:?}",
                known.proactive
            )
        })?;
        // The user is created by the commit of their first message, a moment after it was received.
        let active_at = known.last_active_at.max(row.created_at);
        ensure(row.last_active_at == active_at, || {
            let (row, log) = (row.last_active_at, active_at);
            format!("{user} was active at {}, the row says {}", log.0, row.0)
        })?;
    }
    Ok(())
}
