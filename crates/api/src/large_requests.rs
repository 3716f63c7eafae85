//! Requests with large bodies run on a separate runtime, which the host gives a low priority.
//! Parsing, checking and redacting a megabyte takes milliseconds without an await point; on the
//! shared workers it would delay all other callers.

use axum::http::{HeaderMap, header};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

/// Bodies above this size are large.
pub(crate) const LARGE_BYTES: usize = 32 * 1024;

/// Whether the body is large or of unknown length.
pub(crate) fn is_large(headers: &HeaderMap) -> bool {
    match headers.get(header::CONTENT_LENGTH) {
        Some(length) => length
            .to_str()
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
            .is_none_or(|bytes| bytes > LARGE_BYTES),
        None => headers.contains_key(header::TRANSFER_ENCODING),
    }
}

/// Runs the handler on that runtime. It is aborted when the caller disconnects, like a handler on
/// the connection's task.
pub(crate) fn run_on<T: Send + 'static>(
    runtime: &Handle,
    handler: impl Future<Output = T> + Send + 'static,
) -> LargeRequest<T> {
    LargeRequest(runtime.spawn(handler))
}

pub(crate) struct LargeRequest<T>(JoinHandle<T>);

impl<T> Future for LargeRequest<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for LargeRequest<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).expect("a header value");
        HeaderMap::from_iter([(name, value)])
    }

    #[test]
    fn bodies_of_unknown_or_unreadable_length_are_large() {
        assert!(!is_large(&HeaderMap::new()));
        assert!(!is_large(&headers(header::CONTENT_LENGTH, "32768")));
        assert!(is_large(&headers(header::CONTENT_LENGTH, "32769")));
        assert!(is_large(&headers(header::CONTENT_LENGTH, "many")));
        assert!(is_large(&headers(header::TRANSFER_ENCODING, "chunked")));
    }

    #[tokio::test]
    async fn handler_is_aborted_when_its_caller_leaves() {
        let (alive, dropped) = tokio::sync::oneshot::channel::<()>();
        let request = run_on(&Handle::current(), async move {
            std::future::pending::<()>().await;
            drop(alive);
        });
        tokio::task::yield_now().await;
        drop(request);
        assert!(dropped.await.is_err(), "the handler's state was dropped");
    }
}
