//! Tests with packs in text format, assembled for each test.

mod calls;
mod fixtures;
mod folders;
mod loading;
mod modules;
