//! Records which keys are in use, for the audit log, so that an operator can see whether an old key
//! is still needed. One entry per key and day, not per request.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::Timestamp;

/// Keys tracked; with more keys, some are reported more than once a day.
const MAX_TRACKED_KEYS: usize = 10_000;
const DAY_MS: i64 = 24 * 3600 * 1000;

#[derive(Default)]
pub(crate) struct KeyUse {
    days: Mutex<HashMap<Arc<str>, i64>>,
}

impl KeyUse {
    /// Whether this is the key's first use on this day, as seen by this process.
    pub(crate) fn is_first_today(&self, key_id: &Arc<str>, now: Timestamp) -> bool {
        let today = now.0.div_euclid(DAY_MS);
        let mut days = self.days.lock();
        if days.get(key_id) == Some(&today) {
            return false;
        }
        if days.len() >= MAX_TRACKED_KEYS {
            days.clear();
        }
        days.insert(Arc::clone(key_id), today);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_use_is_reported_once_a_day_within_bounded_memory() {
        let used = KeyUse::default();
        let key: Arc<str> = Arc::from("k");
        let noon = Timestamp(DAY_MS / 2);
        assert!(used.is_first_today(&key, noon));
        assert!(!used.is_first_today(&key, noon.plus_ms(1000)));
        assert!(used.is_first_today(&key, noon.plus_ms(DAY_MS as u64)));
        for n in 0..2 * MAX_TRACKED_KEYS {
            used.is_first_today(&Arc::from(n.to_string()), noon);
        }
        assert!(used.days.lock().len() <= MAX_TRACKED_KEYS);
    }
}
