//! The rules for language models: which requests are equal, how an answer is checked, and which
//! providers may be called. Nothing here makes a call.

mod check_answer;
mod key;
mod providers;
mod recover;
mod refusal;

#[cfg(test)]
mod tests;

pub use crate::conformance::{MOCK_PROVIDER, MOCK_PROVIDER_KEY, MOCK_PROVIDERS};
pub(crate) use check_answer::{AnswerVerdict, CheckedAnswer, check_answer};
pub(crate) use key::rekey_work;
pub use key::{RECIPE, content_key, rekey, semantic_request};
pub use providers::{Provider, Providers};
pub(crate) use refusal::redact_prompt;

/// Node types that need a provider.
pub const NODE_TYPES: [&str; 2] = ["core.ai.structuredOutput", "core.llm.chat"];
/// Attempts to get JSON of the required shape, including the first.
pub const MAX_ATTEMPTS: u32 = 3;
/// Envelopes in one answer of a model: the answer is read as a whole, so one.
pub const ENVELOPES_PER_TURN: u32 = 1;
/// Questions a model may ask before it must continue: none are supported. Nodes ask people.
pub const CLARIFICATION_ROUNDS: u32 = 0;
/// Factor by which the output budget grows after a truncated answer.
pub const BUDGET_MULTIPLIER: u64 = 2;
/// The maximum output budget.
pub(crate) const MAX_OUTPUT_TOKENS: u64 = 131_072;
/// The budget assumed to be too small when neither author nor provider named one.
pub(crate) const ASSUMED_OUTPUT_TOKENS: u64 = 1_024;
/// How long one call may take.
pub(crate) const CALL_TIMEOUT_MS: u64 = 120_000;
