//! `[retention]`: how long the log of an ended run is kept, by workflow, by tenant, and by default.

use crate::failure::Failure;
use serde::Deserialize;
use std::collections::BTreeMap;
use tandem_record::{TenantId, WorkflowId};
use tandem_runtime::Retention;

const DAY: u64 = 24 * 3600;
const DEFAULT_SECONDS: u64 = 30 * DAY;
/// A century.
const MAX_SECONDS: u64 = 100 * 31_557_600;
/// Maximum number of rules of one kind.
const MAX_RULES: usize = 1000;

/// The settings as written: `30d`, `12h`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetentionLayer {
    default: Option<String>,
    #[serde(default)]
    tenants: BTreeMap<String, String>,
    #[serde(default)]
    workflows: BTreeMap<String, String>,
}

/// `seconds`, from `TANDEM_RETENTION_SECONDS`, is the default.
pub(super) fn retention(seconds: Option<u64>, layer: RetentionLayer) -> Result<Retention, Failure> {
    let default = match (seconds, &layer.default) {
        (Some(seconds), _) => in_range(seconds).ok_or_else(|| {
            Failure::new(
                format!("ended runs cannot be kept for {seconds} seconds"),
                "Set TANDEM_RETENTION_SECONDS to a number from 1 to 3155760000, a century.",
            )
        })?,
        (None, Some(text)) => parse_duration("default", text)?,
        (None, None) => DEFAULT_SECONDS,
    };
    for (kind, rules) in [("tenants", &layer.tenants), ("workflows", &layer.workflows)] {
        if rules.len() > MAX_RULES {
            return Err(Failure::new(
                format!("retention.{kind} has {} rules", rules.len()),
                format!("It may have {MAX_RULES}."),
            ));
        }
    }
    let tenants = layer.tenants.iter().map(|(name, text)| {
        let retention_seconds = parse_duration(&format!("tenants.{name}"), text)?;
        Ok((TenantId::new(name), retention_seconds * 1000))
    });
    let workflows = layer.workflows.iter().map(|(name, text)| {
        let retention_seconds = parse_duration(&format!("workflows.{name}"), text)?;
        Ok((WorkflowId::new(name), retention_seconds * 1000))
    });
    Ok(Retention {
        default_ms: default * 1000,
        tenants: tenants.collect::<Result<_, Failure>>()?,
        workflows: workflows.collect::<Result<_, Failure>>()?,
    })
}

fn in_range(seconds: u64) -> Option<u64> {
    (1..=MAX_SECONDS).contains(&seconds).then_some(seconds)
}

fn parse_duration(key: &str, text: &str) -> Result<u64, Failure> {
    let parsed = || {
        let unit = text.chars().last()?;
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => DAY,
            'w' => 7 * DAY,
            _ => return None,
        };
        in_range(number.checked_mul(seconds)?)
    };
    parsed().ok_or_else(|| {
        Failure::new(
            format!("retention.{key} is {text:?}, which is no length of time"),
            "Write it like 90d, 12h, 30m or 45s (also w for weeks), up to 36525d.",
        )
    })
}
