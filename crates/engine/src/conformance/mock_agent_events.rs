//! The protocol's mock agent: emits its events in the order the contract fixes.

use super::mock_agent::MockAgent;
use crate::ids::tool_call_id;
use crate::run::{DecisionDraft, NodeOutcome};
use tandem_record::{AgentEventKind, Cause, Object, Seq};

impl DecisionDraft<'_> {
    pub(super) fn perform_mock_agent(
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
}
