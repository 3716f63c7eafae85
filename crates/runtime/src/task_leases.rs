//! Tasks that one process at a time does for all processes on a store.

use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tandem_record::Timestamp;
use tandem_store::Fault;

/// Length of a lease. If the holder ends, another process takes the task after it.
const TASK_LEASE_MS: u64 = 120_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostTask {
    /// Removes logs past their retention.
    PurgeRuns,
    ExpireIdempotency,
    SealAudit,
}

impl HostTask {
    fn name(self) -> &'static str {
        match self {
            Self::PurgeRuns => "purge-runs",
            Self::ExpireIdempotency => "expire-idempotency",
            Self::SealAudit => "seal-audit",
        }
    }
}

/// Until when this process holds its tasks.
#[derive(Default)]
pub(crate) struct HeldTasks(Mutex<BTreeMap<HostTask, Timestamp>>);

impl Runtime {
    /// Whether this process does the task now. A process that is alone does every task.
    pub async fn holds_task(&self, task: HostTask) -> Result<bool, Fault> {
        if self.inner.config.is_single_process {
            return Ok(true);
        }
        let now = self.clock().now();
        let held = &self.inner.held_tasks.0;
        let left = held
            .lock()
            .get(&task)
            .map_or(0, |until| until.ms_since(now));
        if left > TASK_LEASE_MS / 2 {
            return Ok(true);
        }
        let until = now.plus_ms(TASK_LEASE_MS);
        let owner = &self.inner.config.owner;
        let holds = self
            .store()
            .hold_task(task.name(), owner, now, until)
            .await?;
        match holds {
            true => held.lock().insert(task, until),
            false => held.lock().remove(&task),
        };
        Ok(holds)
    }
}
