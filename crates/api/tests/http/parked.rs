//! Parked work is shown to its own tenant; readiness names the reason why the host cannot work.

use crate::test_server::{TestServer, hour};
use serde_json::json;
use tandem_access::{NewKey, Scope};

const PARKED: &str = "/v1/host/tandem/parked";

#[tokio::test]
async fn parked_work_needs_scope_and_tenant_wide_key() {
    let server = TestServer::new().await;
    assert_eq!(server.get(PARKED).await.ok(200), json!({"parked": []}));
    let other = server.new_key("default", &[Scope::RunsCreate]).await;
    let refused = server.call_as(&other, "GET", PARKED, &[], "").await;
    let details = refused.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:read", "{details}");
    let bound = NewKey {
        workspace: Some("east".into()),
        ..NewKey::new("bound", "default".into(), [Scope::RunsRead])
    };
    let bound = server.mint(bound).await;
    let refused = server.call_as(&bound, "GET", PARKED, &[], "").await;
    refused.refused(403, "forbidden");
}

#[tokio::test]
async fn retry_needs_run_control_scope() {
    let server = TestServer::new().await;
    let run = server.start("waits", &[hour("b")]).await;
    let path = format!("{PARKED}/run:{run}/retry");
    let retried = server.post(&path, json!({})).await.ok(202);
    let nothing = json!({"subject": format!("run:{run}"), "retried": 0});
    assert_eq!(retried, nothing);
    let all = [Scope::RunsRead, Scope::RunsCancel];
    let foreign = server.new_key("rival", &all).await;
    let refused = server.call_as(&foreign, "POST", &path, &[], "{}").await;
    refused.refused(404, "not_found");
    let reader = server.new_key("default", &all[..1]).await;
    let refused = server.call_as(&reader, "POST", &path, &[], "{}").await;
    let details = refused.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:cancel");
}

#[tokio::test]
async fn readyz_names_the_reason() {
    let server = TestServer::new().await;
    server.runtime.store().close().await;
    let reply = server.call_as("", "GET", "/readyz", &[], "").await;
    let details = reply.refused(503, "service_unavailable");
    assert_eq!(details["reason"], "the store refuses writes: closed");
    server.call_as("", "GET", "/healthz", &[], "").await.ok(200);
}
