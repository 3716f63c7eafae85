//! Limits how deeply values of a run are nested, so that its log stays readable. Values from
//! outside are limited where they enter; values that a workflow wraps in each round are limited
//! here.

use crate::run::draft::DecisionDraft;
use tandem_record::{
    ErrorInfo, Event, MAX_READABLE_NESTING, Seq, map_nests_deeper, value_nests_deeper,
};

/// Maximum nesting of a value of a run. The rest up to [`MAX_READABLE_NESTING`] is reserved for the
/// events that contain it, and for what one node may wrap around it before the next check.
const MAX_VALUE_DEPTH: usize = MAX_READABLE_NESTING - 37;

/// Whether an event contains a value of the run that is nested too deeply.
pub(super) fn too_deep(event: &Event) -> bool {
    match event {
        Event::NodeCompleted { outputs, .. } => map_nests_deeper(outputs, MAX_VALUE_DEPTH),
        Event::VariableChanged { next, .. } => next
            .as_ref()
            .is_some_and(|value| value_nests_deeper(value, MAX_VALUE_DEPTH)),
        Event::ChannelWritten { value, .. } => value_nests_deeper(value, MAX_VALUE_DEPTH),
        _ => false,
    }
}

impl DecisionDraft<'_> {
    /// Fails a run that built a value that is too deep, before the value is used further.
    pub(in crate::run) fn fail_if_too_deep(&mut self) -> bool {
        let Some(seq) = self.usage.too_deep.take() else {
            return false;
        };
        let message = format!("a value nests deeper than {MAX_VALUE_DEPTH} levels");
        let error = ErrorInfo::new("value_too_deep", message);
        self.fail_run(error, None, Some::<Seq>(seq));
        true
    }
}
