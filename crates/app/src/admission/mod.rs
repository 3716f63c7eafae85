//! Admission rules of requests: who may use test hooks, which URLs may be called, which parents may be
//! claimed, which texts may be stored. Every entry point gets them with the use case.

pub(crate) mod callback;
mod engine_version;
mod known_secrets;
mod mock_provider;
mod parent_claim;

pub(crate) use known_secrets::items;
