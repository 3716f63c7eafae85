//! Around every request: a span, a trace context, one line in the log, two metrics. A panic in a
//! handler is counted and answered.
//!
//! The line names the key by its public id and the route by its template. It never holds a
//! credential, an idempotency key, a query or a body.

use crate::api::Shared;
use crate::kept::Keeping;
use crate::large_requests;
use crate::problem::Problem;
use crate::trace::Trace;
use crate::verb;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tandem_access::{Identity, Scope};
use tokio::task::JoinError;
use tower::{Layer, Service};
use tracing::Instrument as _;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What is learned about the caller on the way in, for the line written on the way out.
#[derive(Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<Known>>);

#[derive(Clone, Default)]
struct Known {
    key_id: Option<Arc<str>>,
    scope: Option<Scope>,
}

impl Noted {
    pub(crate) fn caller(&self, identity: &Identity, scope: Option<Scope>) {
        *self.0.lock() = Known {
            key_id: Some(Arc::clone(&identity.key_id)),
            scope,
        };
    }
}

/// Around every route. A layer of its own kind: what wraps every request is not boxed more often
/// than once.
#[derive(Clone)]
pub(crate) struct Observe(pub(crate) Shared);

impl<S> Layer<S> for Observe {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed {
            inner,
            doors: Arc::clone(&self.0),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Observed<S> {
    inner: S,
    doors: Shared,
}

impl<S> Service<Request> for Observed<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The one that is ready goes; its clone stays and is asked anew.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        Box::pin(observe(Arc::clone(&self.doors), ready, request))
    }
}

async fn observe<S>(
    doors: Shared,
    mut next: S,
    mut request: Request,
) -> Result<Response, Infallible>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>
        + Send
        + 'static,
{
    let began = Instant::now();
    let trace = Trace::of(request.headers());
    let noted = Noted::default();
    request.extensions_mut().insert(trace.clone());
    request.extensions_mut().insert(noted.clone());
    let keeping = Keeping::of(&mut request);
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
    let is_large = large_requests::is_large(request.headers());
    let handler = async move { next.call(request).await }.instrument(span.clone());
    let handled = match is_large {
        true => {
            let request = large_requests::run_on(&doors.large_requests, handler);
            request.await.map_err(panic_payload)
        }
        false => AssertUnwindSafe(handler).catch_unwind().await,
    };
    let mut response = match handled {
        Ok(Ok(response)) => response,
        Err(cause) => {
            doors.runtime.metrics().panics.inc();
            Problem::internal(&panic_message(&*cause)).into_response()
        }
    };
    if let (Some(keeping), Some(refused)) = (keeping, response.extensions_mut().remove()) {
        // What happens rarely is kept out of a future that is made for every request.
        Box::pin(keeping.keep(&doors, refused)).await;
    }
    let headers = response.headers_mut();
    headers.insert(TRACEPARENT, trace.header());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Answers belong to their caller, unless a route says otherwise.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let elapsed = began.elapsed();
    let status = response.status();
    doors.metrics.answered(&method, &route, status, elapsed);
    let _inside = span.enter();
    let Known { key_id, scope } = noted.0.lock().clone();
    tracing::info!(
        key_id = key_id.as_deref(),
        scope = scope.map(Scope::as_str),
        %method,
        route,
        status = status.as_u16(),
        latency_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "answered"
    );
    Ok(response)
}

/// The panic that ended a task. A task cancelled by the runtime's shutdown has none.
fn panic_payload(ended: JoinError) -> Box<dyn Any + Send> {
    match ended.try_into_panic() {
        Ok(payload) => payload,
        Err(_) => Box::new("the server is stopping"),
    }
}

/// What a panic said, for the log.
fn panic_message(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| cause.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a handler panicked".to_owned())
}
