//! Given records of a journal, then the events of the run and what readers see of it.

mod fixtures;
mod lifecycle;
mod questions;
