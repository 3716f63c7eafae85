//! Defaults, and every field of the interface's example.

use super::super::{
    AdminAuthSpec, AgentMode, AgentModel, AgentToolKind, AsyncPendingPolicy, CommandAccess,
    ConfirmTimeoutBehavior, EscalationFallback, FlowRouter, HookFailurePolicy, ModalityPolicy,
    NewMessagePolicy, OnDivergence, Prompt, RouterFallback, ScriptSource, TakeoverAdapter,
    ToolApproval, UnrecognizedReply,
};
use super::{flow, function, spec, spec_with, with};
use crate::agent::LoadedFlow;
use crate::flow::effect::EscalationMode;
use crate::session::Language;
use serde_json::{Value, json};

#[test]
fn prompt_alone_is_an_agent_with_the_defaults_of_the_brief() {
    // Z-3 (half: nothing is configured that was not written)
    let agent = spec(&with(json!({})));
    assert_eq!(agent.agent_id, "demo");
    assert!(matches!(agent.prompt, Prompt::Template(_)));
    assert!(agent.tools.is_empty() && agent.flows.is_empty() && agent.schedules.is_empty());
    assert!(agent.commands.own.is_empty() && agent.commands.removed.is_empty());
    assert!(agent.flow_router.is_none() && agent.admin_auth.is_none() && agent.model.is_none());
    assert!(agent.consent.is_none() && agent.single_user.is_none());
    assert_eq!(agent.language, Language::En);
    assert_eq!(agent.modality, ModalityPolicy::Auto);
    assert_eq!(agent.tts_voice, "alloy");
    let limits = &agent.limits;
    assert_eq!(
        (limits.max_tool_iterations, limits.max_recursion_steps),
        (3, 50)
    );
    assert_eq!(
        (limits.max_working_memory, limits.max_episodic_memory),
        (20, 3)
    );
    assert_eq!(limits.session_idle_timeout_minutes, 15);
    assert_eq!(
        (
            limits.rate_limit_per_user_per_minute,
            limits.max_inbound_concurrency
        ),
        (20, 32)
    );
    // Z-50 (half: the bounds)
    assert_eq!(
        (
            limits.max_effects_per_turn,
            limits.max_handoffs_per_turn,
            limits.max_journal_records
        ),
        (200, 8, 10_000)
    );
    let timeouts = &agent.timeouts;
    assert_eq!(
        (timeouts.llm_ms, timeouts.tool_ms, timeouts.hook_ms),
        (30_000, 10_000, 5_000)
    );
    assert_eq!((timeouts.stt_ms, timeouts.tts_ms), (15_000, 15_000));
    let retry = &agent.retry;
    assert_eq!(
        (retry.max_retries, retry.base_delay_ms, retry.jitter_ms),
        (2, 75, 25)
    );
    let texts = &agent.texts;
    assert_eq!(
        texts.fallback_reply,
        "Sorry, I hit an unexpected issue. Please try again in a moment."
    );
    assert!(!texts.rate_limit.is_empty() && texts.welcome.is_none() && texts.overload.is_none());
    // Z-234 (half: the defaults), Z-241 (half: the defaults), Z-243 (half: the defaults), Z-216 (half: the defaults)
    assert_eq!(
        (agent.inbound.debounce_ms, agent.inbound.max_wait_ms),
        (0, 5_000)
    );
    assert_eq!(agent.agent_mode, AgentMode::Auto);
    assert_eq!(agent.on_new_message, NewMessagePolicy::Queue);
    assert_eq!(agent.on_divergence, OnDivergence::Park);
    // Z-128 (half: the default)
    assert!(!agent.hooks.before_llm && !agent.hooks.before_response && !agent.hooks.on_response);
    assert_eq!(
        agent.hooks.before_response_on_error,
        HookFailurePolicy::Continue
    );
}

#[test]
fn people_in_the_loop_have_the_defaults_of_the_brief() {
    let hitl = spec(&with(json!({}))).hitl;
    assert_eq!(hitl.confirm.timeout_ms, 300_000);
    assert_eq!(
        (hitl.confirm.unrecognized, hitl.confirm.max_reprompts),
        (UnrecognizedReply::Reprompt, 2)
    );
    assert_eq!(
        hitl.confirm.timeout_behavior,
        ConfirmTimeoutBehavior::Decline
    );
    assert!(hitl.confirm.positive_keywords.is_none() && hitl.confirm.negative_keywords.is_none());
    assert_eq!(hitl.escalation.timeout_ms, 86_400_000);
    assert_eq!(hitl.escalation.fallback, EscalationFallback::EndFlow);
    assert_eq!(hitl.async_pending.policy, AsyncPendingPolicy::Noop);
    assert_eq!(
        (
            hitl.async_pending.ack_min_interval_seconds,
            hitl.async_pending.max_queued
        ),
        (0, 50)
    );
    assert!(hitl.targets.is_empty() && hitl.takeover.allowed_commands.is_empty());
    // Without admins nobody can take over.
    assert_eq!(hitl.takeover.adapter, None);
    assert!(!hitl.human.offer_tool && hitl.human.keywords.is_empty());
}

