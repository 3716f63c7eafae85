//! Performs the host's outgoing calls: HTTP calls of nodes, mails, calls of models, tools, pack nodes and
//! nodes in Rust, webhook deliveries, models and speech of conversations, and the check that a
//! secret can be resolved.
//!
//! An effect is already recorded under an id that never changes; this crate attempts it once and
//! returns the outcome. It does not decide about retries, does not write to the log of a run, and
//! does not depend on the store or the engine. Calls of conversations are the exception about
//! retries: they are repeated within their timeout, as their caller's settings say.
//!
//! Invariants:
//! - Every outgoing connection goes to an address that the [`UrlGuard`] has checked. Names are
//!   resolved once, by [`GuardedResolver`], and the connection uses the checked addresses.
//!   Redirects are not followed and no proxy is used, since both could lead to unchecked addresses.
//! - Every call has the effect's id as `Idempotency-Key`, so that the called service can recognise
//!   a second attempt.
//! - No credential reaches an error or a log: not from a header, not from a URL, not echoed in a
//!   response. The address of a model provider or a tool server does not either.

mod address;
mod chat;
mod client;
mod credentials;
mod event_stream;
mod failure;
mod guard;
mod http;
mod mcp;
mod model;
mod pack;
mod perform;
mod request;
mod response;
mod rust_node;
mod secrets;
mod smtp;
mod trace;
mod webhook;

#[cfg(test)]
mod tests;

pub use chat::{
    ApiKeyError, BreakerSettings, ChatModel, ChatPieces, ChatReply, ChatRequest, ChatSettings,
    ChatTool, CircuitBreakers, CircuitChange, CircuitCounts, CircuitState, HostedSpeech,
    LocalScripts, NotedCall, NotedMessage, ProviderFailure, RetrySettings, ScriptChooser,
    ScriptMemory, ScriptedSpeech, SpeechAudio, SpeechFormat, SpeechLimits, SpeechSettings,
    SpeechToText, SynthesisRequest, TextToSpeech, TranscriptionRequest, read_api_key,
};
pub use client::{ClientError, GuardedResolver, guarded_client};
pub use guard::{Rejected, UrlGuard};
pub use http::{CallLimits, HttpCaller};
pub use mcp::{McpServer, McpServers};
pub use model::{
    HostedProvider, MAX_PROGRAM, MockEntry, MockProgram, ModelApi, ModelCaller, SchemaMode, Script,
    ScriptChoice, ScriptError, ScriptProgress, ScriptedAnswer, ScriptedCall, ScriptedToolCall,
    outcome_of_answer, unprogrammed_answer,
};
pub use pack::PackCaller;
pub use perform::Performer;
pub use rust_node::{NodeCall, RustNode, RustNodes};
pub use secrets::Secrets;
pub use smtp::{Mail, SmtpCaller, SmtpFailure, SmtpSecurity, SmtpServer, is_mail_address};
pub use trace::outgoing_trace;
pub use webhook::WebhookCaller;
