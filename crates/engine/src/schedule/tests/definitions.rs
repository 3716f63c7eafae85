//! What may be written as a schedule, and where each mistake is found.

use super::harness::{agent, at, cron, for_tag, for_user, shown};
use crate::agent::{AgentSpec, read_schedule, written_schedule};
use serde_json::{Value, json};
use tandem_record::conversation::{ScheduleDefinition, ScheduleTrigger};

const NOW: &str = "2031-03-03T08:30:05Z";

fn read(definition: &Value) -> Result<ScheduleDefinition, Vec<String>> {
    let agent = agent(json!({"scheduler": {"timezone": "Europe/Berlin"}}));
    let read = read_schedule(definition, &agent, at(NOW));
    read.map_err(|problems| problems.into_iter().map(|problem| problem.path).collect())
}

fn with(mut definition: Value, path: &str, value: Value) -> Value {
    let (parent, name) = path.rsplit_once('/').expect("a path");
    let parent = definition.pointer_mut(parent).expect("it is there");
    parent[name] = value;
    definition
}

fn once(run_at: &str) -> Value {
    for_user(json!({"type": "once", "runAt": run_at}))
}

#[test]
fn written_form_reads_back() {
    let definitions = [
        for_user(cron("0 9 * * *")),
        with(for_tag(cron("0 9 * * *")), "/input", json!({"n": 1})),
        with(once("2031-03-03T10:00:00Z"), "/metadata", json!({"a": [1]})),
        with(
            for_user(cron("0 9 * * *")),
            "/onMissed",
            json!({"policy": "catch_up", "maxRuns": 2}),
        ),
    ];
    for definition in definitions {
        let first = read(&definition).expect("it is good");
        let again = read(&Value::Object(written_schedule(&first)));
        assert_eq!(again, Ok(first));
    }
}

#[test]
fn mistakes_are_named_by_their_place() {
    let good = || for_user(cron("0 9 * * *"));
    let segment = |segment: Value| with(for_tag(cron("0 9 * * *")), "/target/segment", segment);
    let cases = [
        (with(good(), "/flowId", json!("nowhere")), "/flowId"),
        (
            with(good(), "/trigger/expr", json!("61 9 * * *")),
            "/trigger/expr",
        ),
        (
            with(good(), "/trigger/type", json!("daily")),
            "/trigger/type",
        ),
        (with(good(), "/trigger/runAt", json!("x")), "/trigger/runAt"),
        (once("soon"), "/trigger/runAt"),
        (once("2031-03-03T08:00:00Z"), "/trigger/runAt"),
        (with(good(), "/target", json!({})), "/target/kind"),
        (
            with(good(), "/target/userExternalId", json!("")),
            "/target/userExternalId",
        ),
        (
            with(good(), "/target/segment", json!({"type": "all"})),
            "/target/segment",
        ),
        (with(good(), "/target/spare", json!(1)), "/target/spare"),
        (segment(json!({"type": "tag"})), "/target/segment/tag"),
        (
            segment(json!({"type": "active_since"})),
            "/target/segment/activeSinceDays",
        ),
        (
            segment(json!({"type": "custom_query", "query": "name"})),
            "/target/segment/query",
        ),
        (
            segment(json!({"type": "all", "tag": "x"})),
            "/target/segment/tag",
        ),
        (
            with(good(), "/onMissed", json!({"policy": "skip", "maxRuns": 2})),
            "/onMissed/maxRuns",
        ),
        (
            with(good(), "/onActiveFlow", json!("defer")),
            "/onActiveFlow",
        ),
        (with(good(), "/spare", json!(1)), "/spare"),
    ];
    for (definition, path) in cases {
        let paths = read(&definition).expect_err("it is wrong");
        assert!(
            paths.iter().any(|found| found == path),
            "{definition}: {paths:?}"
        );
    }
}

/// Z-160
#[test]
fn moment_of_a_one_off_is_read_in_the_agents_zone_and_may_not_have_passed() {
    let moment = |definition: &Value| match read(definition)?.trigger {
        ScheduleTrigger::Once { run_at } => Ok(shown(run_at)),
        ScheduleTrigger::Cron { .. } => unreachable!("it is a one-off"),
    };
    let text = |text: &str| Ok(text.to_owned());
    assert_eq!(
        moment(&once("2031-03-03T10:00:00")),
        text("2031-03-03T09:00:00Z")
    );
    assert_eq!(
        moment(&once("2031-03-03T10:00:00+05:00")),
        Err(vec!["/trigger/runAt".to_owned()])
    );
    let missed = |seconds: u64| {
        let policy = json!({"policy": "catch_up", "maxAgeSeconds": seconds});
        with(once("2031-03-03T08:00:00Z"), "/onMissed", policy)
    };
    assert_eq!(moment(&missed(3_600)), text("2031-03-03T08:00:00Z"));
    assert!(moment(&missed(60)).is_err());
}

#[test]
fn input_has_to_fit_the_flow() {
    let config = json!({"prompt": "p", "flows": {"tick": {"run": {"$fn": true},
        "inputSchema": {"type": "object", "required": ["n"]}}}});
    let agent = AgentSpec::compile("demo", &config, &[]).expect("a valid agent");
    let good = with(for_user(cron("0 9 * * *")), "/input", json!({"n": 1}));
    assert!(read_schedule(&good, &agent, at(NOW)).is_ok());
    let problems = read_schedule(&for_user(cron("0 9 * * *")), &agent, at(NOW));
    assert_eq!(problems.expect_err("n is missing")[0].path, "/input");
}

/// Z-5 (half: cron expressions, zones and flows of schedules are checked when an agent is loaded)
#[test]
fn agents_with_bad_schedules_are_refused() {
    let compile = |config: Value| {
        let mut fields = json!({"prompt": "p", "flows": {"tick": {"$fn": true}}});
        let given = config.as_object().expect("an object").clone();
        fields.as_object_mut().expect("an object").extend(given);
        let spec = AgentSpec::compile("demo", &fields, &[]);
        let problems = spec.map(drop).expect_err("it is wrong").into_iter();
        problems.map(|problem| problem.path).collect::<Vec<_>>()
    };
    let schedule = |definition: Value| json!({"schedules": {"a/b": definition}});
    let cases = [
        (
            schedule(for_user(cron("0 9 * *"))),
            "/schedules/a~1b/trigger/expr",
        ),
        (
            schedule(for_user(cron("0 0 31 2 *"))),
            "/schedules/a~1b/trigger/expr",
        ),
        (
            schedule(with(for_user(cron("0 9 * * *")), "/flowId", json!("no"))),
            "/schedules/a~1b/flowId",
        ),
        (
            json!({"scheduler": {"timezone": "Mars/Base"}}),
            "/scheduler/timezone",
        ),
        (
            json!({"scheduler": {"executor": "external"}}),
            "/scheduler/executor",
        ),
        (json!({"scheduler": {"spare": 1}}), "/scheduler/spare"),
        (
            json!({"scheduler": {"claimTtlSeconds": 1}}),
            "/scheduler/claimTtlSeconds",
        ),
    ];
    for (config, path) in cases {
        assert_eq!(compile(config.clone()), [path], "{config}");
    }
}

#[test]
fn one_off_of_a_file_that_has_passed_does_not_spoil_its_agent() {
    let definition = once("2001-01-01T00:00:00Z");
    let config = json!({"prompt": "p", "flows": {"tick": {"$fn": true}},
        "schedules": {"a": definition}});
    assert!(AgentSpec::compile("demo", &config, &[]).is_ok());
}
