//! Which of the protocol's fixture workflows this host can run. Discovery lists them, so the list
//! must be true.

use tandem_record::TenantId;
use tandem_runtime::{Definition, Fault, PackTypes, Runtime, ToolServers};

/// Fixtures that every host can run but that probe a capability beyond their node types; naming
/// one would claim the capability.
const PROBES_OF_PACKS: &str = "conformance-agent-pack-";
/// Wants prose of a model turned into JSON by one more call, which this host does not do.
const PROBE_OF_COERCION: &str = "conformance-envelope-nl-to-format-engaged";

/// Asks for the revision of MCP that knows `server/discover`, which this host does not speak.
const PROBE_OF_DISCOVERY: &str = "conformance-mcp-client";

/// Shared workflows with a fixture's name whose every node type is served. Ask after the operator's
/// workflows are registered.
pub async fn runnable_fixtures(runtime: &Runtime) -> Result<Vec<String>, Fault> {
    // No tenant has this name, so only what everybody sees is listed.
    let nobody = TenantId::new("").into();
    let mut fixtures = Vec::new();
    for registered in runtime.workflows(&nobody).await? {
        let id = &registered.workflow;
        if !registered.shared || !id.as_str().starts_with("conformance-") {
            continue;
        }
        let definition = runtime.current_definition(&nobody, id).await?;
        if definition.is_some_and(|d| is_served(&d, runtime.tools(), runtime.packs())) {
            fixtures.push(id.to_string());
        }
    }
    Ok(fixtures)
}

fn is_served(definition: &Definition, tools: &ToolServers, packs: &PackTypes) -> bool {
    let id = definition.id().as_str();
    let probes =
        id.starts_with(PROBES_OF_PACKS) || [PROBE_OF_COERCION, PROBE_OF_DISCOVERY].contains(&id);
    let mut foreign = definition.pack_types();
    let brought = foreign.all(|type_id| packs.get(type_id).is_some());
    definition.gated().is_none() && !probes && brought && tools.serve(definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tandem_runtime::{Brought, Permissions};

    fn served(id: &str, type_id: &str, config: Value) -> bool {
        served_with(&[], id, type_id, config)
    }

    fn served_with(tools: &[&str], id: &str, type_id: &str, config: Value) -> bool {
        let document = json!({
            "id": id, "name": id, "version": "1.0", "metadata": {}, "settings": {},
            "triggers": [], "variables": [], "edges": [],
            "nodes": [{"id": "n", "typeId": type_id, "name": "n", "position": {"x": 0, "y": 0},
                       "config": config, "inputs": {}}],
        });
        let permissions = Permissions {
            // As documents are that were registered once.
            packs: Brought::Once,
            ..Permissions::default()
        };
        let packs = [(
            "vendor.openwop.rust-hello.greet",
            "vendor.openwop.rust-hello@1.0.0",
        )];
        let definition = Definition::compile(&document, permissions).expect("compiles");
        let tools = tools.iter().map(|id| (*id).to_owned()).collect();
        is_served(&definition, &tools, &PackTypes::from_iter(packs))
    }

    #[test]
    fn a_fixture_that_calls_a_tool_is_named_where_there_is_a_server() {
        let (id, call) = ("conformance-mcp-tool-roundtrip", "core.ai.callPrompt");
        let config = json!({"mcp": {"tool": "echo", "arguments": {}}});
        for (tools, named) in [(&[][..], false), (&["any"], true), (&["a", "b"], false)] {
            assert_eq!(served_with(tools, id, call, config.clone()), named);
        }
        let client = "core.conformance.mcp-client";
        assert!(!served_with(
            &["any"],
            "conformance-mcp-client",
            client,
            json!({})
        ));
    }

    #[test]
    fn only_fixtures_whose_whole_behaviour_is_served_are_named() {
        // R-0023-22: those that use the mock agent are among them.
        assert!(served(
            "conformance-agent-reasoning",
            "core.conformance.mock-agent",
            json!({"mockReasoning": true})
        ));
        let hook = json!({"memoryAction": "write-then-read"});
        assert!(served("conformance-identity", "core.identity", json!({})));
        assert!(served(
            "conformance-agent-memory-roundtrip",
            "core.identity",
            hook
        ));
        assert!(!served(
            "conformance-agent-pack-install",
            "core.identity",
            json!({})
        ));
        for (id, type_id, whole) in [
            (
                "conformance-wasm-pack-roundtrip",
                "vendor.openwop.rust-hello.greet",
                true,
            ),
            (
                "conformance-wasm-pack-memory-cap-breach",
                "vendor.openwop.misbehaving.memory-bomb",
                false,
            ),
        ] {
            assert_eq!(
                served(id, type_id, json!({})),
                whole,
                "{id}: only what is loaded"
            );
        }
        let asks = json!({"provider": "mock", "model": "m", "outputSchema": {}});
        for (id, whole) in [
            ("conformance-envelope-refusal", true),
            ("conformance-envelope-nl-to-format-engaged", false),
        ] {
            let named = served(id, "core.ai.structuredOutput", asks.clone());
            assert_eq!(named, whole, "{id}");
        }
        assert!(!served(
            "conformance-governed",
            "core.openwop.governance.approvalGate",
            json!({})
        ));
    }
}
