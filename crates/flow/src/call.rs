//! The futures that methods of `ctx` return.

use crate::filter::{AdminInput, Filter, FilterContext, InputDecision};
use crate::outcome::{FlowStop, ProxyOutcome};
use crate::state::{Request, RequestId, SharedState};
use serde_json::{Value, json};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// An effect or a call of the context. It is performed when it is awaited, never before.
#[must_use = "an effect is performed only when it is awaited; one that is dropped fails the run"]
pub struct ContextCall<T> {
    state: SharedState,
    progress: Progress,
    /// What decides about input while the flow waits here.
    filter: Option<Filter>,
    read: fn(Option<Value>) -> Result<T, FlowStop>,
}

enum Progress {
    Made(Request),
    Awaited(RequestId),
    Done,
}

impl<T> ContextCall<T> {
    pub(crate) fn new(
        state: SharedState,
        request: Request,
        read: fn(Option<Value>) -> Result<T, FlowStop>,
    ) -> Self {
        Self {
            state,
            progress: Progress::Made(request),
            filter: None,
            read,
        }
    }
}

impl ContextCall<ProxyOutcome> {
    /// Decides about each text of an admin before it is forwarded. The function reads and does nothing else: what it
    /// changes of captured variables is not durable. When it fails nothing is forwarded and the wait goes on.
    pub fn before_forward<F, D>(mut self, filter: F) -> Self
    where
        F: Fn(AdminInput, FilterContext) -> D + Send + Sync + 'static,
        D: Future<Output = Result<InputDecision, FlowStop>> + Send + 'static,
    {
        if let Progress::Made(Request::Effect { effect, .. }) = &mut self.progress {
            effect["processBeforeForward"] = json!({ "$fn": true });
        }
        self.filter = Some(Filter::new(filter));
        self
    }
}

impl<T> Future for ContextCall<T> {
    type Output = Result<T, FlowStop>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut state = this.state.lock();
        match std::mem::replace(&mut this.progress, Progress::Done) {
            Progress::Made(request) => match state.request(request) {
                Ok(id) => {
                    if let Some(filter) = this.filter.take() {
                        state.set_filter(id, filter);
                    }
                    this.progress = Progress::Awaited(id);
                    Poll::Pending
                }
                Err(closing) => closing.map(|()| Err(FlowStop::Closed)),
            },
            Progress::Awaited(_) if state.is_closing() => Poll::Ready(Err(FlowStop::Closed)),
            Progress::Awaited(id) => match state.take_answer(id) {
                Some(Ok(value)) => Poll::Ready((this.read)(value)),
                Some(Err(error)) => Poll::Ready(Err(FlowStop::Thrown(error))),
                None => {
                    this.progress = Progress::Awaited(id);
                    Poll::Pending
                }
            },
            Progress::Done => Poll::Pending,
        }
    }
}

impl<T> Drop for ContextCall<T> {
    fn drop(&mut self) {
        match &self.progress {
            Progress::Made(Request::Effect { helper, .. }) => self.state.lock().forget(helper),
            Progress::Awaited(id) => self.state.lock().withdraw(*id),
            // A call of the context that was not made has no consequence.
            Progress::Made(Request::Host { .. }) | Progress::Done => {}
        }
    }
}

impl<T> fmt::Debug for ContextCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextCall").finish_non_exhaustive()
    }
}
