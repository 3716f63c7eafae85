//! A small icon for each node state, so that a state is not shown by colour alone.
//!
//! Drawn on a 14 by 14 field, stroked by the stylesheet.

use super::NodeState;

pub(super) fn path(state: NodeState) -> Option<&'static str> {
    match state {
        NodeState::Defined => None,
        NodeState::Pending => Some("M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0 -9"),
        NodeState::Running => Some("M4.5 2.5L11 7L4.5 11.5Z"),
        NodeState::Completed => Some("M2.5 7.5L5.5 10.5L11.5 3.5"),
        NodeState::Failed => Some("M3 3L11 11M11 3L3 11"),
        NodeState::Suspended => Some("M4.5 3V11M9.5 3V11"),
        NodeState::Skipped => Some("M2 3.5L6 7L2 10.5M7.5 3.5L11.5 7L7.5 10.5"),
        NodeState::Cancelled => Some("M7 2a5 5 0 1 0 0 10a5 5 0 1 0 0 -10M3.5 3.5L10.5 10.5"),
    }
}
