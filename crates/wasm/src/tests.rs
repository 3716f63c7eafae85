//! Packs written down in text and assembled for a test each.

mod calls;
mod fixtures;
mod folders;
mod loading;
mod modules;
