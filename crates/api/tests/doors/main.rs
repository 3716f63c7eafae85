//! The doors from outside: a router over a runtime and a store in memory. One binary, so that it
//! links once.

mod ancestry;
mod audit;
mod bodies;
mod callbacks;
mod console;
mod control;
mod crew;
mod decisions;
mod discovery;
mod escalation;
mod forks;
mod idempotency;
mod inbox;
mod keys;
mod links;
mod mock_providers;
mod models;
mod nesting;
mod parked;
mod past;
mod people;
mod seams;
mod sensitive;
mod spans;
mod stage;
mod storage;
mod stream_bounds;
mod streams;
mod switches;
mod tenancy;
mod tools;
mod webhooks;
mod workspace_walk;
mod workspaces;
