use super::*;

/// Which optional versions are served: the second, fourth, fifth and sixth.
fn served(supported: [bool; 4], version_cap: Option<u32>) -> AgentCapabilities<'static> {
    let [memory, replays_models, stateful_resume, verifier] = supported;
    AgentCapabilities {
        floor: None,
        escalation_kind: Some("approval"),
        vendor_kinds_url: None,
        ask_user_routings: &[],
        fan_out_policies: &[],
        join_modes: &[],
        max_fan_out: 1,
        max_loop_iterations: 1,
        reasoning_token_limit: 1,
        sibling_writes: "advisory",
        ancestry: true,
        memory,
        replays_models,
        stateful_resume,
        verifier,
        version_cap,
    }
}

fn document_with(agents: AgentCapabilities<'_>) -> Value {
    let memory = agents.memory;
    document(&HostCapabilities {
        host_version: "0",
        host_id: "here",
        engine_version: 1,
        max_node_executions: 1,
        max_run_duration_ms: 1,
        max_request_body_bytes: 1,
        envelope_limits: EnvelopeLimits {
            clarification_rounds: 0,
            schema_rounds: 2,
            per_turn: 1,
        },
        fixtures: &[],
        drain_policies: &[],
        debug_bundle: false,
        idempotency_seconds: 1,
        key_rotation_grace_seconds: None,
        audit_log: None,
        auth_scoped: false,
        sub_workflow_input_mapping: true,
        otel: None,
        metrics: &[],
        stream_modes: &[],
        node_types: Vec::new(),
        interrupt_kinds: &["clarification"],
        approval_actions: &[],
        webhooks: false,
        test_seams: false,
        mock_agent: true,
        testing: TestingCapabilities {
            mock_providers: &["stream-text"],
            test_key_prefix: "k_test_",
        },
        memory_entry_bytes: memory.then_some(1),
        compaction: memory.then_some(Compaction {
            max_input_entries: 2,
            max_output_bytes: 1,
        }),
        fork_modes: &[],
        models: Some(ModelCapabilities {
            providers: vec!["acme"],
            max_attempts: 3,
            budget_multiplier: 2,
        }),
        tools: memory,
        agents: Some(agents),
        max_future_horizon: None,
        packs: None,
    })
}

#[test]
fn compaction_is_advertised_only_with_memory() {
    let compaction = json!({
        "supported": true,
        "trigger": "host-managed",
        "maxInputEntries": 2,
        "maxOutputBytes": 1,
    });
    assert_eq!(
        document_with(served([true; 4], None))["memory"]["compaction"],
        compaction
    );
    assert_eq!(document_with(served([false; 4], None)).get("memory"), None);
}

#[test]
fn execution_model_version_implies_lower_versions_and_none_above() {
    // R-0039-28 (half: what each version advertises), R-0040-13 (half: advertised with version 3)
    // R-0040-16, R-0040-18
    let model = |supported, cap| {
        document_with(served(supported, cap))["multiAgent"]["executionModel"].clone()
    };
    let whole = model([true; 4], None);
    assert_eq!(whole["version"], 6);
    let repeats = json!({"supported": true, "llmCacheKeyRecipe": "spec-rfc-0041",
                         "refusalDivergenceEmission": true});
    assert_eq!(whole["replayDeterminism"], repeats);
    let third = model([true, false, true, true], None);
    assert_eq!(
        (&third["version"], third.get("replayDeterminism")),
        (&json!(3), None)
    );
    assert_eq!(whole["crossChildMemoryConcurrency"], "advisory");
    let across = json!({"supported": true, "hostId": "here", "ancestryEndpointSupported": true});
    assert_eq!(whole["crossHostCausation"], across);

    let first = model([false, true, true, true], None);
    assert_eq!(first["version"], 1);
    for above in [
        "crossChildMemoryConcurrency",
        "crossHostCausation",
        "replayDeterminism",
    ] {
        assert_eq!(first.get(above), None, "{above}");
    }
}

#[test]
fn execution_model_version_stops_at_a_gap_and_at_the_operator_cap() {
    let all = [true; 4];
    let table = [
        ([false, false, false, false], None, 1),
        ([false, true, true, true], None, 1),
        ([true, false, false, false], None, 3),
        ([true, false, true, true], None, 3),
        ([true, true, false, false], None, 4),
        ([true, true, false, true], None, 4),
        ([true, true, true, false], None, 5),
        (all, None, 6),
        (all, Some(6), 6),
        (all, Some(5), 5),
        (all, Some(4), 4),
        (all, Some(3), 3),
        ([false, true, true, true], Some(4), 1),
    ];
    for (supported, cap, version) in table {
        let document = document_with(served(supported, cap));
        let model = &document["multiAgent"]["executionModel"];
        assert_eq!(model["version"], version, "{supported:?} {cap:?}");
        let resumes = (version >= 5).then_some(json!(true));
        assert_eq!(model.get("statefulResume"), resumes.as_ref());
        let gates = (version >= 6).then(|| json!({"supported": true, "gating": true}));
        assert_eq!(model.get("verifier"), gates.as_ref());
        assert_eq!(model.get("transcriptWindow"), None, "no turn is fed one");
    }
}

#[test]
fn testing_capabilities_list_mock_providers_and_test_key_prefix() {
    let testing = json!({"mockProviders": ["stream-text"], "testKeyPrefix": "k_test_"});
    assert_eq!(document_with(served([true; 4], None))["testing"], testing);
}

#[test]
fn mcp_is_advertised_only_with_tool_servers() {
    let document = document_with(served([true; 4], None));
    assert_eq!(document["mcp"], json!({"supported": true}));
    assert_eq!(document["extensions"]["mcp"], json!({"serverUrls": []}));
    let without = document_with(served([false; 4], None));
    assert_eq!(without.get("mcp"), None);
    assert_eq!(without["extensions"].get("mcp"), None);
}

#[test]
fn model_providers_and_envelope_reliability_are_advertised() {
    let document = document_with(served([true; 4], None));
    let providers = json!({"supported": ["acme"], "byok": []});
    assert_eq!(document["aiProviders"], providers);
    let reliability = &document["envelopes"]["reliability"];
    assert_eq!(reliability["maxRetryAttempts"], 3);
    assert_eq!(reliability["completion"]["truncationBudgetMultiplier"], 2);
    let events = reliability["events"].as_array().unwrap();
    assert!(!events.contains(&json!("envelope.nlToFormat.engaged")));
}
