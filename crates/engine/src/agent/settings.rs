//! The keys of an agent's configuration. An unknown one is an error, so that a misspelt setting is
//! not ignored silently.

use crate::node::settings::{Setting, list_of, map_of, object, unknown_keys, value};
use crate::object_reader::FieldProblems;
use serde_json::Value;

const AGENT: &[Setting] = &[
    value("prompt"),
    value("context"),
    value("outputSchema"),
    value("language"),
    value("modality"),
    list_of("tools", TOOL),
    map_of("commands", COMMAND),
    value("onResponse"),
    value("beforeLLM"),
    value("beforeResponse"),
    object("hooks", &[value("onError")]),
    map_of("flows", FLOW),
    value("flowCommand"),
    object("flowRouter", ROUTER),
    object("hitl", HITL),
    object("adminAuth", ADMIN_AUTH),
    map_of("schedules", SCHEDULE),
    object("scheduler", SCHEDULER),
    value("singleUser"),
    value("welcomeMessage"),
    value("fallbackReply"),
    value("rateLimitMessage"),
    value("overloadMessage"),
    value("maxToolIterations"),
    value("maxWorkingMemory"),
    value("maxEpisodicMemory"),
    value("sessionIdleTimeoutMinutes"),
    value("rateLimitPerUserPerMinute"),
    value("maxInboundConcurrency"),
    value("llmTimeoutMs"),
    value("toolTimeoutMs"),
    value("sttTimeoutMs"),
    value("ttsTimeoutMs"),
    value("hookTimeoutMs"),
    value("maxIdempotentRetries"),
    value("retryBaseDelayMs"),
    value("retryJitterMs"),
    value("maxRecursionSteps"),
    object("flowLimits", FLOW_LIMITS),
    value("ttsVoice"),
    object("speech", SPEECH),
    value("finalizationStrategy"),
    value("transports"),
    object("http", &[value("allow")]),
    object("model", MODEL),
    object("extractionModel", MODEL),
    object("inbound", &[value("debounceMs"), value("maxWaitMs")]),
    value("agentMode"),
    value("onNewMessage"),
    value("onDivergence"),
    value("strict"),
    value("redaction"),
    object("consent", &[value("stopKeywords"), value("startKeywords")]),
    object("hours", HOURS),
    value("workflows"),
    value("profileTool"),
    value("maxSessionTokens"),
];

const SCHEDULER: &[Setting] = &[
    value("enabled"),
    value("timezone"),
    value("executor"),
    value("pollIntervalMs"),
    value("claimTtlSeconds"),
    value("maxConcurrentRuns"),
    value("perMinute"),
    object("defaultOnMissed", ON_MISSED),
    value("tools"),
];

const ON_MISSED: &[Setting] = &[value("policy"), value("maxRuns"), value("maxAgeSeconds")];

/// The fields of one schedule, wherever it is written.
pub(super) const SCHEDULE: &[Setting] = &[
    value("flowId"),
    object("trigger", &[value("type"), value("expr"), value("runAt")]),
    object(
        "target",
        &[
            value("kind"),
            value("userExternalId"),
            value("sessionId"),
            value("campaignId"),
            object(
                "segment",
                &[
                    value("type"),
                    value("activeSinceDays"),
                    value("tag"),
                    value("query"),
                ],
            ),
        ],
    ),
    value("allowSessionBootstrap"),
    object("onMissed", ON_MISSED),
    value("onActiveFlow"),
    value("metadata"),
    value("input"),
];

const TOOL: &[Setting] = &[
    value("name"),
    value("description"),
    value("parameters"),
    value("before"),
    value("handler"),
    value("after"),
    value("kind"),
    value("returns"),
    value("failTimes"),
    value("url"),
    value("idempotent"),
    value("approval"),
];

const COMMAND: &[Setting] = &[
    value("description"),
    value("access"),
    value("args"),
    value("handler"),
    value("flow"),
];

const FLOW: &[Setting] = &[
    value("run"),
    value("description"),
    value("inputSchema"),
    object("asTool", &[value("alias")]),
];

const ROUTER: &[Setting] = &[
    value("mode"),
    value("prompt"),
    value("outputSchema"),
    value("minConfidence"),
    value("field"),
    value("fallback"),
];

const HITL: &[Setting] = &[
    object("confirmDefaults", CONFIRM),
    object("escalationDefaults", ESCALATION),
    object("asyncPendingPolicy", PENDING),
    map_of("targets", TARGET),
    object("takeover", TAKEOVER),
    value("humanKeyword"),
    value("humanMode"),
    value("offerHuman"),
    value("userCancelKeywords"),
    object("escalationContext", ESCALATION_CONTEXT),
    list_of("notify", &[value("transport"), value("address")]),
];

const ESCALATION_CONTEXT: &[Setting] = &[
    value("messages"),
    value("summary"),
    value("profile"),
    value("answers"),
];

const CONFIRM: &[Setting] = &[
    value("timeoutSeconds"),
    value("positiveKeywords"),
    value("negativeKeywords"),
    value("unrecognized"),
    value("maxReprompts"),
    value("timeoutBehavior"),
];

const ESCALATION: &[Setting] = &[
    value("timeoutSeconds"),
    value("fallbackMode"),
    value("autoAckText"),
    value("queue"),
    value("claimStopsTimeout"),
    value("outsideHoursText"),
    value("countOpenHoursOnly"),
];

const PENDING: &[Setting] = &[
    value("behavior"),
    value("ackText"),
    value("ackMinIntervalSeconds"),
    value("maxQueued"),
];

const TARGET: &[Setting] = &[
    value("transport"),
    value("address"),
    value("label"),
    value("allowedActors"),
    value("fallbackTarget"),
    object("hours", HOURS),
];

const TAKEOVER: &[Setting] = &[
    value("adapter"),
    value("allowedCommands"),
    value("maxSeconds"),
    value("repromptOnHandback"),
    value("onExternalReply"),
    value("idleHandbackSeconds"),
];

const HOURS: &[Setting] = &[value("timezone"), value("week"), value("holidays")];

const ADMIN_AUTH: &[Setting] = &[
    list_of("tokens", &[value("hash"), value("actorId"), value("role")]),
    list_of(
        "chat",
        &[
            value("transport"),
            value("address"),
            value("actorId"),
            value("role"),
        ],
    ),
    value("roles"),
    value("resolveActor"),
    value("can"),
    value("builtin"),
];

const FLOW_LIMITS: &[Setting] = &[
    value("maxEffectsPerTurn"),
    value("maxHandoffsPerTurn"),
    value("maxJournalRecords"),
];

const MODEL: &[Setting] = &[
    value("provider"),
    value("script"),
    value("model"),
    value("baseUrl"),
    value("apiKeyEnv"),
    value("temperature"),
    value("maxTokens"),
];

const SPEECH: &[Setting] = &[
    value("provider"),
    value("baseUrl"),
    value("apiKeyEnv"),
    value("transcriptionModel"),
    value("synthesisModel"),
    value("format"),
    value("transcript"),
    value("fail"),
];

pub(super) fn report_unknown(config: &Value, problems: &FieldProblems) {
    let Value::Object(given) = config else { return };
    for problem in unknown_keys("an agent", AGENT, given) {
        problems.report(problem.path, problem.message);
    }
}
