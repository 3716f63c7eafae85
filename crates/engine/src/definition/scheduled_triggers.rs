//! Triggers of a document that start its runs by the clock.
//!
//! `config` of such a trigger has one of `cron`, `at` and `delayMs`; `timezone`, `inputs` and `missedTick` are optional.
//! A document whose status lets no run start has none.

use super::document::Trigger;
use super::{Definition, Permissions, Problem};
use crate::ids::definition_hash;
use crate::local_time;
use crate::node::settings::{Setting, unknown_keys, value};
use crate::object_reader::{FieldProblems, ObjectReader};
use crate::run::check_all_inputs;
use crate::schedule::parse_cron;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::conversation::{
    MissedPolicy, OnMissed, ScheduleDefinition, ScheduleTarget, ScheduleTrigger,
    ScheduledActiveFlow, WorkflowTarget,
};
use tandem_record::{Object, Timestamp};

const SCHEDULE: &str = "schedule";
const DEFAULT_ZONE: &str = "UTC";
/// How far ahead a run may be scheduled. Every expression takes place more often: the longest pause is that of a 29th of
/// February, eight years.
const MAX_FUTURE_DAYS: u64 = 3_660;
/// The same, as readers of the discovery document are told.
pub const MAX_FUTURE_HORIZON: &str = "P3660D";
/// The reason of a moment beyond it.
pub const HORIZON_EXCEEDED: &str = "schedule_horizon_exceeded";
const DAY_MS: u64 = 86_400_000;
/// How old an occurrence may be that is made up for.
const MADE_UP_FOR_SECONDS: u64 = 366 * 86_400;
/// The largest whole number that every reader of JSON understands.
const MAX_WHOLE: u64 = (1 << 53) - 1;
/// Bytes of the inputs as JSON.
const MAX_INPUT_BYTES: usize = 64 * 1024;

const SETTINGS: &[Setting] = &[
    value("cron"),
    value("at"),
    value("delayMs"),
    value("timezone"),
    value("inputs"),
    value("missedTick"),
];

/// A trigger that starts runs by the clock, as its document has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduledTrigger {
    pub id: String,
    /// Changes with what it says.
    pub hash: String,
    time: TriggerTime,
    timezone: String,
    on_missed: OnMissed,
    inputs: Option<Object>,
    /// Where in the document its time is written.
    place: String,
}

#[derive(Debug, Clone, PartialEq)]
enum TriggerTime {
    Cron {
        expr: String,
    },
    At(Timestamp),
    /// This long after the document was registered.
    Delay {
        ms: u64,
    },
}

impl Definition {
    /// Its triggers that start runs by the clock.
    pub fn scheduled_triggers(&self) -> Vec<ScheduledTrigger> {
        let unread = FieldProblems::default();
        let enabled = enabled(self);
        enabled
            .filter_map(|(at, trigger)| read(trigger, at, &unread))
            .collect()
    }
}

/// The enabled triggers with their places.
fn enabled(definition: &Definition) -> impl Iterator<Item = (String, &Trigger)> {
    let document = &definition.document;
    let may_run = may_run(document.status.as_deref());
    let triggers = document.triggers.iter().enumerate();
    triggers
        .filter(move |(_, trigger)| may_run && trigger.kind == SCHEDULE && trigger.enabled)
        .map(|(i, trigger)| (format!("/triggers/{i}/config"), trigger))
}

fn may_run(status: Option<&str>) -> bool {
    !matches!(status, Some("archived" | "inactive"))
}

/// The enabled triggers of a stored document, and a hash of what each says.
pub fn scheduled_trigger_hashes(document: &Value) -> BTreeMap<String, String> {
    let triggers = document["triggers"].as_array().into_iter().flatten();
    let enabled = triggers.filter(|trigger| {
        may_run(document["status"].as_str())
            && trigger["type"] == SCHEDULE
            && trigger["enabled"] != Value::Bool(false)
    });
    enabled
        .filter_map(|trigger| {
            let id = trigger["id"].as_str()?.to_owned();
            Some((id, definition_hash(&trigger["config"]).to_string()))
        })
        .collect()
}

/// What keeps a trigger from ever starting a run, whenever it is registered.
pub(super) fn problems(definition: &Definition, permissions: Permissions<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, trigger) in enabled(definition) {
        let unknown = unknown_keys("a schedule trigger", SETTINGS, &trigger.config).into_iter();
        problems.extend(unknown.map(|problem| Problem {
            path: format!("{at}{}", problem.path),
            warning: permissions.unknown_settings,
            ..problem
        }));
        let found = FieldProblems::default();
        let read = read(trigger, at.clone(), &found);
        let found = found.into_inner().into_iter();
        problems.extend(found.map(|problem| Problem::new(problem.path, problem.message)));
        let Some(read) = read else { continue };
        if let TriggerTime::Delay { ms } = read.time
            && ms > MAX_FUTURE_DAYS * DAY_MS
        {
            problems.push(beyond_horizon(&read.place));
        }
        let none = Object::new();
        let inputs = read.inputs.as_ref().unwrap_or(&none);
        let of_inputs = check_all_inputs(definition, &[], inputs).into_iter();
        problems.extend(of_inputs.map(|problem| Problem {
            path: format!("{at}{}", problem.path),
            ..problem
        }));
    }
    problems
}

