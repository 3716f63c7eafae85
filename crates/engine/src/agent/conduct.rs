//! How an agent behaves outside of flows: hooks, fixed texts, bursts, modes, consent.

use crate::object_reader::ObjectReader;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tandem_record::Masking;
pub use tandem_record::conversation::AgentMode;

const DEFAULT_FALLBACK: &str = "Sorry, I hit an unexpected issue. Please try again in a moment.";
const DEFAULT_RATE_LIMIT: &str =
    "You are sending messages faster than I can answer. Please wait a moment.";
const MAX_STOP_WORDS: usize = 100;
const MINUTE_MS: u64 = 60_000;
const DEFAULT_MAX_WAIT_MS: u64 = 5_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModalityPolicy {
    Text,
    Voice,
    #[default]
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finalization {
    #[default]
    Buffered,
    Streaming,
}

/// What a message does that arrives during a classic model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewMessagePolicy {
    #[default]
    Queue,
    Interrupt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDivergence {
    #[default]
    Park,
    Fail,
    Restart,
}

/// How texts appear in events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextRedaction {
    #[default]
    Full,
    Hashed,
    Omitted,
}

impl TextRedaction {
    /// What stands in place of a text.
    pub fn masking(self) -> Masking {
        match self {
            Self::Full => Masking::Passthrough,
            Self::Hashed => Masking::Hash,
            Self::Omitted => Masking::Omit,
        }
    }
}

/// Which hooks the author wrote, and what their failure means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    pub before_llm: bool,
    pub before_response: bool,
    pub on_response: bool,
    pub before_llm_on_error: HookFailurePolicy,
    pub before_response_on_error: HookFailurePolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFailurePolicy {
    #[default]
    Continue,
    /// Fails closed: nothing is sent.
    Cancel,
}

/// Fixed texts to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTexts {
    pub welcome: Option<String>,
    pub fallback_reply: String,
    pub rate_limit: String,
    pub overload: Option<String>,
}

/// Messages of one sender within the window become one turn. Zero turns it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboundWindow {
    pub debounce_ms: u64,
    pub max_wait_ms: u64,
}

/// Words with which a user refuses or allows messages they did not cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    pub stop_keywords: Vec<String>,
    pub start_keywords: Vec<String>,
}

pub(super) fn modality(config: &ObjectReader<'_>) -> ModalityPolicy {
    let among = [
        ("text", ModalityPolicy::Text),
        ("voice", ModalityPolicy::Voice),
        ("auto", ModalityPolicy::Auto),
    ];
    config.choice("modality", &among).unwrap_or_default()
}

pub(super) fn finalization(config: &ObjectReader<'_>) -> Finalization {
    let among = [
        ("buffered", Finalization::Buffered),
        ("streaming", Finalization::Streaming),
    ];
    config
        .choice("finalizationStrategy", &among)
        .unwrap_or_default()
}

pub(super) fn agent_mode(config: &ObjectReader<'_>) -> AgentMode {
    let among = [
        ("auto", AgentMode::Auto),
        ("draft_only", AgentMode::DraftOnly),
        ("off", AgentMode::Off),
    ];
    config.choice("agentMode", &among).unwrap_or_default()
}

pub(super) fn on_new_message(config: &ObjectReader<'_>) -> NewMessagePolicy {
    let among = [
        ("queue", NewMessagePolicy::Queue),
        ("interrupt", NewMessagePolicy::Interrupt),
    ];
    config.choice("onNewMessage", &among).unwrap_or_default()
}

pub(super) fn on_divergence(config: &ObjectReader<'_>) -> OnDivergence {
    let among = [
        ("park", OnDivergence::Park),
        ("fail", OnDivergence::Fail),
        ("restart", OnDivergence::Restart),
    ];
    config.choice("onDivergence", &among).unwrap_or_default()
}

pub(super) fn redaction(config: &ObjectReader<'_>) -> TextRedaction {
    let among = [
        ("full", TextRedaction::Full),
        ("hashed", TextRedaction::Hashed),
        ("omitted", TextRedaction::Omitted),
    ];
    config.choice("redaction", &among).unwrap_or_default()
}

/// `hooks.onError` is one policy for both hooks, or one for each.
pub(super) fn hooks(config: &ObjectReader<'_>) -> Hooks {
    let among = [
        ("continue", HookFailurePolicy::Continue),
        ("cancel", HookFailurePolicy::Cancel),
    ];
    let settings = config.section("hooks");
    let (before_llm, before_response) = match settings.get("onError") {
        Some(Value::Object(_)) => {
            let each = settings.section("onError");
            let policy = |hook: &str| each.choice(hook, &among).unwrap_or_default();
            (policy("beforeLLM"), policy("beforeResponse"))
        }
        _ => {
            let both = settings.choice("onError", &among).unwrap_or_default();
            (both, both)
        }
    };
    Hooks {
        before_llm: config.function("beforeLLM"),
        before_response: config.function("beforeResponse"),
        on_response: config.function("onResponse"),
        before_llm_on_error: before_llm,
        before_response_on_error: before_response,
    }
}

pub(super) fn texts(config: &ObjectReader<'_>) -> AgentTexts {
    let or = |name: &str, default: &str| config.text(name).unwrap_or_else(|| default.to_owned());
    AgentTexts {
        welcome: config.text("welcomeMessage"),
        fallback_reply: or("fallbackReply", DEFAULT_FALLBACK),
        rate_limit: or("rateLimitMessage", DEFAULT_RATE_LIMIT),
        overload: config.text("overloadMessage"),
    }
}

pub(super) fn inbound(config: &ObjectReader<'_>) -> InboundWindow {
    let settings = config.section("inbound");
    let ms = |name, default| settings.integer(name, 0..=MINUTE_MS).unwrap_or(default);
    let debounce_ms = ms("debounceMs", 0);
    let max_wait_ms = ms("maxWaitMs", DEFAULT_MAX_WAIT_MS.max(debounce_ms));
    if max_wait_ms < debounce_ms {
        settings.report("maxWaitMs", "must not be below debounceMs");
    }
    InboundWindow {
        debounce_ms,
        max_wait_ms,
    }
}

pub(super) fn consent(config: &ObjectReader<'_>) -> Option<Consent> {
    let settings = config.object("consent")?;
    let stop_keywords = settings
        .texts("stopKeywords", MAX_STOP_WORDS)
        .unwrap_or_default();
    if stop_keywords.is_empty() {
        settings.report("stopKeywords", "needs at least one word");
    }
    Some(Consent {
        stop_keywords,
        start_keywords: settings
            .texts("startKeywords", MAX_STOP_WORDS)
            .unwrap_or_default(),
    })
}
