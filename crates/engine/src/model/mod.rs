//! Language models, as far as the law is concerned: which request is the same as which, what an
//! answer is worth, and who may be asked. Nothing here calls anybody.

mod check_answer;
mod key;
pub(crate) mod mock;
mod providers;
mod recover;
mod refusal;

#[cfg(test)]
mod tests;

pub(crate) use check_answer::{AnswerVerdict, CheckedAnswer, check_answer};
pub(crate) use key::rekey_work;
pub use key::{RECIPE, content_key, rekey, semantic_request};
pub use mock::{KEY as MOCK_PROVIDER_KEY, MOCK_PROVIDERS};
pub use providers::{MOCK_PROVIDER, Provider, Providers};
pub(crate) use refusal::redact_prompt;

/// Node types that are of use only where there is a provider.
pub const NODE_TYPES: [&str; 2] = ["core.ai.structuredOutput", "core.llm.chat"];
/// Attempts to get JSON of the wanted shape, the first included.
pub const MAX_ATTEMPTS: u32 = 3;
/// Envelopes one answer of a model may hold: it is read as a whole, so one.
pub const ENVELOPES_PER_TURN: u32 = 1;
/// Questions a model may ask back before it has to go on: none are understood. Nodes ask people.
pub const CLARIFICATION_ROUNDS: u32 = 0;
/// How much larger the output budget is after an answer that was cut off.
pub const BUDGET_MULTIPLIER: u64 = 2;
/// No budget grows beyond this.
pub(crate) const MAX_OUTPUT_TOKENS: u64 = 131_072;
/// Taken for the budget that was too small when neither author nor provider named one.
pub(crate) const ASSUMED_OUTPUT_TOKENS: u64 = 1_024;
/// How long one call may take.
pub(crate) const CALL_TIMEOUT_MS: u64 = 120_000;
