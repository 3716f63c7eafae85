//! Fires durable timers. Holds no state per timer: it sleeps until the earliest one in the store,
//! or until an earlier one is set. A failing timer is rescheduled (`work_failures.rs`), and a slow
//! one does not delay the next ones. Several processes on one store claim a page of due timers before
//! they fire them; a process that is alone needs no such write.

use crate::machine_driver::not_driven;
use crate::runtime::Runtime;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{StreamId, TimerName, Timestamp};
use tandem_store::{DueTimer, Fault};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

/// Timers fired concurrently, so that their commits share one fsync.
const BATCH: usize = 128;
/// Longest wait for timers before the next ones start beside them.
const BATCH_WAIT: Duration = Duration::from_millis(250);
/// Timers whose deadlines are within this time are fired together. Later ones come after them: deadlines that passed
/// while the host was down take effect in their order.
const TOGETHER_MS: i64 = 100;
/// Limit of timers that are fired at once.
const MAX_UNDER_WAY: usize = 4 * BATCH;
/// How long a claimed timer belongs to its process. If the process ends first, the timer is late by
/// this time.
const CLAIM_MS: u64 = 10_000;
/// Poll interval when nothing is due; limits the delay after a clock jump.
const IDLE_POLL_MS: u64 = 30_000;

/// Timers that are being fired.
#[derive(Default)]
struct Firing {
    tasks: JoinSet<Result<(), Fault>>,
    timers: HashMap<Id, DueTimer>,
}

impl Firing {
    /// Timers of a page that are not being fired yet, up to the limit.
    fn fresh(&self, due: Vec<DueTimer>) -> Vec<DueTimer> {
        let room = MAX_UNDER_WAY.saturating_sub(self.timers.len()).min(BATCH);
        let under_way: HashSet<(&StreamId, &TimerName)> =
            self.timers.values().map(|t| (&t.stream, &t.name)).collect();
        due.into_iter()
            .filter(|timer| !under_way.contains(&(&timer.stream, &timer.name)))
            .take(room)
            .collect()
    }
}

impl Runtime {
    pub(crate) async fn fire_timers(self) {
        let mut firing = Firing::default();
        loop {
            let pause = match self.fire_due(&mut firing).await {
                Ok(pause) => pause,
                Err(fault) => {
                    tracing::warn!(error = %fault, "timers are late");
                    Duration::from_secs(1)
                }
            };
            if self.is_stopping() {
                break;
            }
            if pause.is_zero() {
                continue;
            }
            tokio::select! {
                biased;
                () = self.stopped() => break,
                () = self.inner.timer_bell.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        while firing.tasks.join_next().await.is_some() {}
    }

    /// Fires due timers and returns the time until the next one.
    async fn fire_due(&self, firing: &mut Firing) -> Result<Duration, Fault> {
        self.inner.timer_bell.begin_read();
        let now = self.clock().now();
        let page = BATCH + firing.timers.len();
        let due = self.store().due_timers(now, page).await?;
        if due.is_empty() {
            self.inner.readiness.timers_caught_up();
        }
        let mut due = self.claimed(firing, firing.fresh(due), now).await?;
        due.sort_by_key(|timer| timer.due);
        if due.is_empty() && firing.timers.is_empty() {
            let next = self.store().next_timer().await?;
            let now = self.clock().now();
            let pause_ms = next.map_or(IDLE_POLL_MS, |at| at.ms_since(now).clamp(1, IDLE_POLL_MS));
            self.inner.timer_bell.sleep_until(now.plus_ms(pause_ms));
            return Ok(Duration::from_millis(pause_ms));
        }
        let mut outcome = Ok(());
        if due.is_empty() {
            self.wait_for(firing, &mut outcome, |firing| firing.timers.is_empty())
                .await;
        }
        // One that hangs costs the others one wait, however many hang. They come before it then.
        let mut in_order = true;
        for together in due.chunk_by(|a, b| a.due.0 / TOGETHER_MS == b.due.0 / TOGETHER_MS) {
            if self.is_stopping() {
                break;
            }
            let mut tasks = HashSet::new();
            for timer in together {
                let runtime = self.clone();
                let fired = timer.clone();
                let task = firing
                    .tasks
                    .spawn(async move { runtime.fire_or_put_off(fired).await });
                tasks.insert(task.id());
                firing.timers.insert(task.id(), timer.clone());
            }
            let are_fired =
                |firing: &Firing| !tasks.iter().any(|id| firing.timers.contains_key(id));
            in_order = in_order && self.wait_for(firing, &mut outcome, are_fired).await;
        }
        outcome.map(|()| Duration::ZERO)
    }

    /// Waits until this is so, but not longer than [`BATCH_WAIT`]. Returns whether it is.
    async fn wait_for(
        &self,
        firing: &mut Firing,
        outcome: &mut Result<(), Fault>,
        is_so: impl Fn(&Firing) -> bool,
    ) -> bool {
        let deadline = Instant::now() + BATCH_WAIT;
        while !is_so(firing) {
            let next = tokio::time::timeout_at(deadline, firing.tasks.join_next_with_id());
            let Ok(Some(fired)) = next.await else {
                return false;
            };
            let noted = self.note_fired(firing, fired).await;
            if outcome.is_ok() {
                *outcome = noted;
            }
        }
        true
    }

    /// As many of the due timers as no other process claims.
    async fn claimed(
        &self,
        firing: &Firing,
        due: Vec<DueTimer>,
        now: Timestamp,
    ) -> Result<Vec<DueTimer>, Fault> {
        if self.inner.config.is_single_process || due.is_empty() {
            return Ok(due);
        }
        let until = now.plus_ms(CLAIM_MS);
        let claimed = self.store().claim_timers(now, until, due.len()).await?;
        Ok(firing.fresh(claimed))
    }

    async fn note_fired(
        &self,
        firing: &mut Firing,
        fired: Result<(Id, Result<(), Fault>), JoinError>,
    ) -> Result<(), Fault> {
        match fired {
            Ok((task, outcome)) => {
                firing.timers.remove(&task);
                outcome
            }
            Err(died) => {
                self.inner.metrics.panics.inc();
                let fault = Fault::retryable("bug", died.to_string());
                match firing.timers.remove(&died.id()) {
                    Some(timer) => self.record_timer_failure(&timer, &fault).await,
                    None => Err(fault),
                }
            }
        }
    }

    /// An error means that the store failed, not the timer.
    async fn fire_or_put_off(&self, timer: DueTimer) -> Result<(), Fault> {
        match self.fire(&timer).await {
            Ok(()) => Ok(()),
            Err(fault) => self.record_timer_failure(&timer, &fault).await,
        }
    }

    async fn fire(&self, timer: &DueTimer) -> Result<(), Fault> {
        self.inner.crash.reach("timer.before");
        let late = self.clock().now().ms_since(timer.due);
        self.inner.metrics.timer_fired(late);
        match self.inner.machines.driver_of(&timer.stream) {
            Some(driver) => Arc::clone(driver).fire_timer(self, timer).await,
            None => self.park_timer(timer, &not_driven(&timer.stream)).await,
        }
    }
}
