//! The work a node does at once, without effects.

use super::start::NodeOutcome;
use crate::node::{self, Kind};
use crate::run::draft::DecisionDraft;
use crate::run::questions::Question;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{ErrorInfo, Object, Seq, Size};

impl DecisionDraft<'_> {
    /// The work a node does at once, without effects.
    pub(in crate::run) fn perform(
        &mut self,
        ix: usize,
        inputs: Object,
        started: Seq,
    ) -> NodeOutcome {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        match &node.kind {
            Kind::Passthrough => NodeOutcome::Complete(inputs),
            Kind::Delay { configured } => {
                let run_inputs = &self.run.request().inputs;
                let ms = node::delay_ms(&inputs, run_inputs, *configured);
                let ms = ms.expect("checked when the node was prepared");
                NodeOutcome::Complete(Object::from_iter([("waitedMs".into(), json!(ms))]))
            }
            Kind::Fail { code, message } => NodeOutcome::Fail(ErrorInfo::new(code, message)),
            Kind::SetVariable { name, value } => {
                let value = value.clone().or_else(|| inputs.get("value").cloned());
                if def.channels.contains_key(name) {
                    return NodeOutcome::Fail(ErrorInfo::new(
                        "validation_error",
                        format!("{name:?} is a channel; write it with core.channelWrite"),
                    ));
                }
                if let Some(next) = &value {
                    let replaced = self.run.variables().get(name).map(Size::of);
                    if let Err(error) = self.admit_growth(next, replaced) {
                        return NodeOutcome::Fail(error);
                    }
                }
                self.set_variable(name, value.clone(), &node.id, started);
                NodeOutcome::Complete(Object::from_iter(value.map(|v| ("value".to_owned(), v))))
            }
            Kind::GetVariable { name } => {
                if let Err(denied) = self.run.check_channel_access(ix, name) {
                    return NodeOutcome::Fail(denied);
                }
                let value = self.run.variable(name).cloned().unwrap_or(Value::Null);
                NodeOutcome::Complete(Object::from_iter([("value".to_owned(), value)]))
            }
            Kind::ChannelWrite(config) => self.channel_write(ix, config, inputs, started),
            Kind::ApprovalGate(gate) => {
                let shown = self.run.shown_inputs(ix, &inputs);
                let is_masked = gate.shows_inputs() && *shown != inputs;
                NodeOutcome::Ask(Box::new(Question {
                    kind: "approval".to_owned(),
                    data: gate.data(self.run.id(), &node.id, &shown, &|text| {
                        self.run.render_template(text, self.cx.work)
                    }),
                    resume_schema: gate.interrupt_settings.answer_document(),
                    timeout_ms: gate.interrupt_settings.rejects_after_ms(),
                    status: None,
                    low_confidence: None,
                    hidden: gate.artifact(&inputs).filter(|_| is_masked),
                }))
            }
            Kind::ClarificationGate(gate) => NodeOutcome::Ask(Box::new(Question {
                kind: "clarification".to_owned(),
                data: gate.data(&|text| self.run.render_template(text, self.cx.work)),
                resume_schema: gate.interrupt_settings.answer_document(),
                timeout_ms: gate.interrupt_settings.rejects_after_ms(),
                status: None,
                low_confidence: None,
                hidden: None,
            })),
            Kind::GenericInterrupt(open) => NodeOutcome::Ask(Box::new(Question {
                kind: open.kind.clone(),
                data: open.data.clone(),
                resume_schema: open.interrupt_settings.answer_document(),
                timeout_ms: open.interrupt_settings.rejects_after_ms(),
                status: None,
                low_confidence: None,
                hidden: None,
            })),
            Kind::Memory(config) => self.perform_memory_node(ix, config, started),
            Kind::ConversationGate(gate) => {
                let (_, conversation) = self.run.next_question(ix);
                NodeOutcome::Ask(Box::new(Question {
                    kind: "conversation.exchange".to_owned(),
                    data: gate.data(&conversation),
                    resume_schema: None,
                    timeout_ms: gate.interrupt_settings.rejects_after_ms(),
                    status: None,
                    low_confidence: None,
                    hidden: None,
                }))
            }
            Kind::Supervisor(config) => self.supervise(ix, config, &inputs, started),
            Kind::ChatFlow(_) => self.recorded_flow(ix),
            Kind::Dispatch(_) => self.dispatch(ix),
            Kind::Conformance(kind) => kind.perform(self, ix, inputs, started),
            Kind::Loop(_)
            | Kind::Http(_)
            | Kind::Model(_)
            | Kind::Tool(_)
            | Kind::Pack
            | Kind::SubWorkflow(_)
            | Kind::Gated { .. } => {
                unreachable!("{} is not performed at once", node.type_id)
            }
        }
    }
}
