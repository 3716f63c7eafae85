//! What start-up validation refuses.

use super::{flow, function, problems, spec, with};
use crate::agent::{AgentSpec, LoadedFlow};
use serde_json::{Value, json};

/// The single problem of a configuration, as `path: message`.
fn refused(config: &Value, flows: &[LoadedFlow]) -> String {
    let found = problems(config, flows);
    assert_eq!(found.len(), 1, "{config}: {found:?}");
    format!("{}: {}", found[0].path, found[0].message)
}

fn check(table: &[(Value, &str)]) {
    for (fields, expected) in table {
        let found = refused(&with(fields.clone()), &[]);
        assert!(
            found.contains(expected),
            "{fields}: {found:?} without {expected:?}"
        );
    }
}

#[test]
fn blank_prompt_is_refused() {
    // Z-4 (half: the engine refuses it)
    for prompt in ["", "  \n\t "] {
        assert_eq!(
            refused(&json!({ "prompt": prompt }), &[]),
            "/prompt: must not be empty"
        );
    }
    assert_eq!(refused(&json!({}), &[]), "/prompt: is required");
    assert_eq!(
        refused(&json!({"prompt": 7}), &[]),
        "/prompt: must be text, not a number"
    );
    assert!(
        refused(&json!({"prompt": "{{ user. }}"}), &[])
            .starts_with("/prompt: line 1: syntax error")
    );
    assert_eq!(
        refused(&json!("agent"), &[]),
        ": must be an object, not text"
    );
}

#[test]
fn names_that_collide_or_refer_to_nothing_are_refused() {
    // Z-5 (half: all but cron expressions and time zones)
    let record = |name: &str| json!({"name": name, "kind": "record"});
    let offered = |alias: &str| json!({"run": function(), "asTool": {"alias": alias}});
    let flows = json!({"hello": function()});
    check(&[
        (
            json!({"tools": [record("quote")], "flows": {"q": offered("quote")}}),
            "/flows/q/asTool: \"quote\" is also the name of a tool",
        ),
        (
            json!({"flows": {"a": offered("x"), "b": offered("x")}}),
            "/flows/b/asTool: another flow is offered as \"x\" too",
        ),
        (
            json!({"tools": [record("a"), record("a")]}),
            "/tools/1/name: another tool has this name",
        ),
        (
            json!({"tools": [record("listCurrentUserSchedules")]}),
            "/tools/0/name: is the name of a tool of the host",
        ),
        (
            json!({"flows": {"q": offered("createCurrentUserSchedule")}}),
            "\"createCurrentUserSchedule\" is a tool of the host",
        ),
        (
            json!({"flows": flows, "flowRouter": {"mode": "schema_flow", "field": "f",
                "fallback": "helo"}}),
            "/flowRouter/fallback: there is no flow \"helo\"; did you mean `hello`?",
        ),
        (
            json!({"flowRouter": {"mode": "schema_flow", "field": "f"}}),
            "/flowRouter: needs flows, and the agent has none",
        ),
        (
            json!({"commands": {"hi": {"flow": "gone"}}}),
            "/commands/hi/flow: there is no flow \"gone\"",
        ),
        (
            json!({"schedules": {"morning": {"flowId": "gone",
                "trigger": {"type": "cron", "expr": "0 9 * * *"},
                "target": {"kind": "user", "userExternalId": "u1"}}}}),
            "/schedules/morning/flowId: there is no flow \"gone\"",
        ),
    ]);
    let twice = with(json!({"flows": flows}));
    assert_eq!(
        refused(&twice, &[flow("hello")]),
        "/flows/hello: this flow id is given twice"
    );
    assert_eq!(
        refused(&with(json!({})), &[flow("a:b")]),
        "/flows/a:b: a flow id has at most 128 bytes and contains no space, ':' or '/'"
    );
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    check(&[
        (
            json!({"promt": "x"}),
            "/promt: is not a setting of an agent; did you mean `prompt`?",
        ),
        (
            json!({"hitl": {"confirmDefaults": {"timeoutSecond": 1}}}),
            "/hitl/confirmDefaults/timeoutSecond: is not a setting of confirmDefaults; did you mean \
             `timeoutSeconds`?",
        ),
        (
            json!({"tools": [{"name": "t", "kind": "record", "return": 1}]}),
            "/tools/0/return: is not a setting of tools; did you mean `returns`?",
        ),
        (
            json!({"commands": {"a": {"handler": function(), "acces": "admin"}}}),
            "/commands/a/acces: is not a setting of commands; did you mean `access`?",
        ),
        (
            json!({"hitl": {"targets": {"a/b": {"transport": "t", "address": "a", "lable": "x"}}}}),
            "/hitl/targets/a~1b/lable: is not a setting of targets; did you mean `label`?",
        ),
    ]);
}

