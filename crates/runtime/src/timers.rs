//! Fires durable timers. Holds nothing per timer: it sleeps until the earliest one in the store,
//! or until somebody sets an earlier one.

use crate::runtime::Runtime;
use crate::submit::{Delivery, SubmitError};
use std::time::Duration;
use tandem_record::Command;
use tandem_store::{DueTimer, Fault};
use tokio::task::JoinSet;

/// Timers fired side by side, so that their commits share one fsync.
const BATCH: usize = 128;
/// How often the store is looked at when nothing is due; bounds the harm of a clock that jumps.
const IDLE_LOOK: Duration = Duration::from_secs(30);

impl Runtime {
    pub(crate) async fn fire_timers(self) {
        loop {
            let pause = match self.fire_due().await {
                Ok(pause) => pause,
                Err(fault) => {
                    tracing::warn!(error = %fault, "timers are late");
                    Duration::from_secs(1)
                }
            };
            if self.is_stopping() {
                return;
            }
            if pause.is_zero() {
                continue;
            }
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.inner.timer_bell.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Fires what is due and says how long nothing else will be.
    async fn fire_due(&self) -> Result<Duration, Fault> {
        let now = self.clock().now();
        let due = self.store().due_timers(now, BATCH).await?;
        if due.is_empty() {
            let next = self.store().next_timer().await?;
            let until = next.map_or(IDLE_LOOK, |at| {
                Duration::from_millis(at.ms_since(self.clock().now()).max(1))
            });
            return Ok(until.min(IDLE_LOOK));
        }
        let mut firing = JoinSet::new();
        for timer in due {
            let runtime = self.clone();
            firing.spawn(async move { runtime.fire(timer).await });
        }
        // One that fails must not cut the others off: every one is waited for.
        let mut outcome = Ok(Duration::ZERO);
        while let Some(fired) = firing.join_next().await {
            match fired {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => outcome = Err(fault),
                Err(panicked) => {
                    self.inner.metrics.panics.inc();
                    outcome = Err(Fault::retryable("bug", panicked.to_string()));
                }
            }
        }
        outcome
    }

    async fn fire(&self, timer: DueTimer) -> Result<(), Fault> {
        self.inner.crash.reach("timer.before");
        let late = self.clock().now().ms_since(timer.due);
        self.inner.metrics.timer_fired(late);
        let Some(run) = timer.stream.run() else {
            let message = format!("a timer stands on {}, which is no run", timer.stream);
            return Err(Fault::permanent("corrupt", message));
        };
        let delivery = Delivery {
            timer: Some(timer.key.clone()),
            ..Delivery::default()
        };
        let command = Command::TimerFired(timer.key.clone());
        match self.deliver(&run, command, None, delivery).await {
            Ok(_) => Ok(()),
            Err(SubmitError::Fault(fault)) => Err(fault),
            Err(error) => {
                // The run is gone or will not have it: the timer is meaningless.
                tracing::warn!(run = %run, %error, "a timer found no run");
                let commit = tandem_store::Commit {
                    timers: vec![tandem_store::TimerChange::Clear {
                        stream: timer.stream,
                        key: timer.key,
                    }],
                    ..Default::default()
                };
                match self.store().commit(commit).await {
                    Ok(()) | Err(tandem_store::Error::Conflict(_)) => Ok(()),
                    Err(tandem_store::Error::Fault(fault)) => Err(fault),
                }
            }
        }
    }
}
