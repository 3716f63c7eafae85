//! Random agents: their settings, and flows as lists of steps.

use crate::sim::EPOCH;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::{AgentSpec, LoadedFlow};
use tandem_record::Timestamp;

pub(super) const AGENTS: [&str; 2] = ["desk", "shop"];
/// The transport and the addresses of admins who write commands.
pub(super) const ADMIN_TRANSPORT: &str = "backoffice";
pub(super) const ADMINS: [&str; 3] = ["ana", "ben", "cleo"];
pub(super) const HUMAN: &str = "human please";
pub(super) const CANCEL: &str = "forget it";
/// Where flows open bridges to, each the chat of one admin. The last one may not write there.
const TARGETS: [&str; 3] = ["front", "back", "watch"];
const UNKNOWN_TARGET: &str = "nowhere";
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
    Bridge(Bridge),
    AwaitInput {
        seconds: Option<u64>,
        behavior: &'static str,
        filters: bool,
    },
    StopBridge,
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

/// How a flow opens a bridge.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    pub(super) target: &'static str,
    pub(super) mode: &'static str,
    pub(super) replace: bool,
    pub(super) seconds: Option<u64>,
}

/// Releases of the code of every agent. Processes of both run at the same time.
pub(super) const RELEASES: usize = 2;

/// One agent in one release: the same settings but for its schedules, other code.
pub(super) struct ScriptedAgent {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) flows: BTreeMap<String, Arc<[Step]>>,
}

impl ScriptedAgent {
    pub(super) fn random(id: &str, rng: &mut SmallRng) -> [Self; RELEASES] {
        let names: Vec<String> = (0..FLOWS).map(|n| format!("f{n}")).collect();
        let settings = settings(rng);
        let planned = planned_schedules(rng);
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
            let mut settings = settings.clone();
            settings["schedules"] = schedules(&planned, release);
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
    let targets: serde_json::Map<String, Value> = TARGETS
        .into_iter()
        .zip(ADMINS)
        .map(|(key, admin)| {
            let target = json!({"transport": ADMIN_TRANSPORT, "address": admin, "label": key});
            (key.to_owned(), target)
        })
        .collect();
    // Of takeovers, so that they leave the other settings of a seed as they were.
    let mut own = rng.clone();
    let mut settings = json!({
        "prompt": "You are the desk.",
        "model": {"provider": "scripted", "script": {"answers": []}},
        "adminAuth": {"tokens": [], "chat": chat, "roles": {
            "boss": ["hitl.escalation.resolve", "hitl.escalation.view", "hitl.proxy.input", "hitl.proxy.stop"],
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
        "scheduler": {
            "maxConcurrentRuns": rng.random_range(1..4),
            "claimTtlSeconds": rng.random_range(5..60),
        },
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
            "targets": targets,
            "userCancelKeywords": [CANCEL],
        },
    });
    if rng.random_bool(0.4) {
        settings["hitl"]["escalationDefaults"]["autoAckText"] = json!("Somebody looks at it.");
    }
    if rng.random_bool(0.3) {
        settings["scheduler"]["perMinute"] = json!(rng.random_range(1..4));
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
        match rng.random_range(0..46) {
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
            40..46 => bridge(rng, &mut steps),
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

/// A schedule of an agent's file. Releases may differ in it.
struct PlannedSchedule {
    key: String,
    definition: Value,
    /// The second release has another definition, or none.
    changes: bool,
    is_removed: bool,
}

fn planned_schedules(rng: &mut SmallRng) -> Vec<PlannedSchedule> {
    (0..rng.random_range(0..3))
        .map(|n| PlannedSchedule {
            key: format!("s{n}"),
            definition: random_schedule(EPOCH, rng),
            changes: rng.random_bool(0.4),
            is_removed: rng.random_bool(0.1),
        })
        .collect()
}

fn schedules(planned: &[PlannedSchedule], release: usize) -> Value {
    let is_kept = |planned: &&PlannedSchedule| release == 0 || !planned.is_removed;
    let kept = planned.iter().filter(is_kept).map(|planned| {
        let mut definition = planned.definition.clone();
        if planned.changes {
            definition["metadata"] = json!({ "release": release });
        }
        (planned.key.clone(), definition)
    });
    Value::Object(kept.collect())
}

/// For one user, who may be unknown, or for a segment; by the minute or once within the next minutes.
pub(super) fn random_schedule(now: Timestamp, rng: &mut SmallRng) -> Value {
    let trigger = match rng.random_range(0..3) {
        0 => {
            let at = now.plus_ms(rng.random_range(1_000..180_000));
            json!({"type": "once", "runAt": at.rfc3339()})
        }
        1 => json!({"type": "cron", "expr": "* * * * *"}),
        _ => json!({"type": "cron", "expr": "*/2 * * * *"}),
    };
    let target = match rng.random_range(0..8) {
        0 => json!({"kind": "segment", "segment": {"type": "active_since", "activeSinceDays": 1}}),
        1 => json!({"kind": "segment", "segment": {"type": "custom_query",
            "query": "displayName = \"ulla\" or not externalUserId = \"uwe\""}}),
        2 => json!({"kind": "segment", "segment": {"type": "tag", "tag": "nobody"}}),
        3 | 4 => json!({"kind": "segment", "campaignId": "news", "segment": {"type": "all"}}),
        _ => json!({"kind": "user", "userExternalId": pick(rng, &["ulla", "uwe", "stranger"])}),
    };
    json!({
        "flowId": format!("f{}", rng.random_range(0..FLOWS)),
        "trigger": trigger,
        "target": target,
        "allowSessionBootstrap": rng.random_bool(0.6),
        "onMissed": match rng.random_bool(0.5) {
            true => json!({"policy": "skip"}),
            false => json!({"policy": "catch_up", "maxRuns": rng.random_range(1..4)}),
        },
        "onActiveFlow": pick(rng, &["skip", "skip", "preempt"]),
        "input": {"by": "schedule"},
    })
}

/// A bridge, what the flow does while it relays, and perhaps its end.
fn bridge(rng: &mut SmallRng, steps: &mut Vec<Step>) {
    steps.push(Step::Bridge(Bridge {
        target: match rng.random_range(0..10) {
            0 => UNKNOWN_TARGET,
            roll => TARGETS[usize::from(roll > 5) + usize::from(roll > 8)],
        },
        mode: pick(rng, &["mirror", "mirror", "shadow"]),
        replace: rng.random_bool(0.4),
        seconds: rng.random_bool(0.3).then(|| rng.random_range(5..120)),
    }));
    for _ in 0..rng.random_range(0..4) {
        steps.push(match rng.random_range(0..10) {
            0 => Step::Say,
            1 => Step::Ask { reminds: false },
            2 => Step::Sleep {
                seconds: rng.random_range(1..30),
            },
            _ => Step::AwaitInput {
                seconds: rng.random_bool(0.7).then(|| rng.random_range(2..60)),
                behavior: pick(rng, &["continue", "end_proxy", "fallback_escalation"]),
                filters: rng.random_bool(0.5),
            },
        });
    }
    if rng.random_bool(0.6) {
        steps.push(Step::StopBridge);
    }
}
