//! Messages and what those who wrote them were told.

use super::{Logs, ensure};
use crate::sim::conversations::Conversations;
use std::collections::BTreeMap;
use tandem_record::conversation::{SessionEventBody as Body, TurnCause};
use tandem_record::{MessageId, SessionId, TenantId};

/// Where a message is: the place of its acceptance among all of its agent, its session and its turn.
struct Accepted {
    place: usize,
    session: SessionId,
    turn: Option<u64>,
}

/// Z-8, Z-10, Z-190: no accepted message is lost, none is accepted twice, and every answer names the same turn.
pub(super) fn check(sim: &Conversations, logs: &Logs) -> Result<(), String> {
    let accepted = accepted(logs)?;
    for written in &sim.observed.lock().messages {
        let key = (
            written.tenant.clone(),
            written.agent.to_owned(),
            written.id.clone(),
        );
        let found = accepted.get(&key);
        let (id, tenant) = (&written.id, &written.tenant);
        let Some(found) = found else {
            ensure(!written.is_accepted, || {
                format!("{id} of {tenant} was accepted and is lost")
            })?;
            continue;
        };
        for claim in &written.claims {
            ensure(
                claim.session_id == found.session && Some(claim.turn) == found.turn,
                || {
                    let (session, turn) = (&found.session, found.turn);
                    format!("{id} of {tenant} is in turn {turn:?} of {session}, not in {claim:?}")
                },
            )?;
        }
        if let Some(after) = &written.after {
            let key = (
                written.tenant.clone(),
                written.agent.to_owned(),
                after.clone(),
            );
            let before = accepted.get(&key).map(|accepted| accepted.place);
            ensure(before.is_some_and(|before| before < found.place), || {
                format!("{id} of {tenant} is before {after}, which was accepted first")
            })?;
        }
    }
    Ok(())
}

type Key = (TenantId, String, MessageId);

fn accepted(logs: &Logs) -> Result<BTreeMap<Key, Accepted>, String> {
    let mut accepted = BTreeMap::new();
    for events in &logs.order {
        for (place, (session, event)) in events.iter().enumerate() {
            let message = match &event.event.body {
                Body::MessageReceived { message, .. } => message,
                Body::TurnQueued {
                    cause: TurnCause::AdminCommand { message, .. },
                } => message,
                _ => continue,
            };
            let log = &logs.sessions[session];
            let id = message.message_id.clone();
            let key = (log.tenant.clone(), log.agent.to_string(), id.clone());
            let found = Accepted {
                place,
                session: session.clone(),
                turn: event.event.turn,
            };
            ensure(accepted.insert(key, found).is_none(), || {
                format!("{id} of {} is accepted twice", log.tenant)
            })?;
        }
    }
    Ok(accepted)
}
