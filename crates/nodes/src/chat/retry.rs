//! Repeats a call within its timeout, as long as its failures are transient.

use super::failure::ProviderFailure;
use crate::model::failure::CallErrorReason;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How often a failed call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    pub max_retries: u32,
    /// Delay before the first repetition. It doubles with each further one.
    pub base_delay: Duration,
    /// Upper limit of a random addition to each delay.
    pub jitter: Duration,
    /// Bounds one attempt, so that a hanging one can be repeated. `None`: an attempt may take all the
    /// time of the call.
    pub attempt_timeout: Option<Duration>,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_retries: 2,
            base_delay: Duration::from_millis(75),
            jitter: Duration::from_millis(25),
            attempt_timeout: None,
        }
    }
}

impl RetrySettings {
    /// One attempt.
    pub const NEVER: Self = Self {
        max_retries: 0,
        base_delay: Duration::ZERO,
        jitter: Duration::ZERO,
        attempt_timeout: None,
    };

    /// The delay after so many repetitions. A provider that says when to come back is not called
    /// earlier.
    fn delay(&self, repetitions: u32, failure: &ProviderFailure) -> Duration {
        let factor = 2_u32.saturating_pow(repetitions);
        let backoff = self.base_delay.saturating_mul(factor);
        let jitter = self.jitter.mul_f64(rand::random::<f64>());
        let asked = Duration::from_millis(failure.retry_after_ms.unwrap_or(0));
        backoff.saturating_add(jitter).max(asked)
    }
}

/// Makes attempts until one succeeds, or fails for good, or none is left, or the time is over. A
/// delay that would end after the timeout is not begun: the failure is returned at once.
pub(super) async fn with_retries<T, F>(
    provider: &str,
    settings: &RetrySettings,
    time_limit: Duration,
    may_repeat: impl Fn() -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, ProviderFailure>
where
    F: Future<Output = Result<T, ProviderFailure>>,
{
    let begin = Instant::now();
    let mut repetitions = 0;
    loop {
        let left = time_limit.saturating_sub(begin.elapsed());
        let limit = settings.attempt_timeout.map_or(left, |t| t.min(left));
        let failure = match timeout(limit, attempt()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(failure)) => failure,
            Err(_) => ProviderFailure::from_call(&CallErrorReason::TimedOut.into(), provider),
        };
        if !failure.is_transient || repetitions == settings.max_retries || !may_repeat() {
            return Err(failure);
        }
        let delay = settings.delay(repetitions, &failure);
        if delay >= time_limit.saturating_sub(begin.elapsed()) {
            return Err(failure);
        }
        let code = failure.error.code.as_str();
        tracing::debug!(provider, code, repetitions, ?delay, "a call is repeated");
        tokio::time::sleep(delay).await;
        repetitions += 1;
    }
}

#[cfg(test)]
mod tests;
