//! Commands that are not a server.

pub(crate) mod agents;
mod ancestry;
mod argument_value;
pub(crate) mod audit;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod desk_work;
mod first_key;
mod forks;
pub(crate) mod groups;
pub(crate) mod inbox;
pub(crate) mod keys;
pub(crate) mod operate;
pub(crate) mod parked;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod storage;
mod table;
pub(crate) mod takeover;
mod timeline;
