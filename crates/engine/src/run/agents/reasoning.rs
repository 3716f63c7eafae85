//! Records an agent's reasoning, as detailed as the run asks for.

use super::emitter::AgentEmitter;
use crate::run::draft::DecisionDraft;
use tandem_record::{AgentEventKind, Cause};

impl DecisionDraft<'_> {
    /// Emits reasoning: its chunks, if there are any, then the whole text.
    pub(crate) fn emit_reasoning(
        &mut self,
        emitter: &AgentEmitter,
        text: String,
        chunks: &[String],
        token_count: Option<u64>,
        cause: Cause,
    ) {
        let verbosity = self.run.reasoning_verbosity().to_owned();
        if verbosity == "off" {
            return;
        }
        for (sequence, delta) in (0..).zip(chunks) {
            let event = AgentEventKind::ReasoningDelta {
                delta: delta.clone(),
                sequence,
            };
            self.emit_agent_event_with_cause(emitter, event, cause.clone());
        }
        let event = AgentEventKind::Reasoned {
            // Streamed chunks are followed by the whole text.
            reasoning: if verbosity == "summary" && chunks.is_empty() {
                truncate_summary(text)
            } else {
                text
            },
            verbosity,
            token_count,
        };
        self.emit_agent_event_with_cause(emitter, event, cause);
    }
}

/// Limit of tokens in a reasoning summary, as advertised, and the number of characters counted as
/// one token.
pub const REASONING_TOKEN_LIMIT: usize = 512;
const CHARS_PER_TOKEN: usize = 4;

fn truncate_summary(text: String) -> String {
    match text
        .char_indices()
        .nth(REASONING_TOKEN_LIMIT * CHARS_PER_TOKEN)
    {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
