//! OpenWOP v1.

mod agent;
pub mod bundle;
pub mod callback;
pub mod capabilities;
mod chunk;
pub mod diff;
pub mod error;
mod flow_record;
mod flow_texts;
pub mod interrupt;
mod mask;
mod memory_and_lineage;
mod model;
mod payload;
pub mod project;
pub mod spans;
pub mod stream;
pub mod time;
pub mod webhook;
