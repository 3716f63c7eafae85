//! Tools where the operator configured no server: nothing is claimed, and a call says so.

use crate::stage::{Stage, chain};
use serde_json::json;

#[tokio::test]
async fn no_tool_is_told_of_where_there_is_no_server() {
    let stage = Stage::new().await;
    let document = stage.get("/.well-known/openwop").await.ok(200);
    assert_eq!(document.get("mcp"), None);
    let types = document["extensions"]["nodeTypes"].as_array().unwrap();
    assert!(types.contains(&json!("vendor.tandem.http")));
    for absent in ["core.mcp.toolCall", "core.ai.callPrompt"] {
        assert!(!types.contains(&json!(absent)), "{absent}");
    }
}

#[tokio::test]
async fn a_call_of_a_server_nobody_configured_fails_its_node() {
    let stage = Stage::new().await;
    let config = json!({"serverId": "docs", "toolName": "echo"});
    let call = json!({"id": "t", "typeId": "core.mcp.toolCall", "config": config});
    let run = stage.start("w", &[call]).await;
    let log = stage.log(&run).await;
    let events = log["events"].as_array().unwrap();
    let failed = events.iter().find(|e| e["type"] == "node.failed").unwrap();
    assert_eq!(
        failed["payload"]["error"]["code"],
        "mcp_server_not_configured"
    );
    assert!(events.iter().all(|e| e["type"] != "agent.toolCalled"));
}

#[tokio::test]
async fn a_prompt_that_is_no_call_is_of_an_unknown_type() {
    let stage = Stage::new().await;
    let prompt = json!({"id": "p", "typeId": "core.ai.callPrompt", "config": {"promptId": "x"}});
    let path = "/v1/host/tandem/workflows/w";
    let refused = stage.put(path, chain("w", &[prompt])).await.ok(400);
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
