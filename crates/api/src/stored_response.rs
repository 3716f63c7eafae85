//! Final refusals under an idempotency key, stored when the response leaves.
//!
//! Most refusals happen before there is a commit that could store the response: unknown run,
//! unknown workflow, a fork beyond the end. The request registers its idempotency key when it
//! starts. A final refusal is stored under that key before a request with the same key can look it
//! up. An existing response is never replaced.

use crate::api::ApiState;
use crate::idempotency::KeyGuard;
use axum::extract::Request;
use parking_lot::Mutex;
use std::sync::Arc;
use tandem_runtime::{IdempotencyKey, IdempotencyRecord, StoredResponse};

/// Holds the idempotency key and digest of a request, once it is known that no response is stored
/// for it.
#[derive(Clone, Default)]
pub(crate) struct RefusalRecorder(Arc<Mutex<Option<PendingRequest>>>);

struct PendingRequest {
    key: IdempotencyKey,
    digest: String,
    /// Requests with the same key wait until the refusal is stored.
    _held: Arc<KeyGuard>,
}

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

    pub(crate) fn set_request(&self, key: &IdempotencyKey, digest: &str, held: &Arc<KeyGuard>) {
        *self.0.lock() = Some(PendingRequest {
            key: key.clone(),
            digest: digest.to_owned(),
            _held: Arc::clone(held),
        });
    }

    /// If storing fails, the refusal is still sent: a repeated request gets the same refusal again.
    pub(crate) async fn store(self, api: &ApiState, refused: FinalRefusal) {
        let Some(pending) = self.0.lock().take() else {
            return;
        };
        // It may quote the request, and it is stored outside of any run.
        let response = StoredResponse {
            body: api.runtime.redacted_json(refused.0.body),
            ..refused.0
        };
        let record = IdempotencyRecord {
            key: pending.key.clone(),
            digest: pending.digest.clone(),
            response,
            recorded_at: api.now(),
        };
        if let Err(fault) = api.runtime.store_idempotency_record(record).await {
            tracing::warn!(error = %fault, "the refusal was not stored under its idempotency key");
        }
    }
}
