//! A deed that is carried to its end even if the caller hangs up. A commit whose caller vanished
//! would otherwise be durable but never announced, and its effects would wait for a lease to run
//! out.
//!
//! The deed runs as part of the request. Only when the request is dropped on the way does it become
//! a task of its own: nearly all requests are spared the hop to another thread.

use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tracing::Instrument;

type Deed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(crate) fn to_the_end<T: Send + 'static>(
    deed: impl Future<Output = T> + Send + 'static,
) -> ToTheEnd<T> {
    ToTheEnd {
        deed: Some(Box::pin(deed)),
        begun: false,
    }
}

pub(crate) struct ToTheEnd<T: Send + 'static> {
    /// Absent once it has ended, also by a panic.
    deed: Option<Deed<T>>,
    begun: bool,
}

impl<T: Send + 'static> Future for ToTheEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut deed = self.deed.take().expect("polled after its end");
        self.begun = true;
        let polled = deed.as_mut().poll(cx);
        if polled.is_pending() {
            self.deed = Some(deed);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for ToTheEnd<T> {
    fn drop(&mut self) {
        let rest = self.deed.take().filter(|_| self.begun);
        // Without a runtime the process is ending, and the store takes up what is left.
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

    /// A deed in two steps: waits to be told, then tells.
    fn deed() -> (oneshot::Sender<()>, oneshot::Receiver<()>, ToTheEnd<()>) {
        let (go, told) = oneshot::channel();
        let (tell, done) = oneshot::channel();
        let deed = to_the_end(async move {
            told.await.expect("somebody says go");
            tell.send(()).expect("somebody waits");
        });
        (go, done, deed)
    }

    async fn once(deed: &mut ToTheEnd<()>) {
        std::future::poll_fn(|cx| {
            assert!(Pin::new(&mut *deed).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn what_was_begun_ends_though_nobody_waits() {
        let (go, done, mut deed) = deed();
        once(&mut deed).await;
        drop(deed);
        go.send(()).expect("it goes on");
        done.await.expect("it came to its end");
    }

    #[tokio::test]
    async fn what_was_not_begun_never_is() {
        let (go, done, deed) = deed();
        drop(deed);
        assert!(go.send(()).is_err());
        assert!(done.await.is_err());
    }

    #[tokio::test]
    async fn what_panicked_is_over() {
        let mut deed = to_the_end(async { panic!("a fault") });
        let polled = std::future::poll_fn(|cx| {
            let poll = AssertUnwindSafe(|| Pin::new(&mut deed).poll(cx));
            Poll::Ready(std::panic::catch_unwind(poll).is_err())
        });
        assert!(polled.await);
        assert!(deed.deed.is_none());
    }
}