#[test]
fn pending_policy_follows_the_ack_text_and_the_adapter_follows_the_admins() {
    // Z-33 (half: the default behaviour)
    let hitl = |fields: Value| spec(&with(json!({"hitl": fields}))).hitl;
    let acked = hitl(json!({"asyncPendingPolicy": {"ackText": "One moment."}}));
    assert_eq!(acked.async_pending.policy, AsyncPendingPolicy::Ack);
    let queued = hitl(json!({"asyncPendingPolicy": {"ackText": "x", "behavior": "queue"}}));
    assert_eq!(queued.async_pending.policy, AsyncPendingPolicy::Queue);
    let admins = with(json!({"adminAuth": {"builtin": "keys"}}));
    assert_eq!(
        spec(&admins).hitl.takeover.adapter,
        Some(TakeoverAdapter::Api)
    );
    let target = hitl(
        json!({"targets": {"desk": {"transport": "loopback", "address": "a"}},
        "takeover": {"adapter": "desk", "allowedCommands": ["/Help"], "maxSeconds": 60,
            "repromptOnHandback": true, "onExternalReply": true, "idleHandbackSeconds": 30}}),
    );
    assert_eq!(
        target.takeover.adapter,
        Some(TakeoverAdapter::Target("desk".into()))
    );
    assert_eq!(target.takeover.allowed_commands, ["help"]);
    assert_eq!(
        (target.takeover.max_ms, target.takeover.idle_handback_ms),
        (Some(60_000), Some(30_000))
    );
    assert!(target.takeover.reprompt_on_handback && target.takeover.on_external_reply);
}

#[test]
fn people_in_the_loop_are_read_in_full() {
    let hitl = spec(&with(json!({"hours": {"week": {"mon": [["09:00", "17:00"]]}}, "hitl": {
        "confirmDefaults": {"timeoutSeconds": 10, "positiveKeywords": ["go"],
            "negativeKeywords": ["halt"], "unrecognized": "decline", "maxReprompts": 0,
            "timeoutBehavior": "throw"},
        "escalationDefaults": {"timeoutSeconds": 20, "fallbackMode": "retry", "autoAckText": "a",
            "claimStopsTimeout": true, "outsideHoursText": "b", "countOpenHoursOnly": true},
        "targets": {"finance": {"transport": "t", "address": "a", "label": "Finance",
            "allowedActors": ["ana"], "fallbackTarget": "front"},
            "front": {"transport": "t", "address": "b"}},
        "humanKeyword": "human", "humanMode": "async_resolution", "offerHuman": true,
        "userCancelKeywords": ["never mind"],
    }})))
    .hitl;
    assert_eq!(
        (hitl.confirm.timeout_ms, hitl.confirm.max_reprompts),
        (10_000, 0)
    );
    assert_eq!(hitl.confirm.positive_keywords, Some(vec!["go".to_owned()]));
    assert_eq!(hitl.confirm.timeout_behavior, ConfirmTimeoutBehavior::Throw);
    assert_eq!(hitl.escalation.fallback, EscalationFallback::Retry);
    assert!(hitl.escalation.claim_stops_timeout && hitl.escalation.count_open_hours_only);
    assert_eq!(hitl.targets["finance"].label.as_deref(), Some("Finance"));
    assert_eq!(
        hitl.targets["finance"].allowed_actors,
        Some(vec!["ana".to_owned()])
    );
    // Z-229 (half: the settings), Z-245 (half: the settings)
    assert_eq!(hitl.human.keywords, ["human"]);
    assert_eq!(hitl.human.mode, EscalationMode::AsyncResolution);
    assert!(hitl.human.offer_tool);
    assert_eq!(hitl.user_cancel_keywords, ["never mind"]);
}

