//! Tools without a configured server: none are advertised, and a call fails with that reason.

use crate::test_server::{TestServer, chain};
use serde_json::json;

#[tokio::test]
async fn tools_are_not_advertised_without_a_server() {
    let server = TestServer::new().await;
    let document = server.get("/.well-known/openwop").await.ok(200);
    assert_eq!(document.get("mcp"), None);
    let types = document["extensions"]["nodeTypes"].as_array().unwrap();
    assert!(types.contains(&json!("vendor.tandem.http")));
    for absent in ["core.mcp.toolCall", "core.ai.callPrompt"] {
        assert!(!types.contains(&json!(absent)), "{absent}");
    }
}

#[tokio::test]
async fn call_to_unconfigured_server_fails_its_node() {
    let server = TestServer::new().await;
    let config = json!({"serverId": "docs", "toolName": "echo"});
    let call = json!({"id": "t", "typeId": "core.mcp.toolCall", "config": config});
    let run = server.start("w", &[call]).await;
    let log = server.log(&run).await;
    let events = log["events"].as_array().unwrap();
    let failed = events.iter().find(|e| e["type"] == "node.failed").unwrap();
    assert_eq!(
        failed["payload"]["error"]["code"],
        "mcp_server_not_configured"
    );
    assert!(events.iter().all(|e| e["type"] != "agent.toolCalled"));
}

#[tokio::test]
async fn prompt_without_tool_call_is_an_unknown_node_type() {
    let server = TestServer::new().await;
    let prompt = json!({"id": "p", "typeId": "core.ai.callPrompt", "config": {"promptId": "x"}});
    let path = "/v1/host/tandem/workflows/w";
    let refused = server.put(path, chain("w", &[prompt])).await.ok(400);
    assert_eq!(refused["error"], "validation_error");
    let fault = &refused["details"]["errors"][0];
    assert_eq!(fault["path"], "/nodes/0/typeId");
    assert!(
        fault["message"]
            .as_str()
            .unwrap()
            .contains("not a node type of this host")
    );
}
