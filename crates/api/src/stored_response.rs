//! Refusals that are final, under an idempotency key: kept like any other answer, as they leave.
//!
//! Most api refuse before there is a deed and so a commit that could take the answer along: no such
//! run, no such workflow, a fork beyond the end. What was asked under a key is noted when the request
//! begins; what is refused for good is kept under it on the way out, before a twin may look. An answer
//! that is there already stays.

use crate::api::ApiState;
use crate::idempotency::KeyGuard;
use axum::extract::Request;
use parking_lot::Mutex;
use std::sync::Arc;
use tandem_runtime::{IdempotencyKey, IdempotencyRecord, StoredResponse};

/// Where a request under a key notes what it is, once it is known that nobody answered it before.
#[derive(Clone, Default)]
pub(crate) struct RefusalRecorder(Arc<Mutex<Option<PendingRequest>>>);

struct PendingRequest {
    key: IdempotencyKey,
    digest: String,
    /// Twins wait until the refusal is kept.
    _held: Arc<KeyGuard>,
}

/// Part of a response: it is a refusal, and final.
#[derive(Clone)]
pub(crate) struct FinalRefusal(pub(crate) StoredResponse);

impl RefusalRecorder {
    /// `None` for a request that names no key.
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

    /// A refusal that cannot be kept is given all the same: asked again, it is found again.
    pub(crate) async fn store(self, api: &ApiState, refused: FinalRefusal) {
        let Some(pending) = self.0.lock().take() else {
            return;
        };
        // It may quote what was sent, and is stored outside any run.
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
            tracing::warn!(error = %fault, "a refusal is not kept under its key");
        }
    }
}
