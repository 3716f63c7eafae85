//! Reads one schedule, from an agent's file or from a request, and writes it as it was read.

use super::settings::SCHEDULE;
use super::{AgentProblem, AgentSpec, SchedulerSpec, names};
use crate::local_time;
use crate::node::settings::unknown_keys;
use crate::object_reader::{FieldProblems, ObjectReader};
use crate::schedule::{UserQuery, parse_cron};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::conversation::{
    CampaignTarget, MissedPolicy, OnMissed, ScheduleDefinition, ScheduleTarget, ScheduleTrigger,
    ScheduledActiveFlow, SegmentSelector, UserTarget,
};
use tandem_record::{FlowId, Object, SessionId, Timestamp};

const MAX_SCHEDULES: usize = 1_000;
const MAX_CAUGHT_UP: u64 = 100;
const MAX_AGE_SECONDS: u64 = 31 * 86_400;
const MAX_NAME: usize = 128;
const MAX_USER_ID: usize = 512;
/// Bytes of metadata and input together, as JSON.
const MAX_DATA_BYTES: usize = 64 * 1024;

pub(super) fn schedules(
    config: &ObjectReader<'_>,
    scheduler: &SchedulerSpec,
    problems: &FieldProblems,
) -> BTreeMap<String, ScheduleDefinition> {
    let mut schedules = BTreeMap::new();
    for (key, value) in config.entries("schedules", MAX_SCHEDULES) {
        let at = format!("/schedules/{}", names::escaped(key));
        if key.is_empty() || key.len() > MAX_NAME || key.contains(char::is_control) {
            problems.report(&at, format!("a key has 1 to {MAX_NAME} bytes"));
        }
        let reader = ObjectReader::new(value, at.as_str(), problems);
        if let Some(read) = reader.and_then(|reader| read(&reader, scheduler)) {
            schedules.insert(key.to_owned(), read);
        }
    }
    schedules
}

/// Reads the schedule of a request. `now` is when it is made: what is past is refused unless it is caught up.
pub fn read_schedule(
    value: &Value,
    agent: &AgentSpec,
    now: Timestamp,
) -> Result<ScheduleDefinition, Vec<AgentProblem>> {
    let problems = FieldProblems::default();
    if let Value::Object(given) = value {
        for problem in unknown_keys("a schedule", SCHEDULE, given) {
            problems.report(problem.path, problem.message);
        }
    }
    let reader = ObjectReader::new(value, "", &problems);
    let definition = reader.and_then(|reader| read(&reader, &agent.scheduler));
    if let Some(definition) = &definition {
        if let Some(flow) = &definition.flow_id {
            names::known_flow(agent, flow.as_str(), "/flowId", &problems);
        }
        if let Some(why) = missed_for_good(definition, now) {
            problems.report("/trigger/runAt", why);
        }
        check_input(definition, agent, &problems);
    }
    let problems = problems.into_inner().into_iter();
    let problems: Vec<AgentProblem> = problems
        .map(|problem| AgentProblem {
            path: problem.path,
            message: problem.message,
        })
        .collect();
    definition.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Why a moment that has passed cannot be caught up.
fn missed_for_good(definition: &ScheduleDefinition, now: Timestamp) -> Option<&'static str> {
    let ScheduleTrigger::Once { run_at } = definition.trigger else {
        return None;
    };
    if run_at >= now {
        return None;
    }
    let missed = &definition.on_missed;
    match missed.policy {
        MissedPolicy::Skip => Some("has passed"),
        MissedPolicy::CatchUp if now.ms_since(run_at) > missed.max_age_ms() => {
            Some("has passed longer ago than onMissed.maxAgeSeconds")
        }
        MissedPolicy::CatchUp => None,
    }
}

fn check_input(definition: &ScheduleDefinition, agent: &AgentSpec, problems: &FieldProblems) {
    let flow = definition.flow_id.as_ref();
    let flow = flow.and_then(|flow| agent.flows.get(flow.as_str()));
    let Some(schema) = flow.and_then(|flow| flow.input_schema.as_ref()) else {
        return;
    };
    let input = definition.input.as_ref().unwrap_or(&Value::Null);
    let meter = tandem_schema::Meter::with_limit(tandem_schema::MAX_WORK);
    for error in schema.errors(input, &meter) {
        problems.report("/input", error);
    }
}

fn read(fields: &ObjectReader<'_>, scheduler: &SchedulerSpec) -> Option<ScheduleDefinition> {
    let flow_id = fields.required_text("flowId");
    let trigger = trigger(fields, &scheduler.timezone);
    let target = target(fields);
    let missed = on_missed(fields, "onMissed");
    let on_active_flow = fields.choice(
        "onActiveFlow",
        &[
            ("skip", ScheduledActiveFlow::Skip),
            ("preempt", ScheduledActiveFlow::Preempt),
        ],
    );
    let metadata = fields.json_object("metadata");
    let input = fields.get("input").cloned();
    let bytes = json!([metadata, input]).to_string().len();
    if bytes > MAX_DATA_BYTES {
        let message = format!("metadata and input have at most {MAX_DATA_BYTES} bytes");
        fields.report("metadata", message);
    }
    Some(ScheduleDefinition {
        flow_id: Some(FlowId::from(flow_id)),
        trigger: trigger?,
        timezone: scheduler.timezone.clone(),
        target: target?,
        allow_session_bootstrap: fields.flag("allowSessionBootstrap").unwrap_or_default(),
        on_missed: missed.unwrap_or_else(|| scheduler.default_on_missed.clone()),
        on_active_flow: on_active_flow.unwrap_or_default(),
        metadata,
        input,
    })
}

fn required<'a>(fields: &ObjectReader<'a>, name: &str) -> Option<ObjectReader<'a>> {
    if fields.get(name).is_none() {
        fields.report(name, "is required");
    }
    fields.object(name)
}

