//! Timers by stream and by due time, and claims on them. A claimed timer is stored as due when its
//! claim ends; a parked one is never due.

use super::MemoryStore;
use super::state::State;
use crate::commit::TimerChange;
use crate::fault::Fault;
use crate::lease::ClaimTimers;
use crate::read::DueTimer;
use async_trait::async_trait;
use tandem_record::{StreamId, TenantId, TimerName, Timestamp};

/// Names one timer.
pub(super) type TimerPlace = (StreamId, TimerName);

pub(super) struct StoredTimer {
    /// `None` while it is parked.
    pub(super) due: Option<Timestamp>,
    pub(super) tenant: TenantId,
}

impl State {
    pub(super) fn change_timer(&mut self, change: TimerChange) {
        match change {
            TimerChange::Set {
                stream,
                name,
                due,
                tenant,
            } => {
                let place = (stream, name);
                self.failed_timers.remove(&place);
                let timer = StoredTimer { due: None, tenant };
                if let Some(before) = self.timers.insert(place.clone(), timer) {
                    self.remove_due(before.due, &place);
                }
                self.move_timer(&place, Some(due));
            }
            TimerChange::Clear { stream, name } => {
                let place = (stream, name);
                self.failed_timers.remove(&place);
                if let Some(before) = self.timers.remove(&place) {
                    self.remove_due(before.due, &place);
                }
            }
        }
    }

    /// Changes when a timer is due; `None` parks it.
    pub(super) fn move_timer(&mut self, place: &TimerPlace, due: Option<Timestamp>) {
        let Some(timer) = self.timers.get_mut(place) else {
            return;
        };
        let before = std::mem::replace(&mut timer.due, due);
        self.remove_due(before, place);
        if let Some(due) = due {
            self.due.insert((due, place.0.clone(), place.1.clone()));
        }
    }

    fn remove_due(&mut self, due: Option<Timestamp>, (stream, name): &TimerPlace) {
        if let Some(due) = due {
            self.due.remove(&(due, stream.clone(), name.clone()));
        }
    }

    pub(super) fn due_timers(&self, now: Timestamp, limit: usize) -> Vec<DueTimer> {
        let due = self.due.iter().take_while(|(due, _, _)| *due <= now);
        due.take(limit)
            .map(|(due, stream, name)| DueTimer {
                stream: stream.clone(),
                name: name.clone(),
                due: *due,
                claimed_until: None,
                failures: self.failures_of(stream, name),
            })
            .collect()
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
            let place = (timer.stream.clone(), timer.name.clone());
            state.move_timer(&place, Some(until));
            timer.claimed_until = Some(until);
        }
        Ok(claimed)
    }
}
