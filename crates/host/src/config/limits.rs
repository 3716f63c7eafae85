//! Limits of one run.

use super::Environment;
use crate::failure::Failure;
use serde::Deserialize;
use std::ops::RangeInclusive;
use tandem_runtime::Limits;

const MIB: u64 = 1024 * 1024;
const STATE_BYTES: RangeInclusive<u64> = MIB..=1024 * MIB;
/// An event fits into the store even if JSON escapes all of it.
const EVENT_BYTES: RangeInclusive<u64> = MIB / 16..=10 * MIB;
const DESCENDANTS: RangeInclusive<u64> = 1..=1_000_000;

/// The settings of one source; `None` where it has none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsLayer {
    pub(crate) max_state_bytes: Option<u64>,
    pub(crate) max_event_bytes: Option<u64>,
    pub(crate) max_descendants: Option<u64>,
}

impl LimitsLayer {
    pub(super) fn of(env: &Environment<'_>) -> Result<Option<Self>, Failure> {
        let hint = "Give a whole number.";
        let layer = Self {
            max_state_bytes: env.number("TANDEM_MAX_STATE_BYTES", hint)?,
            max_event_bytes: env.number("TANDEM_MAX_EVENT_BYTES", hint)?,
            max_descendants: env.number("TANDEM_MAX_DESCENDANTS", hint)?,
        };
        Ok((layer != Self::default()).then_some(layer))
    }

    pub(super) fn over(self, below: Self) -> Self {
        Self {
            max_state_bytes: self.max_state_bytes.or(below.max_state_bytes),
            max_event_bytes: self.max_event_bytes.or(below.max_event_bytes),
            max_descendants: self.max_descendants.or(below.max_descendants),
        }
    }

    /// The limits of a run under these settings.
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        let standard = Limits::default();
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let state = within("max_state_bytes", self.max_state_bytes, STATE_BYTES)?;
        let event = within("max_event_bytes", self.max_event_bytes, EVENT_BYTES)?;
        let descendants = within("max_descendants", self.max_descendants, DESCENDANTS)?;
        Ok(Limits {
            max_state_bytes: state.map_or(standard.max_state_bytes, bytes),
            max_event_bytes: event.map_or(standard.max_event_bytes, bytes),
            max_decision_bytes: event.map_or(standard.max_decision_bytes, bytes),
            max_descendants: descendants.unwrap_or(standard.max_descendants),
            ..standard
        })
    }
}

fn within(
    name: &str,
    given: Option<u64>,
    allowed: RangeInclusive<u64>,
) -> Result<Option<u64>, Failure> {
    match given {
        Some(n) if !allowed.contains(&n) => Err(Failure::new(
            format!("the limit {name} cannot be {n}"),
            format!(
                "Set TANDEM_{} (in tandem.toml: limits.{name}) to a number from {} to {}.",
                name.to_ascii_uppercase(),
                allowed.start(),
                allowed.end()
            ),
        )),
        given => Ok(given),
    }
}