/// Fields of the other kind mean that something else was meant.
fn only(fields: &ObjectReader<'_>, kind: &str, others: &[&str]) {
    for name in others {
        if fields.get(name).is_some() {
            fields.report(name, format!("does not belong to {kind}"));
        }
    }
}

fn trigger(fields: &ObjectReader<'_>, timezone: &str) -> Option<ScheduleTrigger> {
    let trigger = required(fields, "trigger")?;
    if trigger.get("type").is_none() {
        trigger.report("type", "is required");
    }
    match trigger.choice("type", &[("cron", true), ("once", false)])? {
        true => {
            only(&trigger, "cron", &["runAt"]);
            let expr = trigger.required_text("expr");
            match parse_cron(&expr) {
                Ok(_) => Some(ScheduleTrigger::Cron { expr }),
                Err(why) if !expr.is_empty() => {
                    trigger.report("expr", why);
                    None
                }
                Err(_) => None,
            }
        }
        false => {
            only(&trigger, "once", &["expr"]);
            let text = trigger.required_text("runAt");
            let run_at = local_time::read_moment(&text, timezone);
            if run_at.is_none() && !text.is_empty() {
                let message = "must be a moment such as 2031-03-03T09:00:00Z; without an offset \
                               it is read in the agent's time zone";
                trigger.report("runAt", message);
            }
            Some(ScheduleTrigger::Once { run_at: run_at? })
        }
    }
}

fn target(fields: &ObjectReader<'_>) -> Option<ScheduleTarget> {
    let target = required(fields, "target")?;
    if target.get("kind").is_none() {
        target.report("kind", "is required");
    }
    match target.choice("kind", &[("user", true), ("segment", false)])? {
        true => {
            only(&target, "a user", &["segment", "campaignId"]);
            let user = target.required_text("userExternalId");
            if user.len() > MAX_USER_ID {
                target.report("userExternalId", format!("has at most {MAX_USER_ID} bytes"));
            }
            Some(ScheduleTarget::User(UserTarget {
                user_external_id: user,
                session_id: target.text("sessionId").map(SessionId::from),
            }))
        }
        false => {
            only(&target, "a segment", &["userExternalId", "sessionId"]);
            let campaign_id = target.text("campaignId");
            if campaign_id.as_ref().is_some_and(|id| id.len() > MAX_NAME) {
                target.report("campaignId", format!("has at most {MAX_NAME} bytes"));
            }
            Some(ScheduleTarget::Segment(CampaignTarget {
                campaign_id,
                segment: segment(&required(&target, "segment")?)?,
            }))
        }
    }
}

fn segment(fields: &ObjectReader<'_>) -> Option<SegmentSelector> {
    if fields.get("type").is_none() {
        fields.report("type", "is required");
    }
    let kinds = ["all", "active_since", "tag", "custom_query"].map(|name| (name, name));
    let kind = fields.choice("type", &kinds)?;
    let own = match kind {
        "active_since" => "activeSinceDays",
        "tag" => "tag",
        "custom_query" => "query",
        _ => "",
    };
    let all = ["activeSinceDays", "tag", "query"];
    let others: Vec<&str> = all.into_iter().filter(|name| *name != own).collect();
    only(fields, kind, &others);
    Some(match kind {
        "all" => SegmentSelector::All,
        "active_since" => {
            if fields.get("activeSinceDays").is_none() {
                fields.report("activeSinceDays", "is required");
            }
            let days = fields.integer("activeSinceDays", 1..=3_660)?;
            SegmentSelector::ActiveSince {
                active_since_days: days as u32,
            }
        }
        "tag" => SegmentSelector::Tag {
            tag: fields.required_text("tag"),
        },
        _ => {
            let query = fields.required_text("query");
            if let Err(why) = UserQuery::parse(&query)
                && !query.is_empty()
            {
                fields.report("query", why);
            }
            SegmentSelector::CustomQuery { query }
        }
    })
}

pub(super) fn on_missed(fields: &ObjectReader<'_>, name: &str) -> Option<OnMissed> {
    let missed = fields.object(name)?;
    let policies = [
        ("skip", MissedPolicy::Skip),
        ("catch_up", MissedPolicy::CatchUp),
    ];
    if missed.get("policy").is_none() {
        missed.report("policy", "is required");
    }
    let policy = missed.choice("policy", &policies).unwrap_or_default();
    if policy == MissedPolicy::Skip {
        only(&missed, "skip", &["maxRuns", "maxAgeSeconds"]);
    }
    Some(OnMissed {
        policy,
        max_runs: missed
            .integer("maxRuns", 1..=MAX_CAUGHT_UP)
            .map(|number| number as u32),
        max_age_seconds: missed.integer("maxAgeSeconds", 1..=MAX_AGE_SECONDS),
    })
}

/// A definition as an author would write it.
pub fn written_schedule(definition: &ScheduleDefinition) -> Object {
    let mut trigger = json!(definition.trigger);
    if let ScheduleTrigger::Once { run_at } = definition.trigger {
        trigger["runAt"] = json!(run_at.rfc3339());
    }
    let mut written = json!({
        "flowId": definition.flow_id,
        "trigger": trigger,
        "target": definition.target,
        "allowSessionBootstrap": definition.allow_session_bootstrap,
        "onMissed": definition.on_missed,
        "onActiveFlow": definition.on_active_flow,
    });
    let fields = written.as_object_mut().expect("an object was built");
    let metadata = definition.metadata.as_ref();
    fields.extend(metadata.map(|metadata| ("metadata".to_owned(), json!(metadata))));
    let input = definition.input.as_ref();
    fields.extend(input.map(|input| ("input".to_owned(), input.clone())));
    fields.clone()
}
