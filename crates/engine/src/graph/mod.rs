//! The graph of a run: conditions on edges, values on ports, readiness, channels. Reads the run's
//! state, never changes it.

pub(crate) mod binding;
pub(crate) mod channel;
pub(crate) mod condition;
pub(crate) mod readiness;
