//! Approvals and clarifications have their own events besides the general interrupt events. Both
//! are emitted, in a fixed order, whether a gate asks or a supervisor asks through its dispatch
//! node.

use crate::definition::CompiledNode;
use crate::run::draft::DecisionDraft;
use serde_json::{Value, json};
use tandem_record::{Event, Interrupt, Object, Principal};

/// The event emitted between `interrupt.requested` and `node.suspended`.
pub(in crate::run) fn kind_specific_request(
    node: &CompiledNode,
    interrupt: &Interrupt,
) -> Option<Event> {
    let listed = |key: &str| interrupt.data.get(key).and_then(Value::as_array);
    match interrupt.kind.as_str() {
        "approval" => {
            let text = |key: &str| interrupt.data.get(key).and_then(Value::as_str);
            let owned = |key: &str| text(key).unwrap_or_default().to_owned();
            let actions = listed("actions").into_iter().flatten();
            let asking = node.kind.interrupt_settings();
            let required = interrupt
                .data
                .get("requiredApprovals")
                .and_then(Value::as_u64);
            Some(Event::ApprovalRequested {
                node: node.id.clone(),
                interrupt: interrupt.id.clone(),
                artifact_id: owned("artifactId"),
                artifact_type: owned("artifactType"),
                title: owned("title"),
                actions: actions
                    .filter_map(|a| a.as_str().map(str::to_owned))
                    .collect(),
                approvers: asking.map_or_else(Vec::new, |a| a.deciders(0).approvers.clone()),
                required: required.and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
            })
        }
        "clarification" => Some(Event::ClarificationRequested {
            node: node.id.clone(),
            interrupt: interrupt.id.clone(),
            questions: json!(listed("questions")),
        }),
        _ => None,
    }
}

impl DecisionDraft<'_> {
    /// Emits the answers to a clarification before the interrupt is closed.
    pub(in crate::run) fn emit_clarification_resolved(
        &mut self,
        ix: usize,
        answers: &Object,
        by: Option<&Principal>,
    ) {
        let event = Event::ClarificationResolved {
            node: self.run.def.nodes[ix].id.clone(),
            answers: answers.clone(),
            by: by.cloned(),
        };
        self.emit(event, self.run.question_seq(ix));
    }
}
