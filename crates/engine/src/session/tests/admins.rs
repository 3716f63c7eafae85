//! Who an admin is and what they may do.

use crate::agent::{AdminAuthSpec, AgentSpec};
use crate::ids::hex;
use crate::session::admin_auth::{
    AdminSignals, AuthzDenial, ChatSignal, KeySignal, ResolvedActor, allows, authorize, can,
    resolve_actor,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn auth(config: Value) -> AdminAuthSpec {
    let config = json!({"prompt": "x", "adminAuth": config});
    let agent = AgentSpec::compile("demo", &config, &[]).expect("an agent");
    agent.admin_auth.expect("an auth")
}

fn data() -> AdminAuthSpec {
    let hash = |token: &str| format!("sha256:{}", hex(&Sha256::digest(token.as_bytes())));
    auth(json!({
        "tokens": [
            {"hash": hash("token-of-ana"), "actorId": "ana", "role": "boss"},
            {"hash": hash("token-of-vic"), "actorId": "vic", "role": "viewer"},
            {"hash": hash("token-of-nil"), "actorId": "nil"},
        ],
        "chat": [{"transport": "loopback", "address": "desk", "actorId": "fin", "role": "finance"},
            {"transport": "whatsapp", "address": "+1", "actorId": "fin", "role": "finance"}],
        "roles": {"boss": ["hitl.escalation.view", "hitl.escalation.resolve", "command.vip"],
            "viewer": ["hitl.escalation.view"], "finance": ["hitl.proxy.input"]},
    }))
}

fn token(token: &str) -> AdminSignals<'_> {
    AdminSignals {
        token: Some(token),
        ..AdminSignals::default()
    }
}

fn chat<'a>(transport: &'a str, address: &'a str) -> AdminSignals<'a> {
    AdminSignals {
        chat: Some(ChatSignal { transport, address }),
        ..AdminSignals::default()
    }
}

#[test]
fn data_resolves_tokens_and_addresses() {
    // Z-143 (half: as data), Z-149 (half: as data)
    let table = [
        (token("token-of-ana"), Some(("ana", Some("boss"), "ui_api"))),
        (token("token-of-nil"), Some(("nil", None, "ui_api"))),
        (token("token-of-an"), None),
        (token(""), None),
        (
            chat("loopback", "desk"),
            Some(("fin", Some("finance"), "chat:loopback")),
        ),
        (
            chat("whatsapp", "+1"),
            Some(("fin", Some("finance"), "whatsapp")),
        ),
        (chat("telegram", "desk"), None),
        (chat("loopback", "Desk"), None),
        (AdminSignals::default(), None),
        // A wrong token is not made up for by a known address.
        (
            AdminSignals {
                token: Some("x"),
                ..chat("loopback", "desk")
            },
            None,
        ),
    ];
    for (signals, expected) in table {
        let actor = resolve_actor(&data(), &signals);
        let actor = actor.as_ref();
        let found = actor.map(|a| (a.id.as_str(), a.role.as_deref(), a.channel.as_str()));
        assert_eq!(found, expected, "{signals:?}");
    }
}

#[test]
fn action_needs_a_role_that_lists_it() {
    // Z-144 (half: an unknown action is denied), Z-146 (half: without config, without actor)
    let table = [
        ("token-of-ana", "hitl.escalation.resolve", Ok("ana")),
        ("token-of-ana", "command.vip", Ok("ana")),
        ("token-of-ana", "command.other", Err(AuthzDenial::Forbidden)),
        (
            "token-of-ana",
            "hitl.takeover.start",
            Err(AuthzDenial::Forbidden),
        ),
        ("token-of-vic", "hitl.escalation.view", Ok("vic")),
        (
            "token-of-vic",
            "hitl.escalation.resolve",
            Err(AuthzDenial::Forbidden),
        ),
        (
            "token-of-nil",
            "hitl.escalation.view",
            Err(AuthzDenial::Forbidden),
        ),
        ("stolen", "hitl.escalation.view", Err(AuthzDenial::NoActor)),
    ];
    let data = data();
    for (secret, action, expected) in table {
        let found = authorize(Some(&data), action, &token(secret)).map(|actor| actor.id);
        assert_eq!(
            found.as_deref().map_err(|denial| *denial),
            expected,
            "{secret} {action}"
        );
    }
    let none = authorize(None, "hitl.escalation.view", &token("token-of-ana"));
    assert_eq!(none, Err(AuthzDenial::NoAuthConfig));
    let code = auth(json!({"resolveActor": {"$fn": true}, "can": {"$fn": true}}));
    let undecided = authorize(Some(&code), "hitl.escalation.view", &token("token-of-ana"));
    assert_eq!(undecided, Err(AuthzDenial::Error));
}

