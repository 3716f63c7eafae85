//! Commands that are not a server.

pub(crate) mod agents;
mod ancestry;
mod argument_value;
pub(crate) mod audit;
pub(crate) mod chat;
pub(crate) mod check;
mod first_key;
mod forks;
pub(crate) mod groups;
pub(crate) mod inbox;
pub(crate) mod keys;
pub(crate) mod operate;
pub(crate) mod parked;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod storage;
mod table;
mod timeline;
