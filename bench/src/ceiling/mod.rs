//! What this machine could do at best with the same data.

pub(crate) mod commits;
pub(crate) mod echo;
