//! The storage report covers only its own tenant.

use crate::test_server::{TestServer, hour, noop};
use serde_json::json;
use tandem_access::{NewKey, Scope};

const STORAGE: &str = "/v1/host/tandem/storage";

#[tokio::test]
async fn storage_report_covers_only_the_own_tenant() {
    let server = TestServer::new().await;
    let note = json!({"id": "n", "typeId": "vendor.tandem.memory",
                      "config": {"action": "put", "key": "k", "value": "v"}});
    server.start("ends", &[note, noop("a")]).await;
    let waits = server.start("waits", &[hour("b")]).await;
    let report = server.get(STORAGE).await.ok(200);
    assert_eq!(report["tenant"], "default");
    let counts = json!({"live": 1, "kept": 1, "purged": 0, "more": false});
    assert_eq!(report["runs"], counts);
    assert_eq!(report["workflows"][0]["workflowId"], "ends");
    let named = report["largestRuns"].as_array().unwrap();
    assert!(
        named.iter().any(|run| run["runId"] == waits.as_str()),
        "{report}"
    );
    assert!(named[0]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(report["memory"][0]["writes"], 1);
    assert!(report["nextPurgeAt"].is_string(), "{report}");

    let foreign = server.new_key("rival", &[Scope::RunsRead]).await;
    let theirs = server
        .call_as(&foreign, "GET", STORAGE, &[], "")
        .await
        .ok(200);
    let nothing = json!({"live": 0, "kept": 0, "purged": 0, "more": false});
    assert_eq!(theirs["runs"], nothing);
    assert_eq!(theirs["largestRuns"], json!([]));
    assert_eq!(theirs["memory"], json!([]));
    assert_eq!(theirs.get("nextPurgeAt"), None);
}

#[tokio::test]
async fn storage_report_needs_scope_and_tenant_wide_key() {
    let server = TestServer::new().await;
    let other = server.new_key("default", &[Scope::RunsCreate]).await;
    let refused = server.call_as(&other, "GET", STORAGE, &[], "").await;
    let details = refused.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:read", "{details}");
    server
        .get(&format!("{STORAGE}?tenant=rival"))
        .await
        .refused(400, "validation_error");
    let bound = NewKey {
        workspace: Some("north".into()),
        ..NewKey::new("bound", "default".into(), [Scope::RunsRead])
    };
    let bound = server.mint(bound).await;
    let refused = server.call_as(&bound, "GET", STORAGE, &[], "").await;
    refused.refused(403, "forbidden");
}
