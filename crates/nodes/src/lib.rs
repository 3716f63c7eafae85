//! What the host does to the world: HTTP calls of nodes, calls of models, of tools and of nodes that
//! packs bring, deliveries to webhooks, and proving that a secret can be resolved.
//!
//! An effect arrives already recorded under an id that never changes; this crate attempts it once
//! and says how it went. It decides nothing about retries, writes nothing to any log of a run, and
//! knows no store and no engine.
//!
//! Invariants:
//! - Every outgoing connection goes to an address the [`UrlGuard`] has seen. Names are resolved once,
//!   by [`GuardedResolver`], and the checked addresses are the ones connected to; redirects are
//!   not followed and no proxy is used, since either would go where nobody looked.
//! - Every call carries the effect's id as `Idempotency-Key`, so that a second attempt can be
//!   recognised by whoever is called.
//! - No credential reaches an error or a log: not from a header, not from a URL, not echoed back
//!   in a response. Where a model provider or a tool server is reached reaches neither.

mod address;
mod client;
mod credentials;
mod failure;
mod guard;
mod http;
mod mcp;
mod model;
mod pack;
mod perform;
mod request;
mod response;
mod secrets;
mod trace;
mod webhook;

#[cfg(test)]
mod tests;

pub use client::{ClientError, GuardedResolver, guarded_client};
pub use guard::{Rejected, UrlGuard};
pub use http::{CallLimits, HttpCaller};
pub use mcp::{McpServer, McpServers};
pub use model::{
    HostedProvider, MAX_PROGRAM, MockEntry, MockProgram, ModelApi, ModelCaller, SchemaMode, Script,
    ScriptError, outcome_of_answer, unprogrammed_answer,
};
pub use pack::PackCaller;
pub use perform::Performer;
pub use secrets::Secrets;
pub use trace::outgoing_trace;
pub use webhook::WebhookCaller;
