//! What a server does now and then without being asked.

use std::sync::Arc;
use std::time::Duration;
use tandem_record::Timestamp;
use tandem_runtime::Runtime;
use tandem_runtime::audit::{Broken, CHECKPOINT_ENTRIES, Notary};

/// As long as the API promises to repeat an answer.
const KEPT_MS: i64 = 24 * 3600 * 1000;
const EVERY: Duration = Duration::from_secs(60);
/// Removed in one transaction, so that writers never wait long.
const AT_ONCE: usize = 1000;

/// How often the audit log is looked at. Checkpoints are cut where they belong however late they
/// are made, so this bounds only how long entries go without one.
const SEALED_EVERY: Duration = Duration::from_secs(2);
/// The same while the log grows fast: many entries sealed at once would hold up everybody else.
const SEALED_IN_STEP: Duration = Duration::from_millis(100);
/// Entries between two looks from which on it does.
const FAST: u64 = CHECKPOINT_ENTRIES / 10;

/// Seals the audit log as it grows. What is broken is left unsealed, and said once.
pub(super) async fn seal_audit(runtime: Runtime, notary: Arc<Notary>) {
    let mut told = None;
    let mut pause = SEALED_EVERY;
    let mut seen = 0;
    loop {
        tokio::time::sleep(pause).await;
        pause = SEALED_EVERY;
        match notary.seal_due(runtime.clock().now()).await {
            Ok(last) => {
                told = None;
                if last.saturating_sub(seen) >= FAST {
                    pause = SEALED_IN_STEP;
                }
                seen = last;
            }
            Err(Broken::Fault(fault)) => {
                tracing::warn!(%fault, "the audit log could not be sealed");
            }
            Err(broken @ Broken::Chain { at_seq }) => {
                if told.replace(at_seq) != Some(at_seq) {
                    tracing::error!("{broken}; `tandem audit verify` tells more");
                }
            }
        }
    }
}

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
