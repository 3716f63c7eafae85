//! Commands that are not a server.

pub(crate) mod check;
mod forks;
pub(crate) mod keys;
pub(crate) mod run;
pub(crate) mod runs;
mod table;
mod timeline;