#[test]
fn values_of_the_wrong_type_or_range_are_refused() {
    check(&[
        (
            json!({"maxToolIterations": -1}),
            "/maxToolIterations: must be a whole number from 0 to 50",
        ),
        (json!({"maxToolIterations": 1.5}), "must be a whole number"),
        (json!({"rateLimitPerUserPerMinute": 0}), "from 1 to 1000000"),
        (
            json!({"llmTimeoutMs": "30"}),
            "/llmTimeoutMs: must be a whole number, not text",
        ),
        (
            json!({"hookTimeoutMs": 1e12}),
            "/hookTimeoutMs: must be a whole number from 1 to 3600000",
        ),
        (
            json!({"flowLimits": {"maxEffectsPerTurn": 0}}),
            "/flowLimits/maxEffectsPerTurn: ",
        ),
        (
            json!({"modality": "smell"}),
            "/modality: must be one of text, voice, auto",
        ),
        (
            json!({"agentMode": "on"}),
            "/agentMode: must be one of auto, draft_only, off",
        ),
        (
            json!({"beforeLLM": "f"}),
            "/beforeLLM: must be a function, not text",
        ),
        (
            json!({"hooks": {"onError": "stop"}}),
            "/hooks/onError: must be one of continue, cancel",
        ),
        (
            json!({"inbound": {"debounceMs": 9000, "maxWaitMs": 10}}),
            "must not be below debounceMs",
        ),
        (
            json!({"consent": {}}),
            "/consent/stopKeywords: needs at least one word",
        ),
        (json!({"outputSchema": {"type": 1}}), "/outputSchema/type: "),
        (json!({"hitl": 7}), "/hitl: must be an object, not a number"),
        (
            json!({"hitl": {"asyncPendingPolicy": {"behavior": "ack"}}}),
            "/hitl/asyncPendingPolicy/ackText: is required when behavior is ack",
        ),
        (
            json!({"hitl": {"takeover": {"adapter": "x"}}}),
            "is neither api nor a key of targets",
        ),
        (
            json!({"hitl": {"targets": {"a": {"transport": "t"}}}}),
            "/hitl/targets/a/address: is required",
        ),
        (
            json!({"hitl": {"targets": {"a": {"transport": "t", "address": "b",
                "fallbackTarget": "c"}}}}),
            "/hitl/targets/a/fallbackTarget: is not a key of targets",
        ),
        (
            json!({"flowRouter": {"mode": "guess"}, "flows": {"a": function()}}),
            "/flowRouter/mode: ",
        ),
        (
            json!({"flows": {"a": {"description": "x"}}}),
            "/flows/a/run: is required",
        ),
        (
            json!({"flows": {"a": 7}}),
            "/flows/a: must be an object, not a number",
        ),
        (
            json!({"model": {"provider": "scripted"}}),
            "/model/script: is required",
        ),
        (
            json!({"model": {"provider": "scripted", "script": "../../etc/passwd"}}),
            "/model/script: must be a path inside the agent's folder",
        ),
        (
            json!({"model": {"provider": "x", "baseUrl": "ftp://x"}}),
            "/model/baseUrl: must begin with",
        ),
    ]);
}

#[test]
fn tools_and_commands_need_what_makes_them_work() {
    check(&[
        (
            json!({"tools": [{"name": "t"}]}),
            "/tools/0/handler: is required for a tool without a kind",
        ),
        (
            json!({"tools": [{"name": "t", "kind": "record", "handler": function()}]}),
            "/tools/0/handler: a tool has a kind or a handler, not both",
        ),
        (
            json!({"tools": [{"name": "t", "kind": "http"}]}),
            "/tools/0/url: is required",
        ),
        (
            json!({"tools": [{"name": "t", "kind": "http", "url": "x"}]}),
            "/tools/0/url: must begin with",
        ),
        (
            json!({"tools": [{"name": "a b", "kind": "record"}]}),
            "/tools/0/name: a tool name has",
        ),
        (
            json!({"commands": {"a": {"description": "x"}}}),
            "/commands/a/handler: is required",
        ),
        (
            json!({"flows": {"f": function()}, "commands": {"a": {"handler": function(), "flow": "f"}}}),
            "/commands/a/flow: a command has a handler or a flow, not both",
        ),
        (json!({"transports": {}}), "/transports: needs at least one"),
        (
            json!({"transports": {"web": {"orgins": []}}}),
            "/transports/web/orgins: ",
        ),
        (
            json!({"transports": {"web": {"origins": ["*"]}}}),
            "/transports/web/origins: \"*\" is no origin",
        ),
        (
            json!({"transports": {"web": {"origins": ["https://a.example; script-src *"]}}}),
            "/transports/web/origins: ",
        ),
        (
            json!({"transports": {"web": {"origins": ["https://a.example/path"]}}}),
            "/transports/web/origins: ",
        ),
        (
            json!({"transports": {"web": {"maxConnections": 0}}}),
            "/transports/web/maxConnections: ",
        ),
        (
            json!({"hitl": {"notify": [{"transport": "pigeon", "address": "x"}]}}),
            "/hitl/notify/0/transport: is none of the agent's transports that can notify",
        ),
        (
            json!({"transports": {"web": {}}, "hitl": {"notify": [{"transport": "web", "address": "x"}]}}),
            "/hitl/notify/0/transport: is none of the agent's transports that can notify",
        ),
        (
            json!({"hitl": {"notify": [{"transport": "loopback"}]}}),
            "/hitl/notify/0/address: ",
        ),
        // Z-23 (half: help stays)
        (
            json!({"commands": {"help": false}}),
            "help can be neither replaced nor removed",
        ),
        (
            json!({"commands": {"nonsense": false}}),
            "there is no such builtin to remove",
        ),
        (
            json!({"commands": {"a b": {"handler": function()}}}),
            "/commands/a b: a command name has",
        ),
        (
            json!({"commands": {"A": {"handler": function()}, "a": {"handler": function()}}}),
            "/commands/a: another command has this name",
        ),
    ]);
}

