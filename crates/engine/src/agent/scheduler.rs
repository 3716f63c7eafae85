//! How an agent's schedules are executed.

use super::schedule::on_missed;
use crate::local_time;
use crate::object_reader::ObjectReader;
use tandem_record::conversation::{OnMissed, RunLimits};

const HOUR_MS: u64 = 3_600_000;
const UTC: &str = "UTC";

#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerSpec {
    /// Occurrences take place.
    pub enabled: bool,
    /// The zone in which triggers are read.
    pub timezone: String,
    /// How late an occurrence may be looked at: twice this time, and never less than a minute.
    pub poll_interval_ms: u64,
    /// How long a run belongs to whoever works on it without a sign of life.
    pub claim_ttl_ms: u64,
    /// Turns of one run under way at once.
    pub max_concurrent_runs: u32,
    /// Turns of one campaign that begin within a minute.
    pub per_minute: Option<u32>,
    pub default_on_missed: OnMissed,
    /// The model and flows are offered the tools for schedules of the current user.
    pub tools: bool,
}

impl Default for SchedulerSpec {
    fn default() -> Self {
        Self {
            enabled: true,
            timezone: UTC.to_owned(),
            poll_interval_ms: 1_000,
            claim_ttl_ms: 60_000,
            max_concurrent_runs: 8,
            per_minute: None,
            default_on_missed: OnMissed::default(),
            tools: false,
        }
    }
}

impl SchedulerSpec {
    /// An occurrence that is older was missed.
    pub fn late_after_ms(&self) -> u64 {
        const MINUTE_MS: u64 = 60_000;
        MINUTE_MS.max(2 * self.poll_interval_ms)
    }

    pub fn run_limits(&self) -> RunLimits {
        RunLimits {
            max_concurrent: self.max_concurrent_runs,
            per_minute: self.per_minute,
            claim_ttl_ms: self.claim_ttl_ms,
        }
    }
}

pub(super) fn scheduler(config: &ObjectReader<'_>) -> SchedulerSpec {
    let settings = config.section("scheduler");
    let default = SchedulerSpec::default();
    let executor = settings.choice("executor", &[("in_process", true), ("external", false)]);
    if executor == Some(false) {
        let message = "this host executes schedules itself; leave it out or write in_process";
        settings.report("executor", message);
    }
    let number = |name, range, otherwise| settings.integer(name, range).unwrap_or(otherwise);
    SchedulerSpec {
        enabled: settings.flag("enabled").unwrap_or(default.enabled),
        timezone: timezone(&settings),
        poll_interval_ms: number("pollIntervalMs", 100..=HOUR_MS, default.poll_interval_ms),
        claim_ttl_ms: number("claimTtlSeconds", 5..=86_400, 60) * 1_000,
        max_concurrent_runs: number("maxConcurrentRuns", 1..=1_000, 8) as u32,
        per_minute: settings
            .integer("perMinute", 1..=1_000_000)
            .map(|number| number as u32),
        default_on_missed: on_missed(&settings, "defaultOnMissed").unwrap_or_default(),
        tools: settings.flag("tools").unwrap_or_default(),
    }
}

fn timezone(settings: &ObjectReader<'_>) -> String {
    let name = settings.raw_text("timezone");
    let name = name.unwrap_or_else(|| UTC.to_owned());
    if local_time::zone(&name).is_none() {
        let message = format!("{name:?} is no time zone; write one such as Europe/Berlin");
        settings.report("timezone", message);
    }
    name
}
