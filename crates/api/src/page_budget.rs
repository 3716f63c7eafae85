//! Bounds the memory of responses that their readers do not read: how many large pages are built at once,
//! and how many bytes of finished ones wait to be sent. Tenants share both; see [`FairShares`].
//!
//! The bytes themselves hold their share of the budget, so it is released when the connection has written
//! them or is closed, wherever they are buffered until then. A request that waits for room holds no page.

use crate::problem::Problem;
use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tandem_app::{FairShares, HeldShare, MAX_WAIT, SMALL_PAGE_BYTES};
use tandem_record::TenantId;
use tokio::time::Instant;

/// Pages that are built at once.
const MAX_BUILDS: usize = 8;
const MAX_BUILDS_OF_TENANT: usize = 4;
/// Bytes handed to the connection at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// A counted page must be read within this time, and longer only at this rate.
const READ_TIME: Duration = Duration::from_secs(60);
const MIN_BYTES_PER_SECOND: usize = 16 * 1024;

pub(crate) struct PageBudget {
    builds: Arc<FairShares>,
    unsent_bytes: Arc<FairShares>,
}

/// Marks a response whose body is already counted.
#[derive(Clone)]
struct Counted;

/// The bytes of a page, with their share of the budget.
struct CountedBytes<T> {
    bytes: T,
    _share: Arc<HeldShare>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for CountedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Bytes that hold the share until the last reference to them is dropped.
pub(crate) fn counted(bytes: impl AsRef<[u8]> + Send + 'static, share: &Arc<HeldShare>) -> Bytes {
    Bytes::from_owner(CountedBytes {
        bytes,
        _share: Arc::clone(share),
    })
}

impl PageBudget {
    pub(crate) fn new(unsent_bytes: &Arc<FairShares>) -> Self {
        Self {
            builds: FairShares::new(MAX_BUILDS, MAX_BUILDS_OF_TENANT),
            unsent_bytes: Arc::clone(unsent_bytes),
        }
    }

    /// Builds a page of JSON and responds with it. `build` is called again when the first page had to be
    /// dropped because there was no room for it.
    pub(crate) async fn respond<F>(
        &self,
        tenant: &TenantId,
        build: impl Fn() -> F,
    ) -> Result<Response, Problem>
    where
        F: Future<Output = Result<Vec<u8>, Problem>>,
    {
        let until = Instant::now() + MAX_WAIT;
        let mut page = self.build(tenant, until, &build).await?;
        let mut share = None;
        if page.len() > SMALL_PAGE_BYTES {
            share = self.try_hold(tenant, page.len());
            if share.is_none() {
                let bytes = page.len();
                drop(page);
                let waited = self.hold(tenant, bytes, until).await;
                let held = waited.ok_or_else(Problem::busy)?;
                page = self.build(tenant, until, &build).await?;
                // The log may have grown in the meantime.
                if !held.try_grow(page.len()) {
                    return Err(Problem::busy());
                }
                share = Some(held);
            }
        }
        page.shrink_to_fit();
        let response = ([(header::CONTENT_TYPE, "application/json")], page).into_response();
        Ok(match share {
            Some(share) => counted_response(response, share),
            None => response,
        })
    }

    /// The right to read a log into memory. A caller that holds it must not wait for its reader.
    pub(crate) async fn begin_build(&self, tenant: &TenantId) -> Result<HeldShare, Problem> {
        let until = Instant::now() + MAX_WAIT;
        let build = self.builds.acquire(tenant, 1, until).await;
        build.ok_or_else(Problem::busy)
    }

    async fn build<F>(
        &self,
        tenant: &TenantId,
        until: Instant,
        build: impl Fn() -> F,
    ) -> Result<Vec<u8>, Problem>
    where
        F: Future<Output = Result<Vec<u8>, Problem>>,
    {
        let permit = self.builds.acquire(tenant, 1, until).await;
        let _permit = permit.ok_or_else(Problem::busy)?;
        build().await
    }

    /// Counts the body of a response that was built without the budget. It is refused when there is no
    /// room: it is in memory already, so it must not wait.
    pub(crate) fn count(&self, tenant: &TenantId, response: Response) -> Response {
        let exact = response.body().size_hint().exact();
        let bytes = exact.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if bytes <= SMALL_PAGE_BYTES || response.extensions().get::<Counted>().is_some() {
            return response;
        }
        match self.try_hold(tenant, bytes) {
            Some(share) => counted_response(response, share),
            None => Problem::busy().into_response(),
        }
    }

    /// Room for unsent bytes, if there is any now.
    pub(crate) fn try_hold(&self, tenant: &TenantId, bytes: usize) -> Option<HeldShare> {
        self.unsent_bytes.try_acquire(tenant, bytes)
    }

    /// The same, but waits for room; `None` if there is none until then.
    pub(crate) async fn hold(
        &self,
        tenant: &TenantId,
        bytes: usize,
        until: Instant,
    ) -> Option<HeldShare> {
        self.unsent_bytes.acquire(tenant, bytes, until).await
    }
}

fn counted_response(response: Response, share: HeldShare) -> Response {
    let mut response = response.map(|body| Body::new(PageBody::new(body, share)));
    response.extensions_mut().insert(Counted);
    response
}

/// A counted body on its way to its reader, in small chunks. So the connection asks for the next chunk
/// only after its reader took some bytes, and a reader that is too slow is noticed.
struct PageBody {
    body: Body,
    /// Received from `body` and not yet passed on.
    rest: Bytes,
    share: Arc<HeldShare>,
    read_until: Instant,
}

/// The reader took too long.
#[derive(Debug, thiserror::Error)]
#[error("the reader of a large response is too slow")]
struct SlowReader;

impl PageBody {
    fn new(body: Body, share: HeldShare) -> Self {
        let bytes = body.size_hint().lower();
        let at_rate = Duration::from_secs(bytes / MIN_BYTES_PER_SECOND as u64);
        Self {
            body,
            rest: Bytes::new(),
            share: Arc::new(share),
            read_until: Instant::now() + READ_TIME + at_rate,
        }
    }
}

impl HttpBody for PageBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        if Instant::now() > self.read_until {
            return Poll::Ready(Some(Err(SlowReader.into())));
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = counted(data, &self.share),
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
            }
        }
        let length = self.rest.len().min(CHUNK_BYTES);
        let chunk = self.rest.split_to(length);
        Poll::Ready(Some(Ok(http_body::Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        let mut hint = http_body::SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests;