#[test]
fn admin_auth_is_data_or_code_or_builtin() {
    check(&[
        (
            json!({"adminAuth": {"builtin": "magic"}}),
            "/adminAuth/builtin: must be one of keys",
        ),
        (
            json!({"adminAuth": {"builtin": "keys", "tokens": []}}),
            "/adminAuth/tokens: cannot be combined with builtin",
        ),
        (
            json!({"adminAuth": {"can": function()}}),
            "/adminAuth/resolveActor: is required",
        ),
        (
            json!({"adminAuth": {"tokens": [{"hash": "sha256:12", "actorId": "a"}]}}),
            "/adminAuth/tokens/0/hash: must be sha256: and 64 hexadecimal digits",
        ),
        (
            json!({"adminAuth": {"chat": [{"transport": "t", "address": "a", "actorId": "x",
                "role": "king"}]}}),
            "/adminAuth/chat/0/role: is not a role of adminAuth.roles",
        ),
        (
            json!({"adminAuth": {"roles": {"boss": "all"}}}),
            "/adminAuth/roles/boss: must be a list",
        ),
    ]);
}

#[test]
fn number_of_problems_is_bounded() {
    let tools: Vec<Value> = (0..200).map(|_| json!({"name": ""})).collect();
    assert_eq!(problems(&with(json!({"tools": tools})), &[]).len(), 50);
    let many: Vec<Value> = (0..201).map(|_| json!({})).collect();
    assert_eq!(
        refused(&with(json!({"tools": many})), &[]),
        "/tools: has at most 200 entries"
    );
}

/// §10.4: what functions of an agent may call is a list of origins, not of patterns or addresses.
#[test]
fn http_allow_list_holds_origins_only() {
    for bad in [
        "api.example",
        "https://",
        "https://a.example/x",
        "https://*.example",
        "ftp://a",
    ] {
        let found = refused(&with(json!({"http": {"allow": [bad]}})), &[]);
        assert!(
            found.starts_with("/http/allow: ") && found.contains("no origin"),
            "{found}"
        );
    }
}

/// Z-40 (half: settings of speech are refused where nothing understands or makes it)
#[test]
fn settings_of_speech_need_speech() {
    let table = [
        ("ttsVoice", json!("nova")),
        ("sttTimeoutMs", json!(9)),
        ("ttsTimeoutMs", json!(9)),
    ];
    for (name, value) in table {
        let found = refused(&with(json!({ name: value })), &[]);
        assert_eq!(found, format!("/{name}: has no effect without `speech`"));
        let speech = json!({ name: value, "speech": {"provider": "scripted"} });
        spec(&with(speech));
    }
}

/// §10.1: `flow.<agentId>.<flowId>` names one flow, and ids contain no `:` or `/`.
#[test]
fn agent_ids_are_plain_names() {
    let config = with(json!({}));
    for id in ["desk", "front_desk-2", "Empfang"] {
        let problems = AgentSpec::compile(id, &config, &[]).err();
        assert_eq!(problems, None, "{id}");
    }
    for id in ["", "a:b", "a/b", "a.b", "evil name", "a\n"] {
        let problems = AgentSpec::compile(id, &config, &[]).expect_err(id);
        let [problem] = problems.as_slice() else {
            panic!("one problem of {id}: {problems:?}");
        };
        assert_eq!(problem.path, "");
        assert!(problem.message.contains("letters, digits"), "{problem:?}");
    }
}

#[test]
fn time_zone_without_a_name_is_refused() {
    for config in [
        json!({"prompt": "x", "scheduler": {"timezone": ""}}),
        json!({"prompt": "x", "hours": {"timezone": " ",
            "week": {"mon": [["09:00", "17:00"]]}}}),
    ] {
        let problem = refused(&config, &[]);
        assert!(problem.contains("is no time zone"), "{problem}");
    }
}
