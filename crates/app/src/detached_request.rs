//! A future that completes even if the caller disconnects. Otherwise a commit without a caller
//! would be durable but not announced, and its effects would wait until a lease expires.
//!
//! The future runs inside the request. It becomes a separate task only when the request is dropped
//! before it completes, so nearly all requests avoid the switch to another task.

use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tracing::Instrument;

type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(crate) fn run_to_completion<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> DetachedRequest<T> {
    DetachedRequest {
        future: Some(Box::pin(future)),
        started: false,
    }
}

pub(crate) struct DetachedRequest<T: Send + 'static> {
    /// `None` once it has ended, also by a panic.
    future: Option<BoxedFuture<T>>,
    started: bool,
}

impl<T: Send + 'static> Future for DetachedRequest<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut future = self.future.take().expect("polled after its end");
        self.started = true;
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.future = Some(future);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for DetachedRequest<T> {
    fn drop(&mut self) {
        let rest = self.future.take().filter(|_| self.started);
        // Without a runtime the process is ending; after a restart the work continues from the
        // store.
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(rest.in_current_span());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::AssertUnwindSafe;
    use tokio::sync::oneshot;

    /// A future in two steps: it waits for a signal, then sends one.
    fn future() -> (
        oneshot::Sender<()>,
        oneshot::Receiver<()>,
        DetachedRequest<()>,
    ) {
        let (go, start) = oneshot::channel();
        let (finished, done) = oneshot::channel();
        let future = run_to_completion(async move {
            start.await.expect("the test sends the start signal");
            finished.send(()).expect("the test waits for the end");
        });
        (go, done, future)
    }

    async fn once(future: &mut DetachedRequest<()>) {
        std::future::poll_fn(|cx| {
            assert!(Pin::new(&mut *future).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn started_future_completes_after_drop() {
        let (go, done, mut future) = future();
        once(&mut future).await;
        drop(future);
        go.send(()).expect("it goes on");
        done.await.expect("the future completed");
    }

    #[tokio::test]
    async fn unpolled_future_is_dropped() {
        let (go, done, future) = future();
        drop(future);
        assert!(go.send(()).is_err());
        assert!(done.await.is_err());
    }

    #[tokio::test]
    async fn panicked_future_is_not_spawned_again() {
        let mut future = run_to_completion(async { panic!("a fault") });
        let polled = std::future::poll_fn(|cx| {
            let poll = AssertUnwindSafe(|| Pin::new(&mut future).poll(cx));
            Poll::Ready(std::panic::catch_unwind(poll).is_err())
        });
        assert!(polled.await);
        assert!(future.future.is_none());
    }
}
