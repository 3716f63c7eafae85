//! What a server does now and then without being asked.

use std::sync::Arc;
use std::time::Duration;
use tandem_record::Timestamp;
use tandem_runtime::Runtime;
use tandem_runtime::audit::{AuditSigner, CHECKPOINT_ENTRIES, SealError};

/// As long as the API promises to repeat an answer.
const IDEMPOTENCY_RETENTION_MS: i64 = 24 * 3600 * 1000;
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);
/// Removed in one transaction, so that writers never wait long.
const AT_ONCE: usize = 1000;

/// How often the audit log is looked at. Checkpoints are cut where they belong however late they
/// are made, so this bounds only how long entries go without one.
const SEAL_INTERVAL: Duration = Duration::from_secs(2);
/// The same while the log grows fast: many entries sealed at once would hold up everybody else.
const FAST_SEAL_INTERVAL: Duration = Duration::from_millis(100);
/// Entries between two looks from which on it does.
const FAST_GROWTH_ENTRIES: u64 = CHECKPOINT_ENTRIES / 10;

/// Seals the audit log as it grows. What is broken is left unsealed, and said once.
pub(super) async fn seal_audit(runtime: Runtime, audit_signer: Arc<AuditSigner>) {
    let mut reported = None;
    let mut pause = SEAL_INTERVAL;
    let mut last_seq = 0;
    loop {
        tokio::time::sleep(pause).await;
        pause = SEAL_INTERVAL;
        match audit_signer.seal_due(runtime.clock().now()).await {
            Ok(last) => {
                reported = None;
                if last.saturating_sub(last_seq) >= FAST_GROWTH_ENTRIES {
                    pause = FAST_SEAL_INTERVAL;
                }
                last_seq = last;
            }
            Err(SealError::Fault(fault)) => {
                tracing::warn!(%fault, "the audit log could not be sealed");
            }
            Err(broken @ SealError::Chain { at_seq }) => {
                if reported.replace(at_seq) != Some(at_seq) {
                    tracing::error!("{broken}; `tandem audit verify` tells more");
                }
            }
        }
    }
}

/// Forgets answers to idempotency keys once nobody may ask for them any more.
pub(super) async fn expire_idempotency_records(runtime: Runtime) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        let before = Timestamp(runtime.clock().now().0 - IDEMPOTENCY_RETENTION_MS);
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
