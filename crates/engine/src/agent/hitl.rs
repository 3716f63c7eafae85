//! People in the loop: confirmations, escalations, takeover, what happens to messages meanwhile.

use super::hours::{self, OpeningHours};
use super::web_chat::WEB_TRANSPORT;
use crate::flow::effect::EscalationMode;
use crate::flow::{MAX_KEYWORDS, MAX_TIMEOUT_SECONDS};
use crate::object_reader::ObjectReader;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

const MAX_CONTEXT_MESSAGES: u64 = 200;
const MAX_TARGETS: usize = 200;
/// The transport that every host has, for the API and for tests.
const LOOPBACK_TRANSPORT: &str = "loopback";
const MAX_NOTICES: usize = 10;
const MAX_ACTORS: usize = 200;
const MAX_COMMANDS: usize = 200;
const DEFAULT_CONFIRM_MS: u64 = 300_000;
const DEFAULT_ESCALATION_MS: u64 = 86_400_000;

#[derive(Debug, Clone, PartialEq)]
pub struct HitlSpec {
    pub confirm: ConfirmDefaults,
    pub escalation: EscalationDefaults,
    pub async_pending: AsyncPending,
    pub targets: BTreeMap<String, HitlTarget>,
    /// Who is told of each escalation that opens.
    pub notify: Vec<NoticeTarget>,
    pub takeover: TakeoverSpec,
    /// How a user reaches a person without a flow.
    pub human: HumanOffer,
    /// Words with which a user stops waiting for a person.
    pub user_cancel_keywords: Vec<String>,
    /// What an escalation tells its reviewer; absent means nothing.
    pub context: Option<EscalationContext>,
    /// Opening hours of the agent; absent means always.
    pub hours: Option<OpeningHours>,
}

