//! The doors from outside: a router over a runtime and a store in memory. One binary, so that it
//! links once.

mod ancestry;
mod approvers;
mod audit;
mod callbacks;
mod console;
mod console_history;
mod control;
mod decisions;
mod discovery;
mod escalation;
mod forks;
mod host_options;
mod idempotency;
mod inbox;
mod keys;
mod links;
mod mock_providers;
mod models;
mod nesting;
mod parked;
mod request_bodies;
mod sensitive;
mod spans;
mod storage;
mod stream_bounds;
mod streams;
mod supervisor;
mod tenancy;
mod test_seams;
mod test_server;
mod tools;
mod votes;
mod webhooks;
mod workspace_isolation;
mod workspaces;
