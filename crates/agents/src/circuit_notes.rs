//! Changes of circuits of providers, until the runtime records them: a change belongs to the call that made it.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use tandem_nodes::{CircuitChange, CircuitState};
use tandem_record::EffectId;
use tandem_record::conversation::{ProviderCircuit, ProviderCircuitChange};

/// Calls whose changes nobody has taken: they were given up. The others are forgotten with them.
const MAX_CALLS: usize = 1_000;

#[derive(Default)]
pub(crate) struct CircuitNotes(Mutex<BTreeMap<EffectId, Vec<ProviderCircuitChange>>>);

impl CircuitNotes {
    pub(crate) fn note(&self, call: &EffectId, change: &CircuitChange) {
        let mut notes = self.0.lock();
        if notes.len() >= MAX_CALLS {
            notes.clear();
        }
        let (to, until) = recorded(change.to);
        notes
            .entry(call.clone())
            .or_default()
            .push(ProviderCircuitChange {
                provider: change.provider.clone(),
                from: recorded(change.from).0,
                to,
                until,
            });
    }

    pub(crate) fn take(&self, call: &EffectId) -> Vec<ProviderCircuitChange> {
        self.0.lock().remove(call).unwrap_or_default()
    }
}

fn recorded(state: CircuitState) -> (ProviderCircuit, Option<tandem_record::Timestamp>) {
    match state {
        CircuitState::Closed => (ProviderCircuit::Closed, None),
        CircuitState::Open { until } => (ProviderCircuit::Open, Some(until)),
        CircuitState::HalfOpen => (ProviderCircuit::HalfOpen, None),
    }
}
