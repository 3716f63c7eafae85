//! Stored events of sessions are read back as they were written. The body is stored beside the common
//! fields, so no body may have a field with one of their names.

use super::{
    AdminActor, AuthorizationDecision, FlowRef, RouterReason, SessionEvent,
    SessionEventBody as Body,
};
use crate::RunId;

fn actor() -> AdminActor {
    AdminActor {
        id: "ana".to_owned(),
        role: Some("boss".to_owned()),
        channel: "ui_api".to_owned(),
        metadata: None,
    }
}

#[test]
fn bodies_do_not_collide_with_common_fields() {
    let bodies = [
        Body::AuthorizationDecided(Box::new(AuthorizationDecision {
            granted: true,
            action: "hitl.escalation.resolve".to_owned(),
            actor: Some(actor()),
            signal: None,
            escalation_id: None,
            proxy_id: None,
            reason: None,
            adapter: "ui_api".to_owned(),
        })),
        Body::RouterDecided {
            mode: "detector".to_owned(),
            flow: Some("booking".to_owned()),
            confidence: Some(0.9),
            reason: RouterReason::Selected,
            fallback_used: false,
        },
    ];
    for body in bodies {
        let event = SessionEvent {
            turn: Some(1),
            flow: Some(FlowRef {
                flow_id: "other".into(),
                flow_run_id: RunId::new("flow-1"),
            }),
            actor: Some(actor()),
            response: None,
            body,
        };
        let text = serde_json::to_string(&event).expect("plain data");
        let read: Result<SessionEvent, _> = serde_json::from_str(&text);
        assert_eq!(read.ok(), Some(event), "{text}");
    }
}
