//! Limits on concurrent outbound calls: in total, per tenant and per target.

use super::layer::CallsLayer;
use crate::failure::Failure;

const DEFAULT_MAX: usize = 256;
/// Each call holds a connection and a task.
const MAX: std::ops::RangeInclusive<usize> = 1..=4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) max: usize,
    /// Half of the total if absent.
    pub(crate) per_tenant: Option<usize>,
    /// For one tenant; only its fair share applies if absent.
    pub(crate) per_target: Option<usize>,
}

pub(super) fn calls(layer: CallsLayer) -> Result<Calls, Failure> {
    let max = layer.max.unwrap_or(DEFAULT_MAX);
    if !MAX.contains(&max) {
        return Err(Failure::new(
            format!("{max} calls at once cannot be made"),
            format!(
                "Set TANDEM_CALLS_MAX (in tandem.toml: calls.max) to a number from {} to {}.",
                MAX.start(),
                MAX.end()
            ),
        ));
    }
    let within = |name: &str, given: Option<usize>| match given {
        Some(limit) if !(1..=max).contains(&limit) => Err(Failure::new(
            format!("calls.{name} is {limit}, of {max} calls at once in all"),
            format!("Set it to a number from 1 to {max}, or leave it out."),
        )),
        given => Ok(given),
    };
    Ok(Calls {
        max,
        per_tenant: within("per_tenant", layer.per_tenant)?,
        per_target: within("per_target", layer.per_target)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_tenant_and_per_target_limits_are_within_max() {
        let layer = |max, per_tenant, per_target| CallsLayer {
            max,
            per_tenant,
            per_target,
        };
        let plain = calls(layer(None, None, None)).unwrap();
        assert_eq!((plain.max, plain.per_tenant), (256, None));
        let chosen = calls(layer(Some(8), Some(8), Some(1))).unwrap();
        assert_eq!((chosen.per_tenant, chosen.per_target), (Some(8), Some(1)));
        for wrong in [
            layer(Some(0), None, None),
            layer(Some(5_000), None, None),
            layer(Some(8), Some(9), None),
            layer(Some(8), None, Some(0)),
        ] {
            assert!(calls(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