/// The agent file of the interface, as the loader gives it.
fn example() -> Value {
    json!({
        "prompt": "You run the desk of a clinic. You talk to {{ user.displayName }}.",
        "model": {"provider": "scripted", "script": "script.json"},
        "tools": [
            {"name": "price", "description": "Price of a service", "handler": function(),
                "parameters": {"type": "object", "properties": {"service": {"type": "string"}},
                    "required": ["service"]}},
            {"name": "create_appointment", "kind": "record", "returns": {"ok": true}, "failTimes": 2},
            {"name": "process_refund", "kind": "http", "url": "http://127.0.0.1:9000/refund",
                "idempotent": false, "approval": "admin"},
        ],
        "commands": {
            "note": {"description": "Remember a text", "handler": function(), "args": {
                "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
            "vip": {"description": "Mark as VIP", "access": "admin", "handler": function()},
            "usage": false,
        },
        "flows": {
            "hello": function(),
            "quote": {"run": function(), "description": "Makes a quote", "inputSchema": {
                "type": "object", "properties": {"item": {"type": "string"}}},
                "asTool": {"alias": "make_quote"}},
        },
        "flowRouter": {"mode": "detector", "prompt": "Which flow?", "minConfidence": 0.6,
            "outputSchema": {"type": "object", "properties": {"flow": {"type": "string"}}}},
        "hitl": {"confirmDefaults": {"timeoutSeconds": 300},
            "targets": {"financeTeam": {"transport": "loopback", "address": "finance-desk"}}},
        "adminAuth": {
            "tokens": [{"hash": format!("sha256:{}", "ab".repeat(32)), "actorId": "ana",
                "role": "boss"}],
            "chat": [{"transport": "loopback", "address": "finance-desk", "actorId": "fin",
                "role": "finance"}],
            "roles": {"boss": ["hitl.escalation.view", "command.vip"], "finance": ["hitl.proxy.input"]},
        },
        "beforeLLM": function(),
        "schedules": {"morning": {"flowId": "booking",
            "trigger": {"type": "cron", "expr": "0 9 * * *"},
            "target": {"kind": "user", "userExternalId": "u1"}}},
        "scheduler": {"timezone": "Europe/Berlin", "tools": true},
    })
}

#[test]
fn the_interfaces_example_is_read_in_full() {
    // Z-43 (half: both forms are read), Z-112 (half: the name of a flow as a tool), Z-149 (half: as data),
    // Z-227 (half: how they are written)
    let booking = LoadedFlow {
        as_tool: Some(json!(true)),
        ..flow("booking")
    };
    let agent = spec_with(&example(), &[booking]);
    assert_eq!(
        agent.model,
        Some(AgentModel::Scripted {
            script: ScriptSource::File("script.json".into())
        })
    );
    let kinds: Vec<&AgentToolKind> = agent.tools.iter().map(|tool| &tool.kind).collect();
    let record = AgentToolKind::Record {
        returns: json!({"ok": true}),
        fail_times: 2,
    };
    let http = AgentToolKind::Http {
        url: "http://127.0.0.1:9000/refund".into(),
    };
    assert_eq!(kinds, [&AgentToolKind::Handler, &record, &http]);
    let refund = agent.tool("process_refund").expect("a tool");
    assert!(!refund.idempotent && agent.tools[0].idempotent);
    assert_eq!(
        (refund.approval, agent.tools[0].approval),
        (ToolApproval::Admin, ToolApproval::None)
    );
    assert_eq!(agent.commands.own["vip"].access, CommandAccess::Admin);
    assert_eq!(agent.commands.own["note"].access, CommandAccess::Public);
    assert!(agent.commands.own["note"].args.is_some());
    assert!(agent.commands.removed.contains("usage"));
    let ids: Vec<&str> = agent.flows.keys().map(String::as_str).collect();
    assert_eq!(ids, ["booking", "hello", "quote"]);
    assert_eq!(agent.flows["booking"].version.as_deref(), Some("v1"));
    assert_eq!(agent.flows["hello"].version, None);
    let alias = |id: &str| {
        agent.flows[id]
            .tool
            .as_ref()
            .map(|tool| tool.alias.as_str())
    };
    assert_eq!(
        (alias("quote"), alias("booking"), alias("hello")),
        (Some("make_quote"), Some("booking"), None)
    );
    let Some(FlowRouter::Detector {
        min_confidence,
        fallback,
        ..
    }) = &agent.flow_router
    else {
        panic!("a detector");
    };
    assert_eq!(
        (*min_confidence, fallback),
        (Some(0.6), &RouterFallback::Classic)
    );
    let Some(AdminAuthSpec::Data(data)) = &agent.admin_auth else {
        panic!("data");
    };
    assert_eq!(
        (data.tokens[0].hash, data.tokens[0].actor_id.as_str()),
        ([0xab; 32], "ana")
    );
    assert_eq!(data.chat[0].role.as_deref(), Some("finance"));
    assert!(agent.hooks.before_llm && agent.schedules.contains_key("morning"));
    assert_eq!(agent.hitl.takeover.adapter, Some(TakeoverAdapter::Api));
}

#[test]
fn further_forms_are_read() {
    let language = |code: &str| spec(&with(json!({"language": code}))).language;
    assert_eq!(
        (language("pt"), language("klingon")),
        (Language::Pt, Language::En)
    );
    let schema = with(json!({"outputSchema": {"$standard": true, "vendor": "zod"}}));
    assert!(
        spec(&schema)
            .output_schema
            .is_some_and(|schema| schema.is_in_realm())
    );
    let router = json!({"mode": "schema_flow", "field": "flow", "fallback": "hello"});
    let routed = spec(&with(
        json!({"flows": {"hello": function()}, "flowRouter": router}),
    ));
    let Some(FlowRouter::SchemaFlow { field, fallback }) = &routed.flow_router else {
        panic!("a schema flow");
    };
    assert_eq!(
        (field.as_str(), fallback),
        ("flow", &RouterFallback::Flow("hello".into()))
    );
    let code = with(json!({"adminAuth": {"resolveActor": function(), "can": function()}}));
    assert_eq!(spec(&code).admin_auth, Some(AdminAuthSpec::Code));
    let inline = with(json!({"model": {"provider": "scripted", "script": {"answers": []}}}));
    assert_eq!(
        spec(&inline).model,
        Some(AgentModel::Scripted {
            script: ScriptSource::Inline(json!({"answers": []}))
        })
    );
    let model = json!({"provider": "openai", "model": "m", "baseUrl": "https://example.com/v1",
        "apiKeyEnv": "MODEL_KEY", "temperature": 0.5, "maxTokens": 100});
    let model = spec(&with(json!({"model": model}))).model;
    assert!(matches!(
        model,
        Some(AgentModel::Provider {
            max_tokens: Some(100),
            ..
        })
    ));
    let function_prompt = spec(&json!({"prompt": function(), "context": function()}));
    assert!(function_prompt.prompt_template().is_none() && function_prompt.has_context);
    // Z-128 (half: one policy for each hook), Z-242 (half: the words of consent)
    let hooks = json!({"onError": {"beforeResponse": "cancel"}});
    let consent = json!({"stopKeywords": ["stop"], "startKeywords": ["start"]});
    let agent = spec(&with(json!({"hooks": hooks, "consent": consent})));
    assert_eq!(agent.hooks.before_llm_on_error, HookFailurePolicy::Continue);
    assert_eq!(
        agent.hooks.before_response_on_error,
        HookFailurePolicy::Cancel
    );
    assert_eq!(
        agent.consent.map(|consent| consent.stop_keywords),
        Some(vec!["stop".to_owned()])
    );
    let both = spec(&with(json!({"hooks": {"onError": "cancel"}}))).hooks;
    assert_eq!(both.before_llm_on_error, HookFailurePolicy::Cancel);
    // Z-230 (half: a predicate on the arguments)
    let tool = json!({"name": "pay", "handler": function(), "approval": function()});
    assert_eq!(
        spec(&with(json!({"tools": [tool]}))).tools[0].approval,
        ToolApproval::Predicate
    );
}

#[test]
fn spec_is_shared_between_threads() {
    fn shared<T: Send + Sync>(value: T) -> T {
        value
    }
    assert_eq!(shared(spec(&with(json!({})))).agent_id, "demo");
}

/// Z-41 (half: nobody reaches an agent over the web unless its file says so)
#[test]
fn web_chat_is_off_unless_it_is_configured() {
    assert_eq!(spec(&with(json!({}))).web_chat, None);
    let other = with(json!({"transports": {"loopback": {}}}));
    assert_eq!(spec(&other).web_chat, None);
    let plain = spec(&with(json!({"transports": {"web": {}}})));
    let chat = plain.web_chat.expect("a web chat");
    assert!(chat.origins.is_empty(), "no other site shows it");
    assert_eq!(
        (chat.tenant.as_str(), chat.max_connections),
        ("default", 500)
    );
    let origins = ["https://shop.example", "http://127.0.0.1:8080"];
    let listed = with(json!({"transports": {"web": {"origins": origins, "tenant": "acme"}}}));
    let chat = spec(&listed).web_chat.expect("a web chat");
    assert_eq!(
        (chat.tenant.as_str(), chat.origins),
        ("acme", origins.map(str::to_owned).into())
    );
}

#[test]
fn buttons_of_a_confirmation_have_words_it_understands() {
    let words = |fields: Value| spec(&with(fields)).confirm_words();
    assert_eq!(words(json!({})), ("yes".to_owned(), "no".to_owned()));
    assert_eq!(
        words(json!({"language": "pt"})),
        ("sim".to_owned(), "não".to_owned())
    );
    let own = json!({"hitl": {"confirmDefaults": {"positiveKeywords": ["aye"]}}});
    assert_eq!(words(own), ("aye".to_owned(), "no".to_owned()));
}
