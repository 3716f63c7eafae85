//! The protocol's mock agent: says its lines in the order the contract fixes.

use super::voice::Voice;
use crate::ids::tool_call_id;
use crate::node::MockAgent;
use crate::run::start::Step;
use crate::run::turn::Turn;
use tandem_record::{Cause, Object, Said, Seq};

impl Turn<'_> {
    pub(in crate::run) fn perform_mock(
        &mut self,
        ix: usize,
        config: &MockAgent,
        started: Seq,
    ) -> Step {
        let voice = self.run.voice(ix).expect("a mock agent has a voice");
        if let Some(reasoning) = &config.reasoning {
            let (text, chunks) = (reasoning.text.clone(), &reasoning.chunks);
            let cause = Cause::Event(started);
            self.reason(&voice, text, chunks, reasoning.token_count, cause);
        }
        for (i, call) in config.tools.iter().enumerate() {
            let execution = self.run.state.nodes[ix].execution;
            let node = &self.run.def.nodes[ix].id;
            let id = tool_call_id(self.run.id(), node, execution, i);
            let called = Said::ToolCalled {
                tool: call.tool.clone(),
                call: id.clone(),
                inputs: call.inputs.clone(),
                transport: None,
                principal: None,
            };
            let called = self.say(&voice, called, started);
            let returned = Said::ToolReturned {
                tool: call.tool.clone(),
                call: id,
                outcome: call.outcome.clone(),
                error: call.error.clone(),
                duration_ms: call.duration_ms,
                untrusted: false,
            };
            self.say(&voice, returned, called);
        }
        if let Some(handover) = &config.handoff {
            let said = Said::HandedOff {
                to: handover.to.clone(),
                reason: handover.reason.clone(),
                context: handover.context.clone(),
            };
            let voice = self.run.as_pinned(ix, &voice);
            self.say(&voice, said, started);
        }
        let Some(decision) = &config.decision else {
            return Step::Complete(Object::new());
        };
        let (_, question) = self.agent_decided(
            &voice,
            &decision.decision,
            decision.confidence,
            decision.reasoning.clone(),
            Cause::Event(started),
        );
        match question {
            Some(question) => Step::Ask(question),
            None => Step::Complete(Object::new()),
        }
    }

    /// A reasoning, piece by piece where it came in pieces, then as a whole.
    pub(super) fn reason(
        &mut self,
        voice: &Voice,
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
            let said = Said::ReasoningDelta {
                delta: delta.clone(),
                sequence,
            };
            self.say_caused(voice, said, cause.clone());
        }
        let said = Said::Reasoned {
            // What was streamed is closed by the whole of it.
            reasoning: if verbosity == "summary" && chunks.is_empty() {
                shortened(text)
            } else {
                text
            },
            verbosity,
            token_count,
        };
        self.say_caused(voice, said, cause);
    }
}

/// Tokens of reasoning a summary may have, as advertised, and how many characters one is taken for.
pub const REASONING_TOKEN_LIMIT: usize = 512;
const CHARS_PER_TOKEN: usize = 4;

fn shortened(text: String) -> String {
    match text
        .char_indices()
        .nth(REASONING_TOKEN_LIMIT * CHARS_PER_TOKEN)
    {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
