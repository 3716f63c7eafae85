//! Work that keeps failing is shown to the tenant it belongs to; readiness says why the host cannot work.

use crate::stage::{Stage, hour};
use serde_json::json;
use tandem_access::{NewKey, Scope};

const PARKED: &str = "/v1/host/tandem/parked";

#[tokio::test]
async fn parked_work_takes_a_scope_and_a_key_of_the_whole_tenant() {
    let stage = Stage::new().await;
    assert_eq!(stage.get(PARKED).await.ok(200), json!({"parked": []}));
    let other = stage.new_key("default", &[Scope::RunsCreate]).await;
    let refused = stage.call_as(&other, "GET", PARKED, &[], "").await;
    let details = refused.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:read", "{details}");
    let bound = NewKey {
        workspace: Some("east".into()),
        ..NewKey::new("bound", "default".into(), [Scope::RunsRead])
    };
    let bound = stage.mint(bound).await;
    let refused = stage.call_as(&bound, "GET", PARKED, &[], "").await;
    refused.refused(403, "forbidden");
}

#[tokio::test]
async fn a_retry_is_for_whoever_may_control_the_run() {
    let stage = Stage::new().await;
    let run = stage.start("waits", &[hour("b")]).await;
    let path = format!("{PARKED}/run:{run}/retry");
    let retried = stage.post(&path, json!({})).await.ok(202);
    let nothing = json!({"subject": format!("run:{run}"), "retried": 0});
    assert_eq!(retried, nothing);
    let all = [Scope::RunsRead, Scope::RunsCancel];
    let foreign = stage.new_key("rival", &all).await;
    let refused = stage.call_as(&foreign, "POST", &path, &[], "{}").await;
    refused.refused(404, "not_found");
    let reader = stage.new_key("default", &all[..1]).await;
    let refused = stage.call_as(&reader, "POST", &path, &[], "{}").await;
    let details = refused.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:cancel");
}

#[tokio::test]
async fn readiness_says_why_the_host_cannot_work() {
    let stage = Stage::new().await;
    stage.runtime.store().close().await;
    let reply = stage.call_as("", "GET", "/readyz", &[], "").await;
    let details = reply.refused(503, "service_unavailable");
    assert_eq!(details["reason"], "the store refuses writes: closed");
    stage.call_as("", "GET", "/healthz", &[], "").await.ok(200);
}
