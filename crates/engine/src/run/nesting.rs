//! Values a run builds nest no deeper than its log can tell again. What comes from outside is bounded
//! where it enters; what a workflow wraps, round after round, is bounded here.

use super::draft::DecisionDraft;
use tandem_record::{
    ErrorInfo, Event, MAX_READABLE_NESTING, Seq, map_nests_deeper, value_nests_deeper,
};

/// Levels a value of a run may have. What is left below [`MAX_READABLE_NESTING`] is room for the events that
/// carry it, and for what one node may wrap around it before it is looked at again.
const MAX_VALUE_DEPTH: usize = MAX_READABLE_NESTING - 37;

/// Whether a fact carries a value of the run that nests too deep to be built upon.
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
    /// Ends a run that built a value too deep to keep, before anything is built upon it.
    pub(super) fn fail_if_too_deep(&mut self) -> bool {
        let Some(seq) = self.too_deep.take() else {
            return false;
        };
        let message = format!("a value nests deeper than {MAX_VALUE_DEPTH} levels");
        let error = ErrorInfo::new("value_too_deep", message);
        self.fail_run(error, None, Some::<Seq>(seq));
        true
    }
}
