//! Values a run builds nest no deeper than its log can tell again. What comes from outside is bounded
//! where it enters; what a workflow wraps, round after round, is bounded here.

use super::turn::Turn;
use tandem_record::{ErrorInfo, Event, READABLE, Seq, map_nests_deeper, value_nests_deeper};

/// Levels a value of a run may have. What is left below [`READABLE`] is room for the events that
/// carry it, and for what one node may wrap around it before it is looked at again.
const MAX_KEPT: usize = READABLE - 37;

/// Whether a fact carries a value of the run that nests too deep to be built upon.
pub(super) fn too_deep(event: &Event) -> bool {
    match event {
        Event::NodeCompleted { outputs, .. } => map_nests_deeper(outputs, MAX_KEPT),
        Event::VariableChanged { next, .. } => next
            .as_ref()
            .is_some_and(|value| value_nests_deeper(value, MAX_KEPT)),
        Event::ChannelWritten { value, .. } => value_nests_deeper(value, MAX_KEPT),
        _ => false,
    }
}

impl Turn<'_> {
    /// Ends a run that built a value too deep to keep, before anything is built upon it.
    pub(super) fn fail_if_too_deep(&mut self) -> bool {
        let Some(seq) = self.too_deep.take() else {
            return false;
        };
        let message = format!("a value nests deeper than {MAX_KEPT} levels");
        let error = ErrorInfo::new("value_too_deep", message);
        self.fail_run(error, None, Some::<Seq>(seq));
        true
    }
}
