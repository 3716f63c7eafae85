//! The registry and the test routes.

use crate::test_server::{TestServer, chain, hour, noop};
use serde_json::json;

#[tokio::test]
async fn workflow_documents_are_put_read_replaced_and_deleted() {
    let server = TestServer::new().await;
    let path = "/v1/host/tandem/workflows/w";
    let document = chain("w", &[noop("a")]);
    server.put(path, document.clone()).await.ok(201);
    server.put(path, document.clone()).await.ok(200);
    assert_eq!(server.get("/v1/workflows/w").await.ok(200), document);
    server
        .post("/v1/workflows", chain("w", &[noop("b")]))
        .await
        .ok(200);
    server
        .post("/v1/workflows", chain("x", &[noop("b")]))
        .await
        .ok(201);
    let listed = server.get("/v1/host/tandem/workflows").await.ok(200);
    assert_eq!(listed["workflows"].as_array().unwrap().len(), 2);
    let mut strange = document.clone();
    strange["nodes"][0]["typeId"] = json!("core.nobody-knows");
    let details = server
        .put(path, strange)
        .await
        .refused(400, "validation_error");
    assert!(!details["errors"].as_array().unwrap().is_empty());
    server
        .put("/v1/host/tandem/workflows/other", document)
        .await
        .refused(400, "validation_error");
    let delete = || server.call_as(&server.key, "DELETE", path, &[], "");
    assert_eq!(delete().await.status.as_u16(), 204);
    delete().await.refused(404, "workflow_not_found");
    server
        .get("/v1/workflows/w")
        .await
        .refused(404, "workflow_not_found");
}

#[tokio::test]
async fn clock_moves_forward_only() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let clock = "/v1/host/tandem/test/clock";
    for bad in [
        json!({}),
        json!({"advanceSeconds": -1}),
        json!({"advanceSeconds": 1, "set": "2100-01-01T00:00:00Z"}),
        json!({"set": "soon"}),
    ] {
        server
            .post(clock, bad)
            .await
            .refused(400, "validation_error");
    }
    let before = server.now();
    let unmoved = json!({"set": "2001-01-01T00:00:00Z"});
    let unmoved = server.post(clock, unmoved).await.ok(200);
    assert_eq!(unmoved["settled"], true);
    assert!(server.now() >= before, "it never goes back");
    let waits = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_ne!(waits["status"], "completed", "it moved nothing");
    let moved = server
        .post(clock, json!({"set": "2100-01-01T00:00:00Z"}))
        .await
        .ok(200);
    assert!(
        moved["now"]
            .as_str()
            .unwrap()
            .starts_with("2100-01-01T00:00:0")
    );
    let ended = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(ended["status"], "completed");
    server
        .post("/v1/host/tandem/test/crash", json!({"point": "nowhere"}))
        .await
        .refused(400, "validation_error");
}
