//! The HTTP api: what arrives over HTTP becomes a command or a read of the runtime, and what the
//! runtime says becomes an answer.
//!
//! Owns routes, request bodies, status codes, streams, idempotency keys, the description of the
//! API, and the mount of the console. Refuses to know how a run is decided or stored; shapes that
//! leave the house come from the wire crate's projections, never from here.
//!
//! Every request passes the same checks in the same order: rate, credential, scope, an earlier
//! answer, shape, visibility, state. Only [`problem`] knows which status an error has.
//!
//! Invariants:
//! - An anonymous caller learns nothing about what exists.
//! - A deed is carried to its end even when its caller hangs up.
//! - A reader of a log holds a cursor and a bell, nothing else; it can neither slow a run down nor
//!   miss an event.

mod access_log;
mod api;
mod body;
mod caller;
mod console;
mod detached_request;
mod fixtures;
mod follow;
mod http_metrics;
mod idempotency;
mod key_use;
mod known_secrets;
mod large_requests;
mod mutation;
mod openapi;
mod paging;
mod params;
mod path_params;
mod problem;
mod request_permits;
mod resolve_interrupt;
mod response;
mod router;
mod routes;
mod sse;
mod stored_response;
mod streams;
mod trace;
mod verb;

pub use api::{ApiConfig, Host, HttpSettings};
pub use fixtures::runnable_fixtures;
pub use http_metrics::HttpMetrics;
pub use router::router;
pub use verb::VerbRouter;