#[test]
fn keys_of_the_host_grant_by_scope_and_by_role() {
    // Z-149 (half: builtin keys)
    let keys = auth(json!({"builtin": "keys", "roles": {"planner": ["schedule.manage"]}}));
    let roles = ["planner".to_owned()];
    let respond = ["approvals:respond".to_owned()];
    let takeover = ["conversations:takeover".to_owned()];
    let none: [String; 0] = [];
    let covered = |roles: &[String], scopes: &[String]| -> Vec<&str> {
        let key = KeySignal {
            principal: "ana",
            roles,
            scopes,
        };
        let signals = AdminSignals {
            key: Some(key),
            ..AdminSignals::default()
        };
        let actions = [
            "hitl.escalation.view",
            "hitl.escalation.resolve",
            "hitl.takeover.start",
            "hitl.takeover.end",
            "hitl.takeover.message",
            "hitl.proxy.input",
            "hitl.proxy.stop",
            "hitl.proxy.view",
            "schedule.manage",
            "flow.manage",
            "audit.view",
            "command.vip",
        ];
        let allowed = actions.into_iter();
        allowed
            .filter(|action| authorize(Some(&keys), action, &signals).is_ok())
            .collect()
    };
    assert_eq!(
        covered(&none, &respond),
        ["hitl.escalation.view", "hitl.escalation.resolve"]
    );
    assert_eq!(
        covered(&none, &takeover),
        [
            "hitl.takeover.start",
            "hitl.takeover.end",
            "hitl.takeover.message",
            "hitl.proxy.input",
            "hitl.proxy.stop",
            "hitl.proxy.view"
        ]
    );
    assert_eq!(covered(&roles, &none), ["schedule.manage"]);
    assert_eq!(covered(&none, &none), [""; 0]);
    // A token means nothing here.
    assert_eq!(resolve_actor(&keys, &token("x")), None);
}

#[test]
fn stored_actor_has_no_rights_of_its_key() {
    let keys = auth(json!({"builtin": "keys"}));
    let scopes = ["approvals:respond".to_owned()];
    let key = KeySignal {
        principal: "ana",
        roles: &[],
        scopes: &scopes,
    };
    let signals = AdminSignals {
        key: Some(key),
        ..AdminSignals::default()
    };
    let actor = resolve_actor(&keys, &signals).expect("an actor");
    assert!(can(&keys, "hitl.escalation.view", &actor));
    let stored = serde_json::to_value(&actor).expect("JSON");
    assert_eq!(stored, json!({"id": "ana", "channel": "ui_api"}));
    let read: ResolvedActor = serde_json::from_value(stored).expect("an actor");
    assert!(!can(&keys, "hitl.escalation.view", &read));
}

#[test]
fn answers_of_code_are_read_closed() {
    // Z-146 (half: a null actor and a non-boolean answer)
    let actor = ResolvedActor::from_answer(
        &json!({"id": "ana", "role": "boss", "channel": "root", "metadata": {"a": 1}}),
        "chat:loopback",
    )
    .expect("an actor");
    assert_eq!(
        (actor.id.as_str(), actor.channel.as_str()),
        ("ana", "chat:loopback")
    );
    assert_eq!(actor.metadata, Some(json!({"a": 1})));
    let long = "x".repeat(513);
    for nobody in [
        json!(null),
        json!(true),
        json!("ana"),
        json!({}),
        json!({"id": ""}),
        json!({"id": 7}),
        json!({"id": long}),
        json!({"id": "ana", "role": 7}),
    ] {
        assert_eq!(
            ResolvedActor::from_answer(&nobody, "ui_api"),
            None,
            "{nobody}"
        );
    }
    assert!(allows(&json!(true)));
    for answer in [
        json!(false),
        json!(null),
        json!(1),
        json!("true"),
        json!({}),
    ] {
        assert!(!allows(&answer), "{answer}");
    }
}

#[test]
fn unresolved_callers_appear_hashed() {
    // Z-147 (half: the unresolved signal)
    let digests = [
        token("secret").digest(),
        token("other").digest(),
        chat("loopback", "secret").digest(),
    ];
    let mut seen: Vec<String> = digests.into_iter().flatten().collect();
    assert!(
        seen.iter()
            .all(|digest| digest.len() == 32 && !digest.contains("secret"))
    );
    seen.dedup();
    assert_eq!(seen.len(), 3);
    assert_eq!(AdminSignals::default().digest(), None);
    assert_eq!(token("x").channel(), "ui_api");
    assert_eq!(chat("loopback", "a").channel(), "chat:loopback");
}
