//! Random agents: their settings, and flows as lists of steps.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::{AgentSpec, LoadedFlow};

pub(super) const AGENTS: [&str; 2] = ["desk", "shop"];
/// The transport and the addresses of admins who write commands.
pub(super) const ADMIN_TRANSPORT: &str = "backoffice";
pub(super) const ADMINS: [&str; 3] = ["ana", "ben", "cleo"];
pub(super) const HUMAN: &str = "human please";
pub(super) const CANCEL: &str = "forget it";
/// Workflows that flows start. The last one does not exist.
pub(super) const WORKFLOWS: [&str; 5] = ["nap", "long-nap", "call", "broken", "missing"];

const FLOWS: usize = 4;
const IDEMPOTENT: &str = "note";
const ONCE: &str = "charge";
const APPROVED: &str = "refund";

/// What a flow does at one place.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Say,
    Ask {
        reminds: bool,
    },
    Confirm {
        seconds: u64,
        reminds: bool,
    },
    Tool(&'static str),
    Sleep {
        seconds: u64,
    },
    Escalate {
        seconds: u64,
        approvals: u32,
    },
    AwaitAdmin {
        seconds: Option<u64>,
    },
    Takeover {
        seconds: u64,
    },
    AwaitHandback {
        seconds: Option<u64>,
    },
    Workflow {
        id: &'static str,
        waits: bool,
        seconds: Option<u64>,
        cancels: bool,
    },
    /// Adds one to a key of the session, with two calls of the context.
    Count,
    ConsumeQueued,
    /// Something that is no effect.
    Nonsense,
    Handoff(String),
    End,
    Fail,
    EndSession,
}

/// Releases of the code of every agent. Processes of both run at the same time.
pub(super) const RELEASES: usize = 2;

/// One agent in one release: the same settings, other code.
pub(super) struct ScriptedAgent {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) flows: BTreeMap<String, Arc<[Step]>>,
}

impl ScriptedAgent {
    pub(super) fn random(id: &str, rng: &mut SmallRng) -> [Self; RELEASES] {
        let names: Vec<String> = (0..FLOWS).map(|n| format!("f{n}")).collect();
        let settings = settings(rng);
        let is_tool: Vec<bool> = names.iter().map(|_| rng.random_bool(0.5)).collect();
        std::array::from_fn(|release| {
            let flows: BTreeMap<_, _> = (0..FLOWS)
                .map(|n| (names[n].clone(), steps(rng, &names[n + 1..])))
                .collect();
            let loaded: Vec<LoadedFlow> = names
                .iter()
                .zip(&is_tool)
                .map(|(flow_id, is_tool)| LoadedFlow {
                    flow_id: flow_id.clone(),
                    version: version(id, flow_id, release),
                    as_tool: is_tool.then(|| json!(true)),
                    ..LoadedFlow::default()
                })
                .collect();
            let spec = AgentSpec::compile(id, &settings, &loaded);
            Self {
                spec: Arc::new(spec.expect("the settings of the simulation are valid")),
                flows,
            }
        })
    }
}

/// The hash of a flow's code.
pub(super) fn version(agent: &str, flow: &str, release: usize) -> String {
    format!("{release}-{agent}-{flow}")
}

fn pick<'a>(rng: &mut SmallRng, among: &[&'a str]) -> &'a str {
    among[rng.random_range(0..among.len())]
}

