//! Around every request: a span, a trace context, one line in the log, two metrics.
//!
//! The line names the key by its public id and the route by its template. It never holds a
//! credential, an idempotency key, a query or a body.

use crate::api::Shared;
use crate::trace::Trace;
use crate::verb;
use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderName;
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;
use tandem_access::{Identity, Scope};
use tracing::Instrument as _;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What is learned about the caller on the way in, for the line written on the way out.
#[derive(Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<Option<(Arc<str>, Option<Scope>)>>>);

impl Noted {
    pub(crate) fn caller(&self, identity: &Identity, scope: Option<Scope>) {
        *self.0.lock() = Some((Arc::clone(&identity.key_id), scope));
    }
}

pub(crate) async fn observe(
    State(doors): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let trace = Trace::of(request.headers());
    let noted = Noted::default();
    request.extensions_mut().insert(trace.clone());
    request.extensions_mut().insert(noted.clone());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| verb::outside(path.as_str()));
    let method = request.method().clone();
    let span = tracing::info_span!(
        "request",
        request_id = trace.span_id(),
        trace_id = trace.trace_id()
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    response.headers_mut().insert(TRACEPARENT, trace.header());
    let elapsed = began.elapsed();
    let status = response.status();
    doors.metrics.answered(&method, &route, status, elapsed);
    let _inside = span.enter();
    let caller = noted.0.lock().clone();
    tracing::info!(
        key_id = caller.as_ref().map(|(key, _)| &**key),
        scope = caller.as_ref().and_then(|(_, scope)| scope.map(Scope::as_str)),
        %method,
        route,
        status = status.as_u16(),
        latency_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "answered"
    );
    response
}
