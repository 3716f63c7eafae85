//! What takes room is told to the tenant it belongs to.

use crate::stage::{Stage, hour, noop};
use serde_json::json;
use tandem_access::{NewKey, Scope};

const STORAGE: &str = "/v1/host/tandem/storage";

#[tokio::test]
async fn a_tenant_learns_what_takes_room_and_no_other_does() {
    let stage = Stage::new().await;
    let note = json!({"id": "n", "typeId": "vendor.tandem.memory",
                      "config": {"action": "put", "key": "k", "value": "v"}});
    stage.start("ends", &[note, noop("a")]).await;
    let waits = stage.start("waits", &[hour("b")]).await;
    let told = stage.get(STORAGE).await.ok(200);
    assert_eq!(told["tenant"], "default");
    let counts = json!({"live": 1, "kept": 1, "purged": 0, "more": false});
    assert_eq!(told["runs"], counts);
    assert_eq!(told["workflows"][0]["workflowId"], "ends");
    let named = told["largestRuns"].as_array().unwrap();
    assert!(
        named.iter().any(|run| run["runId"] == waits.as_str()),
        "{told}"
    );
    assert!(named[0]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(told["memory"][0]["writes"], 1);
    assert!(told["nextPurgeAt"].is_string(), "{told}");

    let foreign = stage.new_key("rival", &[Scope::RunsRead]).await;
    let theirs = stage
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
async fn it_takes_a_scope_and_a_key_of_the_whole_tenant() {
    let stage = Stage::new().await;
    let other = stage.new_key("default", &[Scope::RunsCreate]).await;
    let refused = stage.call_as(&other, "GET", STORAGE, &[], "").await;
    let details = refused.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:read", "{details}");
    stage
        .get(&format!("{STORAGE}?tenant=rival"))
        .await
        .refused(400, "validation_error");
    let bound = NewKey {
        workspace: Some("north".into()),
        ..NewKey::new("bound", "default".into(), [Scope::RunsRead])
    };
    let bound = stage.mint(bound).await;
    let refused = stage.call_as(&bound, "GET", STORAGE, &[], "").await;
    refused.refused(403, "forbidden");
}
