//! Around every request: a span, a trace context, one line in the log, two metrics. A panic in a
//! handler is counted and answered, and no problem leaves with a secret of the host.
//!
//! The log line names the key by its public id and the route by its template. It never contains a
//! credential, an idempotency key, a query or a body.

use crate::api::SharedState;
use crate::large_requests;
use crate::problem::{self, Problem};
use crate::stored_response::RefusalRecorder;
use crate::trace::Trace;
use crate::verb;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method};
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
use tandem_record::TenantId;
use tokio::task::JoinError;
use tower::{Layer, Service};
use tracing::Instrument as _;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Collects the caller while the request is handled, for what follows at its end: the log line, and the
/// budget its response counts against.
#[derive(Clone, Default)]
pub(crate) struct AccessLogContext(Arc<Mutex<LoggedCaller>>);

#[derive(Clone, Default)]
struct LoggedCaller {
    key_id: Option<Arc<str>>,
    tenant: Option<TenantId>,
    scope: Option<Scope>,
}

impl AccessLogContext {
    pub(crate) fn set_caller(&self, identity: &Identity, scope: Option<Scope>) {
        *self.0.lock() = LoggedCaller {
            key_id: Some(Arc::clone(&identity.key_id)),
            tenant: Some(identity.tenant.clone()),
            scope,
        };
    }
}

/// Wraps every route. A separate layer type, so that the response future is boxed only once.
#[derive(Clone)]
pub(crate) struct AccessLogLayer(pub(crate) SharedState);

impl<S> Layer<S> for AccessLogLayer {
    type Service = AccessLogService<S>;

    fn layer(&self, inner: S) -> AccessLogService<S> {
        AccessLogService {
            inner,
            api: Arc::clone(&self.0),
        }
    }
}

#[derive(Clone)]
pub(crate) struct AccessLogService<S> {
    inner: S,
    api: SharedState,
}

impl<S> Service<Request> for AccessLogService<S>
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
        // The service that is ready handles the request; its clone replaces it.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        Box::pin(handle_and_log(Arc::clone(&self.api), ready, request))
    }
}

async fn handle_and_log<S>(
    api: SharedState,
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
    let log_context = AccessLogContext::default();
    request.extensions_mut().insert(trace.clone());
    request.extensions_mut().insert(log_context.clone());
    let refusal_recorder = RefusalRecorder::for_request(&mut request);
    let route = request.extensions().get::<MatchedPath>().map_or_else(
        || "none".to_owned(),
        |path| verb::public_template(path.as_str()),
    );
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
            let request = large_requests::run_on(&api.large_requests, handler);
            request.await.map_err(panic_payload)
        }
        false => AssertUnwindSafe(handler).catch_unwind().await,
    };
    let mut response = match handled {
        Ok(Ok(response)) => response,
        Err(cause) => {
            api.app.metrics().panics.inc();
            Problem::internal(&panic_message(&*cause)).into_response()
        }
    };
    if let (Some(refusal_recorder), Some(refused)) =
        (refusal_recorder, response.extensions_mut().remove())
    {
        // Boxed because it is rare: the future of every request stays small.
        Box::pin(refusal_recorder.store(&api, refused)).await;
    }
    let mut response = problem::redact(&api.app, response);
    let LoggedCaller {
        key_id,
        tenant,
        scope,
    } = log_context.0.lock().clone();
    if let Some(tenant) = tenant.filter(|_| method == Method::GET) {
        response = api.pages.count(&tenant, response);
    }
    let headers = response.headers_mut();
    headers.insert(TRACEPARENT, trace.header());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Responses are private to their caller, unless a route sets the header itself.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let elapsed = began.elapsed();
    let status = response.status();
    api.metrics
        .record_response(&method, &route, status, elapsed);
    let _inside = span.enter();
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

/// The payload of the panic that ended a task. A task cancelled by the runtime's shutdown has none.
fn panic_payload(ended: JoinError) -> Box<dyn Any + Send> {
    match ended.try_into_panic() {
        Ok(payload) => payload,
        Err(_) => Box::new("the server is stopping"),
    }
}

/// The message of a panic, for the log.
fn panic_message(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| cause.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a handler panicked".to_owned())
}
