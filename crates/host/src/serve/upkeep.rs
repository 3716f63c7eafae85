//! What a server does now and then without being asked.

use std::time::Duration;
use tandem_record::Timestamp;
use tandem_runtime::Runtime;

/// As long as the API promises to repeat an answer.
const KEPT_MS: i64 = 24 * 3600 * 1000;
const EVERY: Duration = Duration::from_secs(60);
/// Removed in one transaction, so that writers never wait long.
const AT_ONCE: usize = 1000;

/// Forgets answers to idempotency keys once nobody may ask for them any more.
pub(super) async fn expire_answers(runtime: Runtime) {
    loop {
        tokio::time::sleep(EVERY).await;
        let before = Timestamp(runtime.clock().now().0 - KEPT_MS);
        loop {
            match runtime.store().expire_idempotency(before, AT_ONCE).await {
                Ok(removed) if removed >= AT_ONCE as u64 => {}
                Ok(_) => break,
                Err(fault) => {
                    tracing::warn!(%fault, "old idempotency answers could not be removed");
                    break;
                }
            }
        }
    }
}