/// What an escalation tells its reviewer besides its own fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EscalationContext {
    /// The last messages.
    pub messages: usize,
    /// What the session is about, if its agent keeps that.
    pub summary: bool,
    pub profile: bool,
    /// What the user answered in the flow.
    pub answers: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmDefaults {
    pub timeout_ms: u64,
    pub positive_keywords: Option<Vec<String>>,
    pub negative_keywords: Option<Vec<String>>,
    pub unrecognized: UnrecognizedReply,
    pub max_reprompts: u32,
    pub timeout_behavior: ConfirmTimeoutBehavior,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnrecognizedReply {
    #[default]
    Reprompt,
    Decline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmTimeoutBehavior {
    #[default]
    Decline,
    EndFlow,
    Throw,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationDefaults {
    pub timeout_ms: u64,
    pub fallback: EscalationFallback,
    /// Sent to the user when an escalation opens.
    pub auto_ack_text: Option<String>,
    /// The desk of escalations that name none.
    pub queue: Option<String>,
    /// The time of an escalation does not run while somebody who claimed it works on it.
    pub claim_stops_timeout: bool,
    /// Sent instead of the other text while nobody is there.
    pub outside_hours_text: Option<String>,
    /// Timeouts of escalations count the hours in which somebody is there.
    pub count_open_hours_only: bool,
}

/// What happens when the requested mode of an escalation is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationFallback {
    Classic,
    #[default]
    EndFlow,
    Retry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncPending {
    pub policy: AsyncPendingPolicy,
    pub ack_text: Option<String>,
    pub ack_min_interval_seconds: u64,
    pub max_queued: usize,
}

/// What happens to a user's message while a person is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsyncPendingPolicy {
    Noop,
    Ack,
    Queue,
}

/// A registered destination that flows name by its key.
#[derive(Debug, Clone, PartialEq)]
pub struct HitlTarget {
    pub transport: String,
    pub address: String,
    pub label: Option<String>,
    /// Ids of the actors whose input counts; absent means everybody with the right.
    pub allowed_actors: Option<Vec<String>>,
    /// Used instead while this one is closed.
    pub fallback_target: Option<String>,
    pub hours: Option<OpeningHours>,
}

/// An address that is told of escalations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeTarget {
    pub transport: String,
    pub address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverSpec {
    /// Where user messages go during a takeover; absent means that there is no takeover.
    pub adapter: Option<TakeoverAdapter>,
    /// Public commands still executed during a takeover.
    pub allowed_commands: Vec<String>,
    pub max_ms: Option<u64>,
    pub reprompt_on_handback: bool,
    pub on_external_reply: bool,
    pub idle_handback_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverAdapter {
    Api,
    Target(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HumanOffer {
    pub keywords: Vec<String>,
    /// The model is offered the tool `talk_to_human`.
    pub offer_tool: bool,
    pub mode: EscalationMode,
}

/// `has_admins` says whether anybody may take a session over.
pub(super) fn hitl(config: &ObjectReader<'_>, has_admins: bool) -> HitlSpec {
    let hitl = config.section("hitl");
    let targets = targets(&hitl);
    HitlSpec {
        confirm: confirm_defaults(&hitl.section("confirmDefaults")),
        escalation: escalation_defaults(&hitl.section("escalationDefaults")),
        async_pending: async_pending(&hitl.section("asyncPendingPolicy")),
        takeover: takeover(&hitl.section("takeover"), &targets, has_admins),
        human: human(&hitl),
        user_cancel_keywords: keywords(&hitl, "userCancelKeywords").unwrap_or_default(),
        context: context(&hitl),
        hours: hours::hours(config),
        notify: notices(&hitl, config),
        targets,
    }
}

fn context(hitl: &ObjectReader<'_>) -> Option<EscalationContext> {
    let settings = hitl.object("escalationContext")?;
    let messages = settings.integer("messages", 0..=MAX_CONTEXT_MESSAGES);
    Some(EscalationContext {
        messages: messages.unwrap_or(10) as usize,
        summary: settings.flag("summary").unwrap_or(true),
        profile: settings.flag("profile").unwrap_or(true),
        answers: settings.flag("answers").unwrap_or(true),
    })
}

fn keywords(section: &ObjectReader<'_>, name: &str) -> Option<Vec<String>> {
    section.texts(name, MAX_KEYWORDS)
}

fn seconds(section: &ObjectReader<'_>, name: &str) -> Option<u64> {
    section.seconds_as_ms(name, MAX_TIMEOUT_SECONDS)
}

fn confirm_defaults(section: &ObjectReader<'_>) -> ConfirmDefaults {
    let unrecognized = [
        ("reprompt", UnrecognizedReply::Reprompt),
        ("decline", UnrecognizedReply::Decline),
    ];
    let behaviors = [
        ("decline", ConfirmTimeoutBehavior::Decline),
        ("end_flow", ConfirmTimeoutBehavior::EndFlow),
        ("throw", ConfirmTimeoutBehavior::Throw),
    ];
    ConfirmDefaults {
        timeout_ms: seconds(section, "timeoutSeconds").unwrap_or(DEFAULT_CONFIRM_MS),
        positive_keywords: keywords(section, "positiveKeywords"),
        negative_keywords: keywords(section, "negativeKeywords"),
        unrecognized: section
            .choice("unrecognized", &unrecognized)
            .unwrap_or_default(),
        max_reprompts: section.integer("maxReprompts", 0..=100).unwrap_or(2) as u32,
        timeout_behavior: section
            .choice("timeoutBehavior", &behaviors)
            .unwrap_or_default(),
    }
}

fn escalation_defaults(section: &ObjectReader<'_>) -> EscalationDefaults {
    let fallbacks = [
        ("classic", EscalationFallback::Classic),
        ("end_flow", EscalationFallback::EndFlow),
        ("retry", EscalationFallback::Retry),
    ];
    EscalationDefaults {
        timeout_ms: seconds(section, "timeoutSeconds").unwrap_or(DEFAULT_ESCALATION_MS),
        fallback: section
            .choice("fallbackMode", &fallbacks)
            .unwrap_or_default(),
        auto_ack_text: section.text("autoAckText"),
        queue: section.text("queue"),
        claim_stops_timeout: section.flag("claimStopsTimeout").unwrap_or_default(),
        outside_hours_text: section.text("outsideHoursText"),
        count_open_hours_only: section.flag("countOpenHoursOnly").unwrap_or_default(),
    }
}

fn async_pending(section: &ObjectReader<'_>) -> AsyncPending {
    let policies = [
        ("noop", AsyncPendingPolicy::Noop),
        ("ack", AsyncPendingPolicy::Ack),
        ("queue", AsyncPendingPolicy::Queue),
    ];
    let ack_text = section.text("ackText");
    let default = match ack_text {
        Some(_) => AsyncPendingPolicy::Ack,
        None => AsyncPendingPolicy::Noop,
    };
    let policy = section.choice("behavior", &policies).unwrap_or(default);
    if policy == AsyncPendingPolicy::Ack && ack_text.is_none() {
        section.report("ackText", "is required when behavior is ack");
    }
    let interval = section.integer("ackMinIntervalSeconds", 0..=MAX_TIMEOUT_SECONDS);
    AsyncPending {
        policy,
        ack_text,
        ack_min_interval_seconds: interval.unwrap_or(0),
        max_queued: section.integer("maxQueued", 1..=1_000).unwrap_or(50) as usize,
    }
}

fn targets(hitl: &ObjectReader<'_>) -> BTreeMap<String, HitlTarget> {
    let section = hitl.section("targets");
    let keys = hitl.entries("targets", MAX_TARGETS);
    let keys: Vec<&str> = keys.into_iter().map(|(key, _)| key).collect();
    let read = keys.iter().filter_map(|key| {
        let target = section.object(key)?;
        let fallback_target = target.text("fallbackTarget");
        if fallback_target
            .as_deref()
            .is_some_and(|name| !keys.contains(&name))
        {
            target.report("fallbackTarget", "is not a key of targets");
        }
        let read = HitlTarget {
            transport: target.required_text("transport"),
            address: target.required_text("address"),
            label: target.text("label"),
            allowed_actors: target.texts("allowedActors", MAX_ACTORS),
            fallback_target,
            hours: hours::hours(&target),
        };
        Some(((*key).to_owned(), read))
    });
    read.collect()
}

/// Each names a transport of the agent, or the loopback transport.
fn notices(hitl: &ObjectReader<'_>, config: &ObjectReader<'_>) -> Vec<NoticeTarget> {
    let known = config.get("transports").and_then(Value::as_object);
    let is_known = |name: &str| {
        name == LOOPBACK_TRANSPORT || known.is_some_and(|known| known.contains_key(name))
    };
    let listed = hitl.objects("notify", MAX_NOTICES);
    let read = listed.iter().map(|entry| {
        let target = NoticeTarget {
            transport: entry.required_text("transport"),
            address: entry.required_text("address"),
        };
        // Visitors of a web page are not told of escalations.
        if !target.transport.is_empty()
            && (!is_known(&target.transport) || target.transport == WEB_TRANSPORT)
        {
            entry.report(
                "transport",
                "is none of the agent's transports that can notify",
            );
        }
        target
    });
    read.collect()
}

fn takeover(
    section: &ObjectReader<'_>,
    targets: &BTreeMap<String, HitlTarget>,
    has_admins: bool,
) -> TakeoverSpec {
    let adapter = match section.text("adapter") {
        None => has_admins.then_some(TakeoverAdapter::Api),
        Some(name) if name == "api" => Some(TakeoverAdapter::Api),
        Some(key) => {
            if !targets.contains_key(&key) {
                section.report("adapter", "is neither api nor a key of targets");
            }
            Some(TakeoverAdapter::Target(key))
        }
    };
    let allowed = section
        .texts("allowedCommands", MAX_COMMANDS)
        .unwrap_or_default();
    let allowed = allowed
        .iter()
        .map(|name| name.trim_start_matches('/').to_lowercase());
    TakeoverSpec {
        adapter,
        allowed_commands: allowed.collect(),
        max_ms: seconds(section, "maxSeconds"),
        reprompt_on_handback: section.flag("repromptOnHandback").unwrap_or_default(),
        on_external_reply: section.flag("onExternalReply").unwrap_or_default(),
        idle_handback_ms: seconds(section, "idleHandbackSeconds"),
    }
}

/// `humanKeyword` is one keyword or a list of them.
fn human(hitl: &ObjectReader<'_>) -> HumanOffer {
    let keyword = "humanKeyword";
    let given = match hitl.get(keyword) {
        Some(Value::Array(_)) => keywords(hitl, keyword),
        _ => hitl.text(keyword).map(|word| vec![word]),
    };
    let modes = [
        ("live_takeover", EscalationMode::LiveTakeover),
        ("async_resolution", EscalationMode::AsyncResolution),
    ];
    let mode = hitl.choice("humanMode", &modes);
    HumanOffer {
        keywords: given.unwrap_or_default(),
        offer_tool: hitl.flag("offerHuman").unwrap_or_default(),
        mode: mode.unwrap_or(EscalationMode::LiveTakeover),
    }
}
