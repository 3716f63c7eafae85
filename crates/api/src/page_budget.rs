//! Bounds the memory of large JSON responses that read a log: how many pages of one tenant are built at once,
//! and how many bytes of finished ones wait for their readers.
//!
//! A reader that does not read keeps its page in memory until the connection is closed. Its tenant waits for
//! the bytes; others do not.

use crate::problem::Problem;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tandem_record::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pages of one tenant that are built at once; the store has as many readers.
const MAX_BUILDS: usize = 4;
/// Bytes of one tenant's finished pages that wait to be sent.
const MAX_UNSENT_BYTES: usize = 64 * 1024 * 1024;
/// Pages up to this size are not counted.
const SMALL_PAGE_BYTES: usize = 64 * 1024;
/// How long a request waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct PageBudget {
    tenants: Mutex<HashMap<TenantId, Arc<TenantBudget>>>,
}

struct TenantBudget {
    builds: Arc<Semaphore>,
    unsent_bytes: Arc<Semaphore>,
}

impl Default for TenantBudget {
    fn default() -> Self {
        Self {
            builds: Arc::new(Semaphore::new(MAX_BUILDS)),
            unsent_bytes: Arc::new(Semaphore::new(MAX_UNSENT_BYTES)),
        }
    }
}

impl PageBudget {
    /// Builds a page and responds with it. The page holds its bytes of the budget until it is sent.
    pub(crate) async fn respond(
        &self,
        tenant: &TenantId,
        page: impl Future<Output = Result<Value, Problem>>,
    ) -> Result<Response, Problem> {
        let budget = self.of(tenant);
        let _build = wait(&budget.builds, 1).await?;
        let body = Bytes::from(page.await?.to_string());
        let unsent_bytes = match body.len() {
            0..=SMALL_PAGE_BYTES => None,
            bytes => {
                let bytes = u32::try_from(bytes.min(MAX_UNSENT_BYTES)).unwrap_or(u32::MAX);
                Some(wait(&budget.unsent_bytes, bytes).await?)
            }
        };
        let body = Body::new(PageBody {
            body: Full::new(body),
            _unsent_bytes: unsent_bytes,
        });
        Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
    }

    fn of(&self, tenant: &TenantId) -> Arc<TenantBudget> {
        let mut tenants = self.tenants.lock();
        if let Some(budget) = tenants.get(tenant) {
            return Arc::clone(budget);
        }
        // A budget that nobody uses is the same as a new one.
        tenants.retain(|_, budget| budget.is_used());
        Arc::clone(tenants.entry(tenant.clone()).or_default())
    }
}

impl TenantBudget {
    fn is_used(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
            || self.unsent_bytes.available_permits() < MAX_UNSENT_BYTES
            || self.builds.available_permits() < MAX_BUILDS
    }
}

async fn wait(semaphore: &Arc<Semaphore>, permits: u32) -> Result<OwnedSemaphorePermit, Problem> {
    let acquired = Arc::clone(semaphore).acquire_many_owned(permits);
    match tokio::time::timeout(MAX_WAIT, acquired).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(Problem::busy()),
    }
}

/// A page on its way to its reader.
struct PageBody {
    body: Full<Bytes>,
    _unsent_bytes: Option<OwnedSemaphorePermit>,
}

impl HttpBody for PageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(bytes: usize) -> Value {
        json!("x".repeat(bytes))
    }

    #[tokio::test(start_paused = true)]
    async fn tenant_with_unsent_pages_is_refused_and_others_are_served() {
        let budget = PageBudget::default();
        let (a, b) = (TenantId::new("a"), TenantId::new("b"));
        let half = MAX_UNSENT_BYTES / 2;
        let respond = |tenant: &TenantId, bytes: usize| {
            let tenant = tenant.clone();
            let budget = &budget;
            async move { budget.respond(&tenant, async { Ok(page(bytes)) }).await }
        };
        let first = respond(&a, half).await.expect("room for one");
        let refused = respond(&a, half).await.expect_err("no room for two");
        assert_eq!(refused.status(), 503);
        assert!(
            respond(&a, 1_000).await.is_ok(),
            "small pages are not counted"
        );
        assert!(respond(&b, half).await.is_ok(), "another tenant");
        drop(first);
        assert!(respond(&a, half).await.is_ok(), "room again");
    }

    #[tokio::test]
    async fn unused_budgets_are_dropped() {
        let budget = PageBudget::default();
        for name in ["a", "b", "c"] {
            let tenant = TenantId::new(name);
            let sent = budget.respond(&tenant, async { Ok(page(10)) }).await;
            assert!(sent.is_ok());
        }
        assert_eq!(budget.tenants.lock().len(), 1);
    }
}
