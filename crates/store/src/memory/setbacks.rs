//! Work that failed, put off or parked.

use super::MemoryStore;
use super::state::State;
use crate::fault::Fault;
use crate::read::DueTimer;
use crate::setback::{ParkedWork, Setback, Setbacks};
use async_trait::async_trait;
use tandem_record::{EffectId, StreamId, TenantId, TimerKey, Timestamp};

impl State {
    pub(super) fn failures_of(&self, stream: &StreamId, key: &TimerKey) -> u32 {
        let setback = self.failed_timers.get(&(stream.clone(), key.clone()));
        setback.map_or(0, |setback| setback.failures)
    }

    fn put_off_timer(&mut self, timer: &DueTimer, setback: Setback) {
        let name = (timer.stream.clone(), timer.key.clone());
        if self.timers.get(&name) != Some(&timer.due) {
            return;
        }
        let (stream, key) = name.clone();
        self.due.remove(&(timer.due, stream.clone(), key.clone()));
        match setback.retry_at {
            Some(at) => {
                self.timers.insert(name.clone(), at);
                self.due.insert((at, stream, key));
            }
            None => {
                self.timers.remove(&name);
            }
        }
        self.failed_timers.insert(name, setback);
    }

    pub(super) fn is_parked(&self, effect: &EffectId) -> bool {
        let setback = self.failed_effects.get(effect);
        setback.is_some_and(|setback| setback.retry_at.is_none())
    }

    fn parked(&self) -> Vec<ParkedWork> {
        let tenant_of = |stream: &StreamId| {
            let place = self.run_places.get(&stream.run()?)?;
            Some(self.runs[*place].tenant.clone())
        };
        let timers = self.failed_timers.iter().map(|((stream, key), setback)| {
            let name = serde_json::to_string(key).expect("a timer key is plain JSON");
            (setback, stream, tenant_of(stream), "timer".to_owned(), name)
        });
        let effects = self.failed_effects.iter().filter_map(|(effect, setback)| {
            let entry = self.outbox.get(effect)?;
            let tenant = Some(entry.lane.tenant.clone());
            let name = effect.to_string();
            Some((setback, &entry.stream, tenant, entry.kind.clone(), name))
        });
        let parked = timers.chain(effects).filter(|(s, ..)| s.retry_at.is_none());
        parked
            .map(|(setback, stream, tenant, kind, name)| ParkedWork {
                stream: stream.clone(),
                tenant,
                kind,
                name,
                failures: setback.failures,
                error: setback.error.clone(),
                failed_at: setback.failed_at,
            })
            .collect()
    }

    fn retry_parked(&mut self, stream: &StreamId, now: Timestamp) -> u64 {
        let timers: Vec<_> = self
            .failed_timers
            .iter()
            .filter(|((of, _), setback)| of == stream && setback.retry_at.is_none())
            .map(|(name, _)| name.clone())
            .collect();
        for name in &timers {
            self.failed_timers.remove(name);
            self.timers.insert(name.clone(), now);
            self.due.insert((now, name.0.clone(), name.1.clone()));
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
impl Setbacks for MemoryStore {
    async fn put_off_timer(&self, timer: &DueTimer, setback: Setback) -> Result<(), Fault> {
        self.state()?.put_off_timer(timer, setback);
        Ok(())
    }

    async fn put_off_effect(
        &self,
        effect: &EffectId,
        owner: &str,
        setback: Setback,
    ) -> Result<(), Fault> {
        let mut state = self.state()?;
        let Some(entry) = state.outbox.get_mut(effect) else {
            return Ok(());
        };
        let holder = entry.lease.as_ref().map(|(holder, _)| holder.as_str());
        if holder == Some(owner) {
            entry.lease = None;
            entry.failures = setback.failures;
            entry.available_at = setback.retry_at.unwrap_or(entry.available_at);
            state.failed_effects.insert(effect.clone(), setback);
        }
        Ok(())
    }

    async fn parked(
        &self,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<ParkedWork>, Fault> {
        let mut parked = self.state()?.parked();
        parked.retain(|work| tenant.is_none() || work.tenant.as_ref() == tenant);
        parked.truncate(limit);
        Ok(parked)
    }

    async fn count_parked(&self) -> Result<u64, Fault> {
        Ok(self.state()?.parked().len() as u64)
    }

    async fn retry_parked(&self, stream: &StreamId, now: Timestamp) -> Result<u64, Fault> {
        Ok(self.state()?.retry_parked(stream, now))
    }
}
