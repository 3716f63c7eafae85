//! Failed work, rescheduled or parked.

use super::MemoryStore;
use super::state::State;
use crate::fault::Fault;
use crate::lease::LeaseId;
use crate::read::DueTimer;
use crate::work_failure::{ParkedWork, WorkFailure, WorkFailures};
use async_trait::async_trait;
use tandem_record::{EffectId, StreamId, TenantId, TimerName, Timestamp};

impl State {
    pub(super) fn failures_of(&self, stream: &StreamId, name: &TimerName) -> u32 {
        let failure = self.failed_timers.get(&(stream.clone(), name.clone()));
        failure.map_or(0, |failure| failure.failures)
    }

    fn record_timer_failure(&mut self, timer: &DueTimer, failure: WorkFailure) {
        let place = (timer.stream.clone(), timer.name.clone());
        let stored = self.timers.get(&place).and_then(|stored| stored.due);
        if stored != Some(timer.stored_due()) {
            return;
        }
        self.move_timer(&place, failure.retry_at);
        self.failed_timers.insert(place, failure);
    }

    pub(super) fn is_parked(&self, effect: &EffectId) -> bool {
        let failure = self.failed_effects.get(effect);
        failure.is_some_and(|failure| failure.retry_at.is_none())
    }

    fn list_parked(&self) -> Vec<ParkedWork> {
        let timers = self.failed_timers.iter().map(|(place, failure)| {
            let tenant = self.timers.get(place).map(|timer| timer.tenant.clone());
            let (stream, name) = place;
            (
                failure,
                stream,
                tenant,
                "timer".to_owned(),
                name.to_string(),
            )
        });
        let effects = self.failed_effects.iter().filter_map(|(effect, failure)| {
            let entry = self.outbox.get(effect)?;
            let tenant = Some(entry.lane.tenant.clone());
            let name = effect.to_string();
            Some((failure, &entry.stream, tenant, entry.kind.clone(), name))
        });
        let parked = timers.chain(effects).filter(|(s, ..)| s.retry_at.is_none());
        parked
            .map(|(failure, stream, tenant, kind, name)| ParkedWork {
                stream: stream.clone(),
                tenant,
                kind,
                name,
                failures: failure.failures,
                error: failure.error.clone(),
                failed_at: failure.failed_at,
            })
            .collect()
    }

    fn retry_parked(&mut self, stream: &StreamId, now: Timestamp) -> u64 {
        let timers: Vec<_> = self
            .failed_timers
            .iter()
            .filter(|((of, _), failure)| of == stream && failure.retry_at.is_none())
            .map(|(place, _)| place.clone())
            .collect();
        for place in &timers {
            self.failed_timers.remove(place);
            self.move_timer(place, Some(now));
        }
        let effects: Vec<EffectId> = self
            .outbox
            .values()
            .filter(|entry| entry.stream == *stream && self.is_parked(&entry.effect))
            .map(|entry| entry.effect.clone())
            .collect();
        for effect in &effects {
            self.failed_effects.remove(effect);
            if let Some(entry) = self.outbox.get_mut(effect) {
                entry.failures = 0;
                entry.available_at = now;
            }
        }
        (timers.len() + effects.len()) as u64
    }
}

#[async_trait]
impl WorkFailures for MemoryStore {
    async fn record_timer_failure(
        &self,
        timer: &DueTimer,
        failure: WorkFailure,
    ) -> Result<(), Fault> {
        self.state()?.record_timer_failure(timer, failure);
        Ok(())
    }

    async fn record_effect_failure(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        failure: WorkFailure,
    ) -> Result<(), Fault> {
        let mut state = self.state()?;
        let Some(entry) = state.outbox.get_mut(effect) else {
            return Ok(());
        };
        let held = entry.lease.as_ref().map(|held| &held.id);
        if held == Some(lease) {
            entry.lease = None;
            entry.failures = failure.failures;
            entry.available_at = failure.retry_at.unwrap_or(entry.available_at);
            state.failed_effects.insert(effect.clone(), failure);
        }
        Ok(())
    }

    async fn list_parked(
        &self,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<ParkedWork>, Fault> {
        let mut parked = self.state()?.list_parked();
        parked.retain(|work| tenant.is_none() || work.tenant.as_ref() == tenant);
        parked.truncate(limit);
        Ok(parked)
    }

    async fn count_parked(&self) -> Result<u64, Fault> {
        Ok(self.state()?.list_parked().len() as u64)
    }

    async fn retry_parked(&self, stream: &StreamId, now: Timestamp) -> Result<u64, Fault> {
        Ok(self.state()?.retry_parked(stream, now))
    }
}
