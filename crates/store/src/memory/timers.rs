//! Due timers, and claims on them. A claimed timer is stored as due when its claim ends.

use super::MemoryStore;
use super::state::State;
use crate::fault::Fault;
use crate::lease::ClaimTimers;
use crate::read::DueTimer;
use async_trait::async_trait;
use tandem_record::Timestamp;

impl State {
    pub(super) fn due_timers(&self, now: Timestamp, limit: usize) -> Vec<DueTimer> {
        let due = self.due.iter().take_while(|(due, _, _)| *due <= now);
        due.take(limit)
            .map(|(due, stream, key)| DueTimer {
                stream: stream.clone(),
                key: key.clone(),
                due: *due,
                claimed_until: None,
                failures: self.failures_of(stream, key),
            })
            .collect()
    }

    fn claim(&mut self, timer: &mut DueTimer, until: Timestamp) {
        let name = (timer.stream.clone(), timer.key.clone());
        let (stream, key) = name.clone();
        self.due.remove(&(timer.due, stream.clone(), key.clone()));
        self.due.insert((until, stream, key));
        self.timers.insert(name, until);
        timer.claimed_until = Some(until);
    }
}

#[async_trait]
impl ClaimTimers for MemoryStore {
    async fn claim_timers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>, Fault> {
        let mut state = self.state()?;
        let mut claimed = state.due_timers(now, limit);
        for timer in &mut claimed {
            state.claim(timer, until);
        }
        Ok(claimed)
    }
}
