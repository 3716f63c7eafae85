//! The HTTP API: parses requests, calls the use cases of the application layer, renders their outcomes.
//!
//! Owns routes, request bodies, status codes, streams, the OpenAPI document, the mount of the
//! console, and the web chat. Does not decide, admit or store anything, and never calls the runtime. JSON shapes come
//! from the wire crate's projections, never from here.
//!
//! Every request passes the same checks in the same order: rate, credential, scope, an earlier
//! response, shape, visibility, state. Only [`problem`] assigns an HTTP status to an error.
//!
//! Invariants:
//! - An anonymous caller cannot find out what exists.
//! - A mutation is completed even when its caller disconnects.
//! - A reader of a log holds a cursor and a bell, nothing else; it can neither slow down a run nor
//!   miss an event.

mod access_log;
mod api;
mod body;
mod caller;
mod connection_key;
mod console;
mod http_metrics;
mod large_requests;
mod mutation;
mod openapi;
mod origin;
mod page_budget;
mod paging;
mod params;
mod path_params;
mod problem;
mod request_permits;
mod response;
mod router;
mod routes;
mod sse;
mod stored_response;
mod streams;
mod trace;
mod verb;
mod web_chat;

pub use api::{ApiConfig, Host, HttpSettings};
pub use connection_key::{ConnectionKey, ConnectionsByKey};
pub use http_metrics::HttpMetrics;
pub use router::router;
pub use tandem_app::runnable_fixtures;
pub use verb::VerbRouter;
