//! Periodic background tasks of a server.

use std::sync::Arc;
use std::time::Duration;
use tandem_record::Timestamp;
use tandem_runtime::audit::{AuditSigner, CHECKPOINT_ENTRIES, SealError};
use tandem_runtime::{HostTask, Runtime};

/// How long the API promises to replay a response.
const IDEMPOTENCY_RETENTION_MS: i64 = 24 * 3600 * 1000;
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);
/// Rows removed in one transaction, so that writers do not wait long.
const AT_ONCE: usize = 1000;

/// Time between two checks of the audit log. Checkpoint boundaries do not depend on when they are
/// created, so this only limits how long entries stay unsealed.
const SEAL_INTERVAL: Duration = Duration::from_secs(2);
/// The same while the log grows fast: sealing many entries at once would delay other work.
const FAST_SEAL_INTERVAL: Duration = Duration::from_millis(100);
/// Entries since the last check from which on the log grows fast.
const FAST_GROWTH_ENTRIES: u64 = CHECKPOINT_ENTRIES / 10;

/// Seals the audit log as it grows. A broken log is not sealed; that is logged once.
pub(super) async fn seal_audit(runtime: Runtime, audit_signer: Arc<AuditSigner>) {
    let mut reported = None;
    let mut pause = SEAL_INTERVAL;
    let mut last_seq = 0;
    loop {
        tokio::time::sleep(pause).await;
        pause = SEAL_INTERVAL;
        if !does_task(&runtime, HostTask::SealAudit).await {
            continue;
        }
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
                    tracing::error!("{broken}; run `tandem audit verify` for details");
                }
            }
        }
    }
}

/// Whether this process does the task for all processes on the store.
async fn does_task(runtime: &Runtime, task: HostTask) -> bool {
    match runtime.holds_task(task).await {
        Ok(holds) => holds,
        Err(fault) => {
            tracing::warn!(%fault, ?task, "it is not known which process does a task");
            false
        }
    }
}

/// Deletes expired idempotency records.
pub(super) async fn expire_idempotency_records(runtime: Runtime) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        let before = Timestamp(runtime.clock().now().0 - IDEMPOTENCY_RETENTION_MS);
        while does_task(&runtime, HostTask::ExpireIdempotency).await {
            match runtime.store().expire_idempotency(before, AT_ONCE).await {
                Ok(removed) if removed >= AT_ONCE as u64 => {}
                Ok(_) => break,
                Err(fault) => {
                    tracing::warn!(%fault, "expired idempotency records could not be removed");
                    break;
                }
            }
        }
    }
}