fn settings(rng: &mut SmallRng) -> Value {
    let chat = ADMINS.map(|admin| {
        let role = if admin == "cleo" { "viewer" } else { "boss" };
        json!({"transport": ADMIN_TRANSPORT, "address": admin, "actorId": admin, "role": role})
    });
    // Of takeovers, so that they leave the other settings of a seed as they were.
    let mut own = rng.clone();
    let mut settings = json!({
        "prompt": "You are the desk.",
        "model": {"provider": "scripted", "script": {"answers": []}},
        "adminAuth": {"tokens": [], "chat": chat, "roles": {
            "boss": ["hitl.escalation.resolve", "hitl.escalation.view"],
            "viewer": ["hitl.escalation.view"],
        }},
        "flowCommand": true,
        "tools": [
            {"name": IDEMPOTENT, "kind": "record"},
            {"name": ONCE, "kind": "record", "idempotent": false},
            {"name": APPROVED, "kind": "record", "idempotent": false, "approval": pick(rng, &["user", "admin"])},
        ],
        "sessionIdleTimeoutMinutes": rng.random_range(1..4),
        "inbound": {"debounceMs": 900 * u32::from(rng.random_bool(0.3))},
        "onNewMessage": pick(rng, &["queue", "interrupt"]),
        "agentMode": pick(rng, &["auto", "auto", "auto", "draft_only"]),
        "consent": {"stopKeywords": ["stop"], "startKeywords": ["go"]},
        "workflows": WORKFLOWS,
        "profileTool": true,
        "welcomeMessage": "Welcome.",
        "hitl": {
            "asyncPendingPolicy": {
                "behavior": pick(rng, &["noop", "ack", "queue", "queue"]),
                "ackText": "Please wait.",
                "ackMinIntervalSeconds": rng.random_range(0..20),
                "maxQueued": if rng.random_bool(0.5) { 2 } else { 50 },
            },
            "confirmDefaults": {
                "unrecognized": pick(rng, &["reprompt", "decline"]),
                "maxReprompts": rng.random_range(0..3),
                "timeoutBehavior": pick(rng, &["decline", "end_flow", "throw"]),
            },
            "escalationDefaults": {"timeoutSeconds": rng.random_range(20..300)},
            "humanKeyword": HUMAN,
            "humanMode": pick(&mut own, &["async_resolution", "live_takeover"]),
            "takeover": {
                "idleHandbackSeconds": own.random_range(20..120),
                "maxSeconds": own.random_range(60..600),
                "repromptOnHandback": own.random_bool(0.5),
                "allowedCommands": ["usage"],
            },
            "offerHuman": true,
            "userCancelKeywords": [CANCEL],
        },
    });
    if rng.random_bool(0.4) {
        settings["hitl"]["escalationDefaults"]["autoAckText"] = json!("Somebody looks at it.");
    }
    if rng.random_bool(0.5) {
        settings["flowRouter"] = json!({"mode": "detector", "prompt": "Choose."});
    }
    for hook in ["beforeLLM", "beforeResponse", "onResponse"] {
        if rng.random_bool(0.5) {
            settings[hook] = json!({"$fn": true});
        }
    }
    settings
}

/// A flow hands off to later flows only, so that it ends.
fn steps(rng: &mut SmallRng, later: &[String]) -> Arc<[Step]> {
    let mut steps = Vec::new();
    for _ in 0..rng.random_range(1..9) {
        match rng.random_range(0..40) {
            0..5 => steps.push(Step::Say),
            5..9 => steps.push(Step::Ask {
                reminds: rng.random_bool(0.4),
            }),
            9..14 => steps.push(Step::Confirm {
                seconds: rng.random_range(2..60),
                reminds: rng.random_bool(0.4),
            }),
            14..18 => steps.push(Step::Tool(IDEMPOTENT)),
            18..21 => steps.push(Step::Tool(ONCE)),
            21..23 => steps.push(Step::Sleep {
                seconds: rng.random_range(1..60),
            }),
            23..27 => {
                steps.push(Step::Escalate {
                    seconds: rng.random_range(5..200),
                    approvals: rng.random_range(1..3),
                });
                if rng.random_bool(0.3) {
                    steps.push(Step::Tool(IDEMPOTENT));
                }
                if rng.random_bool(0.9) {
                    let seconds = rng.random_bool(0.3).then(|| rng.random_range(2..100));
                    steps.push(Step::AwaitAdmin { seconds });
                }
            }
            27..31 => steps.push(Step::Workflow {
                id: WORKFLOWS[rng.random_range(0..WORKFLOWS.len())],
                waits: rng.random_bool(0.8),
                seconds: rng.random_bool(0.6).then(|| rng.random_range(1..60)),
                cancels: rng.random_bool(0.5),
            }),
            31..34 => steps.push(Step::Count),
            34 => steps.push(Step::ConsumeQueued),
            39 => {
                let mut own = rng.clone();
                steps.push(Step::Takeover {
                    seconds: own.random_range(5..200),
                });
                if own.random_bool(0.3) {
                    steps.push(Step::Say);
                }
                if own.random_bool(0.8) {
                    let seconds = own.random_bool(0.3).then(|| own.random_range(2..100));
                    steps.push(Step::AwaitHandback { seconds });
                }
            }
            35 => steps.push(Step::Nonsense),
            36 | 37 if !later.is_empty() => {
                let to = &later[rng.random_range(0..later.len())];
                steps.push(Step::Handoff(to.clone()));
            }
            38 => steps
                .push([Step::End, Step::Fail, Step::EndSession][rng.random_range(0..3)].clone()),
            _ => steps.push(Step::Count),
        }
    }
    steps.into()
}
