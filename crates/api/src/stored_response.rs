//! Final refusals under an idempotency key, stored when the response leaves.
//!
//! Most refusals happen before there is a commit that could store the response: unknown run,
//! unknown workflow, a fork beyond the end. The request registers its idempotency key when it
//! starts. A final refusal is stored under that key before a request with the same key can look it
//! up. An existing response is never replaced.

use crate::api::ApiState;
use axum::extract::Request;
use parking_lot::Mutex;
use std::sync::Arc;
use tandem_app::{PendingRefusal, StoredResponse, Ticket};

/// Holds the idempotency key of a request, once it is known that no response is stored for it.
#[derive(Clone, Default)]
pub(crate) struct RefusalRecorder(Arc<Mutex<Option<PendingRefusal>>>);

/// A response extension: the response is a final refusal.
#[derive(Clone)]
pub(crate) struct FinalRefusal(pub(crate) StoredResponse);

impl RefusalRecorder {
    /// `None` for a request without a key.
    pub(crate) fn for_request(request: &mut Request) -> Option<Self> {
        if !request.headers().contains_key("idempotency-key") {
            return None;
        }
        let refusal_recorder = Self::default();
        request.extensions_mut().insert(refusal_recorder.clone());
        Some(refusal_recorder)
    }

    pub(crate) fn set_ticket(&self, ticket: &Ticket) {
        *self.0.lock() = ticket.pending_refusal();
    }

    pub(crate) async fn store(self, api: &ApiState, FinalRefusal(refused): FinalRefusal) {
        let Some(pending) = self.0.lock().take() else {
            return;
        };
        api.app.store_refusal(pending, refused).await;
    }
}
