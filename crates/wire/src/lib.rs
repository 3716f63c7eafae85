//! A stand-in for the wire crate, replaced by the real one.

pub mod v1;
