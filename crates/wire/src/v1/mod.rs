//! OpenWOP v1.

mod agent;
pub mod announcement;
pub mod bundle;
pub mod capabilities;
mod chunk;
pub mod diff;
pub mod error;
mod mask;
mod model;
mod payload;
pub mod project;
pub mod question;
mod recorded;
pub mod spans;
pub mod stream;
pub mod time;
pub mod webhook;
