//! The protocol's mock agent: emits its events in the order the contract fixes.

use super::emitter::AgentEmitter;
use crate::ids::tool_call_id;
use crate::node::MockAgent;
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::NodeOutcome;
use tandem_record::{AgentEventKind, Cause, Object, Seq};

impl DecisionDraft<'_> {
    pub(in crate::run) fn perform_mock_agent(
        &mut self,
        ix: usize,
        config: &MockAgent,
        started: Seq,
    ) -> NodeOutcome {
        let emitter = self
            .run
            .agent_emitter(ix)
            .expect("a mock agent has an agent emitter");
        if let Some(reasoning) = &config.reasoning {
            let (text, chunks) = (reasoning.text.clone(), &reasoning.chunks);
            let cause = Cause::Event(started);
            self.emit_reasoning(&emitter, text, chunks, reasoning.token_count, cause);
        }
        for (i, call) in config.tools.iter().enumerate() {
            let execution = self.run.node(ix).execution;
            let node = &self.run.def.nodes[ix].id;
            let id = tool_call_id(self.run.id(), node, execution, i);
            let called = AgentEventKind::ToolCalled {
                tool: call.tool.clone(),
                call: id.clone(),
                inputs: call.inputs.clone(),
                transport: None,
                principal: None,
            };
            let called = self.emit_agent_event(&emitter, called, started);
            let returned = AgentEventKind::ToolReturned {
                tool: call.tool.clone(),
                call: id,
                outcome: call.outcome.clone(),
                error: call.error.clone(),
                duration_ms: call.duration_ms,
                untrusted: false,
            };
            self.emit_agent_event(&emitter, returned, called);
        }
        if let Some(handover) = &config.handoff {
            let event = AgentEventKind::HandedOff {
                to: handover.to.clone(),
                reason: handover.reason.clone(),
                context: handover.context.clone(),
            };
            let emitter = self.run.as_pinned(ix, &emitter);
            self.emit_agent_event(&emitter, event, started);
        }
        let Some(decision) = &config.decision else {
            return NodeOutcome::Complete(Object::new());
        };
        let (_, question) = self.emit_agent_decision(
            &emitter,
            &decision.decision,
            decision.confidence,
            decision.reasoning.clone(),
            Cause::Event(started),
        );
        match question {
            Some(question) => NodeOutcome::Ask(question),
            None => NodeOutcome::Complete(Object::new()),
        }
    }

    /// Emits reasoning: its chunks, if there are any, then the whole text.
    pub(super) fn emit_reasoning(
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
