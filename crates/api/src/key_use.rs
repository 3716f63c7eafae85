//! Which keys are in use, for the audit log: whoever rotates a key wants to know whether the old one
//! is still needed. Told once a day for each key, not once a request.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::Timestamp;

/// Keys remembered; when there are more, some are told more often.
const MAX_TRACKED_KEYS: usize = 10_000;
const DAY_MS: i64 = 24 * 3600 * 1000;

#[derive(Default)]
pub(crate) struct KeyUse {
    days: Mutex<HashMap<Arc<str>, i64>>,
}

impl KeyUse {
    /// Whether this is the key's first use on this day, as far as this process knows.
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
