//! How bridges end: stopped by an admin, with their flow, with their session.

use super::bridges::{desk_with, start, wait};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, DivergenceAction, SessionEventBody as Body, SessionReply,
};

/// Z-105 (half: stopped from outside), Z-108 (half: stopping again is harmless), Z-252
#[test]
fn admin_stops_a_bridge_and_the_flow_goes_on() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    let proxy = desk.bridge_id();
    let stop = AdminRequest::StopProxy {
        proxy: proxy.clone(),
        reason: Some("closed".to_owned()),
    };
    let reply = desk.act("ana", stop.clone());
    assert!(matches!(
        reply,
        Ok(SessionReply::ProxyStopped {
            was_active: true,
            turn: Some(_)
        })
    ));
    let said = desk.texts_to("u1")[0];
    let result: Value = serde_json::from_str(said).expect("the result");
    let expected = json!({"outcome": "stopped", "proxyId": proxy, "reason": "closed"});
    assert_eq!(result, expected);
    let reply = desk.act("ana", stop);
    assert!(matches!(
        reply,
        Ok(SessionReply::ProxyStopped {
            was_active: false,
            ..
        })
    ));
    assert_eq!(desk.stops(), ["closed"]);

    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    let number = format!("#{}", desk.bridge_id().short());
    let answer = desk.run_command("fin", &format!("/proxy stop {number}"), &number);
    assert!(answer[0].contains("is stopped"), "{answer:?}");
    assert_eq!(desk.stops(), ["stopped_by_admin"]);
    let actions = desk.events.iter().filter_map(|event| match event {
        Body::AuthorizationDecided(decision) => Some(decision.action.as_str()),
        _ => None,
    });
    assert_eq!(actions.collect::<Vec<_>>(), ["hitl.proxy.stop"]);
}

/// Z-261 (half: the end of a bridge)
#[test]
fn diverged_run_stops_its_bridge() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    desk.change_code();
    desk.admin_writes("i-1", "APPROVE").expect("accepted");
    assert_eq!(desk.stops(), ["flow_diverged"]);
    assert_eq!(desk.forwards(), [], "nothing was forwarded");
    assert!(desk.state().flow().is_none());
}

/// A flow that waits at a bridge is told that it is gone when an operator tries it again.
#[test]
fn retried_run_learns_that_its_bridge_is_gone() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    let run = desk.change_code();
    desk.admin_writes("i-1", "APPROVE").expect("accepted");
    desk.restore_code();
    let action = DivergenceAction::Retry;
    desk.act("ana", AdminRequest::SettleDivergence { run, action })
        .expect("settled");
    let last = desk.texts_to("u1").last().map(|text| (*text).to_owned());
    let result: Value = serde_json::from_str(&last.expect("said")).expect("the result");
    assert_eq!(result["outcome"], "stopped");
}

/// Z-64 (half: the end of a bridge), Z-15 (half: the end of a bridge)
#[test]
fn end_of_flow_and_session_ends_the_bridge() {
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    desk.act("ana", AdminRequest::AbortFlow).expect("aborted");
    assert_eq!(desk.stops(), ["flow_ended"]);
    let mut desk = desk_with(vec![start(json!({})), wait(json!({}))]);
    desk.act("ana", AdminRequest::EndSession).expect("ended");
    assert_eq!(desk.stops(), ["session_ended"]);
    assert!(desk.state().required_timers().is_empty());
}
