//! Sets variables, with or without the untrusted mark.

use crate::run::draft::DecisionDraft;
use serde_json::Value;
use tandem_record::{Event, NodeId, Seq};

impl DecisionDraft<'_> {
    pub(crate) fn set_variable(
        &mut self,
        name: &str,
        next: Option<Value>,
        node: &NodeId,
        cause: Seq,
    ) -> Seq {
        let ix = self.run.def.index(node);
        let untrusted = ix.is_some_and(|ix| self.run.passes_on_untrusted(ix, self.cx.work));
        self.set_variable_with_trust(name, next, node, untrusted, cause)
    }

    /// Sets a variable to a value, with or without the untrusted mark.
    pub(in crate::run) fn set_variable_with_trust(
        &mut self,
        name: &str,
        next: Option<Value>,
        node: &NodeId,
        untrusted: bool,
        cause: Seq,
    ) -> Seq {
        let previous = self.run.state.values.variables.get(name).cloned();
        self.emit(
            Event::VariableChanged {
                name: name.to_owned(),
                previous,
                next,
                node: Some(node.clone()),
                untrusted,
            },
            Some(cause),
        )
    }
}
