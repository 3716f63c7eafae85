//! How often a text is tried, and how long the pauses between attempts are.
//!
//! | Failures | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
//! |---|---|---|---|---|---|---|---|---|
//! | Pause, extended by up to a fifth | 0.5 s | 1 s | 2 s | 4 s | 8 s | 16 s | 32 s | given up |

use super::agent_host::SendError;
use crate::jitter::with_jitter;
use tandem_record::EffectId;

const MAX_ATTEMPTS: u32 = 8;
/// Pause before a text is tried again that the transport held back.
pub(super) const HELD_SEND_RETRY_MS: i64 = 250;
/// A network that wants to be left alone for longer is asked again after this.
const MAX_RETRY_AFTER_MS: u64 = 60 * 60 * 1000;
/// Pause after the first failed attempt; it doubles with each further one.
const FIRST_PAUSE_MS: u64 = 500;

/// Whether a text that failed this often before is given up if it fails again.
fn is_last_attempt(failures_before: u32) -> bool {
    failures_before + 1 >= MAX_ATTEMPTS
}

/// The pause after the n-th failure of a text, counted from 1.
fn pause_before_retry_ms(key: &EffectId, failures: u32) -> u64 {
    let doublings = failures.clamp(1, MAX_ATTEMPTS) - 1;
    with_jitter(FIRST_PAUSE_MS << doublings, &format!("{key}:{failures}"))
}

/// Whether another attempt is made.
pub(super) fn may_try_again(error: &SendError, attempts: u32) -> bool {
    error.is_held || (error.is_transient && !is_last_attempt(attempts))
}

/// How long to wait, and how many attempts have failed then. A network that says how long is left alone that long.
pub(super) fn pause_before_retry(error: &SendError, key: &EffectId, attempts: u32) -> (u64, u32) {
    let (pause, attempts) = match error.is_held {
        true => (HELD_SEND_RETRY_MS.unsigned_abs(), attempts),
        false => (pause_before_retry_ms(key, attempts + 1), attempts + 1),
    };
    let asked = error.retry_after_ms.unwrap_or(0).min(MAX_RETRY_AFTER_MS);
    (pause.max(asked), attempts)
}

/// The key of a part of a text; that of the first part is the text's.
pub(super) fn part_key(key: &EffectId, part: usize) -> EffectId {
    match part {
        0 => key.clone(),
        part => EffectId::from(format!("{key}.{part}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z-199 (half: pauses grow, and texts that failed together are not tried together)
    #[test]
    fn pauses_double_and_differ_between_texts() {
        let pauses = |key: &str| {
            let key = EffectId::new(key);
            (1..MAX_ATTEMPTS).map(move |nth| pause_before_retry_ms(&key, nth))
        };
        for (nth, pause) in pauses("conv-1:send:0").enumerate() {
            let base = 500 << nth;
            assert!((base..=base + base / 5).contains(&pause), "{nth}: {pause}");
        }
        let differ = pauses("conv-1:send:0").zip(pauses("conv-2:send:0"));
        assert!(differ.filter(|(one, other)| one != other).count() >= 6);
        assert!(pauses("conv-1:send:0").eq(pauses("conv-1:send:0")));
    }
}
