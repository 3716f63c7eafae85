//! Load scenarios, one file each.

pub(crate) mod agents;
pub(crate) mod conversations;
pub(crate) mod cost;
pub(crate) mod desk;
pub(crate) mod neighbour;
pub(crate) mod past;
pub(crate) mod people;
pub(crate) mod runs;
pub(crate) mod start;
pub(crate) mod streams;
pub(crate) mod waiting_runs;
