//! Numbers of an agent's configuration, with their defaults and ranges.

use crate::object_reader::ObjectReader;
use serde::{Deserialize, Serialize};

const MAX_TOKENS: u64 = 1_000_000_000_000;
const HOUR_MS: u64 = 3_600_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLimits {
    /// Rounds of model and tools in one turn.
    pub max_tool_iterations: u32,
    pub max_working_memory: usize,
    pub max_episodic_memory: usize,
    pub session_idle_timeout_minutes: u64,
    pub rate_limit_per_user_per_minute: u32,
    pub max_inbound_concurrency: usize,
    /// Steps of one turn.
    pub max_recursion_steps: u32,
    pub max_effects_per_turn: u32,
    pub max_handoffs_per_turn: u32,
    pub max_journal_records: u32,
    /// Tokens that the model calls of one session may use.
    pub max_session_tokens: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTimeouts {
    pub llm_ms: u64,
    pub tool_ms: u64,
    pub stt_ms: u64,
    pub tts_ms: u64,
    pub hook_ms: u64,
}

/// Retries of calls that may be repeated: exponential, with jitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetrySpec {
    pub max_retries: u32,
    pub base_delay_ms: u64,
    pub jitter_ms: u64,
}

pub(super) fn limits(config: &ObjectReader<'_>) -> AgentLimits {
    let number = |name, range, default| config.integer(name, range).unwrap_or(default);
    let flow = config.section("flowLimits");
    let flow_number = |name, range, default| flow.integer(name, range).unwrap_or(default) as u32;
    AgentLimits {
        max_tool_iterations: number("maxToolIterations", 0..=50, 3) as u32,
        max_working_memory: number("maxWorkingMemory", 0..=1_000, 20) as usize,
        max_episodic_memory: number("maxEpisodicMemory", 0..=100, 3) as usize,
        session_idle_timeout_minutes: number("sessionIdleTimeoutMinutes", 1..=525_600, 15),
        rate_limit_per_user_per_minute: number("rateLimitPerUserPerMinute", 1..=1_000_000, 20)
            as u32,
        max_inbound_concurrency: number("maxInboundConcurrency", 1..=100_000, 32) as usize,
        max_recursion_steps: number("maxRecursionSteps", 1..=10_000, 50) as u32,
        max_effects_per_turn: flow_number("maxEffectsPerTurn", 1..=10_000, 200),
        max_handoffs_per_turn: flow_number("maxHandoffsPerTurn", 0..=100, 8),
        max_journal_records: flow_number("maxJournalRecords", 10..=100_000, 10_000),
        max_session_tokens: config.integer("maxSessionTokens", 1..=MAX_TOKENS),
    }
}

pub(super) fn timeouts(config: &ObjectReader<'_>) -> AgentTimeouts {
    let ms = |name, default| config.integer(name, 1..=HOUR_MS).unwrap_or(default);
    AgentTimeouts {
        llm_ms: ms("llmTimeoutMs", 30_000),
        tool_ms: ms("toolTimeoutMs", 10_000),
        stt_ms: ms("sttTimeoutMs", 15_000),
        tts_ms: ms("ttsTimeoutMs", 15_000),
        hook_ms: ms("hookTimeoutMs", 5_000),
    }
}

pub(super) fn retry(config: &ObjectReader<'_>) -> RetrySpec {
    RetrySpec {
        max_retries: config.integer("maxIdempotentRetries", 0..=20).unwrap_or(2) as u32,
        base_delay_ms: config
            .integer("retryBaseDelayMs", 0..=HOUR_MS)
            .unwrap_or(75),
        jitter_ms: config.integer("retryJitterMs", 0..=HOUR_MS).unwrap_or(25),
    }
}
