//! What is done to the server, one file each.

pub(crate) mod crew;
pub(crate) mod crowd;
pub(crate) mod neighbour;
pub(crate) mod past;
pub(crate) mod people;
pub(crate) mod runs;
pub(crate) mod start;
pub(crate) mod streams;
