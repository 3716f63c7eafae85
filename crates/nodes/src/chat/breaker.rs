//! Circuit breakers: a provider that keeps failing for an agent is not called for a while.
//!
//! ```text
//! closed    -- N transient failures in a row -->  open
//! open      -- pause is over, next call -------->  half-open, that call is the probe
//! half-open -- probe answered ------------------>  closed
//! half-open -- probe failed -------------------->  open
//! half-open -- probe abandoned ----------------->  half-open, the next call is the probe
//! ```
//!
//! Each process has its own: it is about what this process can reach. A failure that is not
//! transient is an answer of the provider and closes the circuit.

use super::failure::ProviderFailure;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tandem_record::{AgentId, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Transient failures in a row that open a circuit. 0 never opens one.
    pub failures_to_open: u32,
    /// How long an open circuit refuses calls.
    pub pause_ms: u64,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures_to_open: 5,
            pause_ms: 30_000,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    Closed,
    Open { until: Timestamp },
    HalfOpen,
}

/// A change of a circuit's state, for events and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitChange {
    pub agent: AgentId,
    pub provider: String,
    pub from: CircuitState,
    pub to: CircuitState,
}

/// How many circuits are in which state, for a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CircuitCounts {
    pub closed: usize,
    pub open: usize,
    pub half_open: usize,
}

/// The circuits of a process, one for each agent and provider.
#[derive(Default)]
pub struct CircuitBreakers {
    settings: BreakerSettings,
    circuits: Mutex<BTreeMap<(AgentId, String), Circuit>>,
}

struct Circuit {
    state: CircuitState,
    failures: u32,
    is_probed: bool,
}

impl Default for Circuit {
    fn default() -> Self {
        Self {
            state: CircuitState::Closed,
            failures: 0,
            is_probed: false,
        }
    }
}

impl CircuitBreakers {
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            circuits: Mutex::default(),
        }
    }

    /// Makes a call, unless the circuit refuses it: then the failure `provider_circuit_open` is
    /// returned and the call is not begun. `now` is the caller's clock; `changed` gets each change of
    /// the circuit's state.
    pub async fn call<T>(
        &self,
        agent: &AgentId,
        provider: &str,
        now: &(dyn Fn() -> Timestamp + Send + Sync),
        changed: &(dyn Fn(CircuitChange) + Send + Sync),
        call: impl Future<Output = Result<T, ProviderFailure>>,
    ) -> Result<T, ProviderFailure> {
        let key = (agent.clone(), provider.to_owned());
        let probe = self.admit(&key, now(), changed)?;
        let result = call.await;
        let is_down = result.as_ref().is_err_and(|failure| failure.is_transient);
        self.record(&key, is_down, now(), changed);
        drop(probe);
        result
    }

    pub fn state(&self, agent: &AgentId, provider: &str) -> CircuitState {
        let key = (agent.clone(), provider.to_owned());
        let circuits = self.circuits.lock();
        circuits.get(&key).map_or(CircuitState::Closed, |c| c.state)
    }

    pub fn counts(&self) -> CircuitCounts {
        let mut counts = CircuitCounts::default();
        for circuit in self.circuits.lock().values() {
            match circuit.state {
                CircuitState::Closed => counts.closed += 1,
                CircuitState::Open { .. } => counts.open += 1,
                CircuitState::HalfOpen => counts.half_open += 1,
            }
        }
        counts
    }

    /// Forgets the circuits of an agent that no longer exists.
    pub fn forget(&self, agent: &AgentId) {
        self.circuits.lock().retain(|(known, _), _| known != agent);
    }

    fn admit(
        &self,
        key: &(AgentId, String),
        now: Timestamp,
        changed: &(dyn Fn(CircuitChange) + Send + Sync),
    ) -> Result<Option<Probe<'_>>, ProviderFailure> {
        let change = {
            let mut circuits = self.circuits.lock();
            let circuit = circuits.entry(key.clone()).or_default();
            let is_paused = match circuit.state {
                CircuitState::Closed => return Ok(None),
                CircuitState::Open { until } => now < until,
                CircuitState::HalfOpen => circuit.is_probed,
            };
            if is_paused {
                return Err(refused(&key.1));
            }
            circuit.is_probed = true;
            circuit.become_state(key, CircuitState::HalfOpen)
        };
        change.into_iter().for_each(changed);
        Ok(Some(Probe {
            breakers: self,
            key: key.clone(),
        }))
    }

    fn record(
        &self,
        key: &(AgentId, String),
        is_down: bool,
        now: Timestamp,
        changed: &(dyn Fn(CircuitChange) + Send + Sync),
    ) {
        let change = {
            let mut circuits = self.circuits.lock();
            let circuit = circuits.entry(key.clone()).or_default();
            circuit.failures = match is_down {
                true => circuit.failures.saturating_add(1),
                false => 0,
            };
            let limit = self.settings.failures_to_open;
            let opens = match circuit.state {
                CircuitState::Closed => limit > 0 && circuit.failures >= limit,
                CircuitState::HalfOpen => is_down,
                // The call began before the circuit was opened; the pause stays.
                CircuitState::Open { .. } => return,
            };
            let state = match (opens, is_down) {
                (true, _) => CircuitState::Open {
                    until: now.plus_ms(self.settings.pause_ms),
                },
                (false, false) => CircuitState::Closed,
                (false, true) => circuit.state,
            };
            circuit.become_state(key, state)
        };
        change.into_iter().for_each(changed);
    }
}

impl Circuit {
    fn become_state(
        &mut self,
        (agent, provider): &(AgentId, String),
        to: CircuitState,
    ) -> Option<CircuitChange> {
        let from = std::mem::replace(&mut self.state, to);
        (from != to).then(|| CircuitChange {
            agent: agent.clone(),
            provider: provider.clone(),
            from,
            to,
        })
    }
}

/// The right to make the one call of a half-open circuit. Given back also when the call is abandoned.
struct Probe<'a> {
    breakers: &'a CircuitBreakers,
    key: (AgentId, String),
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let Some(circuit) = self.breakers.circuits.lock().get_mut(&self.key) {
            circuit.is_probed = false;
        }
    }
}

fn refused(provider: &str) -> ProviderFailure {
    let message =
        format!("The model provider `{provider}` failed too often and is not called now.");
    ProviderFailure::new("provider_circuit_open", message).transient()
}
