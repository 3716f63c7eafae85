//! Flows written in Rust: what their authors use, and how they are run one effect at a time.
//!
//! A flow is an `async fn(ctx, input)`. Awaiting a method of [`FlowContext`] suspends it at an effect or at a
//! call of the context; [`FlowTask`] polls it by hand, hands out what it awaits, and goes on with the
//! recorded result. So a flow in Rust has the same journal as one in TypeScript, and is run again from it in
//! the same way. This crate performs nothing and stores nothing; its callers compare a run with its journal.
//!
//! Invariants:
//! - An effect is the same data as the TypeScript helper of the same name yields.
//! - A run is a function of its code, its start and what it was handed: time and randomness come from `ctx`.
//! - An await of anything else fails the run at once with `foreign_await`.
//! - A panic fails the run. It never leaves this crate.
//!
//! The code is trusted: nothing bounds its CPU time and memory between two awaits.

mod call;
mod context;
mod definition;
mod draws;
mod filter;
mod options;
mod outcome;
mod state;
mod task;

#[cfg(test)]
mod tests;

pub use call::ContextCall;
pub use context::{FlowContext, SessionKeys};
pub use definition::{RustFlow, is_rust_version};
pub use filter::{AdminInput, FilterContext, InputDecision};
pub use options::{Ask, Confirm, Escalate, ProxyStart, ProxyWait, Wait, WorkflowRun};
pub use outcome::{
    FlowResult, FlowReturn, FlowStop, OpenedEscalation, ProxyOutcome, StartedProxy, StoppedProxy,
    WaitOutcome, WorkflowOutcome,
};
pub use task::FlowTask;