fn beyond_horizon(place: &str) -> Problem {
    let message = format!("is too far ahead: at most {MAX_FUTURE_DAYS} days");
    Problem::new(place, message).with_reason(HORIZON_EXCEEDED)
}

fn read(trigger: &Trigger, at: String, problems: &FieldProblems) -> Option<ScheduledTrigger> {
    let config = ObjectReader::of(&trigger.config, at, problems);
    let timezone = config.text("timezone");
    let timezone = timezone.unwrap_or_else(|| DEFAULT_ZONE.to_owned());
    let is_zone = local_time::zone(&timezone).is_some();
    if !is_zone {
        let message = format!("{timezone:?} is no time zone; write one such as Europe/Berlin");
        config.report("timezone", message);
    }
    let missed_ticks = [
        ("skip", MissedPolicy::Skip),
        ("fire-once", MissedPolicy::CatchUp),
    ];
    let policy = config.choice("missedTick", &missed_ticks);
    let inputs = config.json_object("inputs");
    let bytes = inputs
        .as_ref()
        .map_or(0, |i| Value::from(i.clone()).to_string().len());
    if bytes > MAX_INPUT_BYTES {
        config.report("inputs", format!("has at most {MAX_INPUT_BYTES} bytes"));
    }
    let (name, time) = time(&config, &timezone)?;
    is_zone.then(|| ScheduledTrigger {
        id: trigger.id.clone(),
        hash: definition_hash(&Value::Object(trigger.config.clone())).to_string(),
        time,
        timezone,
        on_missed: on_missed(policy.unwrap_or_default()),
        inputs,
        place: config.path(name),
    })
}

fn on_missed(policy: MissedPolicy) -> OnMissed {
    match policy {
        MissedPolicy::Skip => OnMissed::default(),
        MissedPolicy::CatchUp => OnMissed {
            policy,
            max_runs: Some(1),
            max_age_seconds: Some(MADE_UP_FOR_SECONDS),
        },
    }
}

/// The field that says when, and what it says.
fn time(config: &ObjectReader<'_>, timezone: &str) -> Option<(&'static str, TriggerTime)> {
    let fields = ["cron", "at", "delayMs"];
    let mut given = fields.into_iter().filter(|name| config.get(name).is_some());
    let Some(name) = given.next() else {
        config.report_all("needs one of cron, at and delayMs");
        return None;
    };
    if let Some(second) = given.next() {
        config.report(second, format!("does not go with {name}"));
        return None;
    }
    let time = match name {
        "cron" => {
            let expr = config.text(name).unwrap_or_default();
            if let Err(why) = parse_cron(&expr) {
                config.report(name, why);
                return None;
            }
            TriggerTime::Cron { expr }
        }
        "at" => {
            let text = config.text(name).unwrap_or_default();
            let Some(at) = local_time::read_moment(&text, timezone) else {
                let message = "must be a moment such as 2031-03-03T09:00:00Z; without an offset it \
                               is read in the time zone of the trigger";
                config.report(name, message);
                return None;
            };
            TriggerTime::At(at)
        }
        _ => TriggerTime::Delay {
            ms: config.integer(name, 0..=MAX_WHOLE)?,
        },
    };
    Some((name, time))
}

impl ScheduledTrigger {
    /// Why it cannot be registered now.
    pub fn problem_at(&self, now: Timestamp) -> Option<Problem> {
        let TriggerTime::At(at) = self.time else {
            return None;
        };
        if at > now.plus_ms(MAX_FUTURE_DAYS * DAY_MS) {
            return Some(beyond_horizon(&self.place));
        }
        let why = match self.on_missed.policy {
            MissedPolicy::Skip if at < now => "has passed",
            MissedPolicy::CatchUp if now.ms_since(at) > self.on_missed.max_age_ms() => {
                "has passed too long ago to be made up for"
            }
            _ => return None,
        };
        Some(Problem::new(self.place.clone(), why))
    }

    /// The schedule that carries it out, from now on.
    pub fn definition(self, of: WorkflowTarget, now: Timestamp) -> ScheduleDefinition {
        ScheduleDefinition {
            flow_id: None,
            trigger: match self.time {
                TriggerTime::Cron { expr } => ScheduleTrigger::Cron { expr },
                TriggerTime::At(run_at) => ScheduleTrigger::Once { run_at },
                TriggerTime::Delay { ms } => ScheduleTrigger::Once {
                    run_at: now.plus_ms(ms),
                },
            },
            timezone: self.timezone,
            target: ScheduleTarget::Workflow(of),
            allow_session_bootstrap: false,
            on_missed: self.on_missed,
            on_active_flow: ScheduledActiveFlow::default(),
            metadata: None,
            input: self.inputs.map(Value::Object),
        }
    }
}

#[cfg(test)]
mod tests;
