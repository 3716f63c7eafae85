//! `tandem.d.ts` declares every setting of an agent and nothing else.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tandem_engine::agent::AgentSpec;
use tandem_script::TYPE_DECLARATIONS;

const UNKNOWN: &str = "qqqqqqqq";

/// The settings beside an unknown one, as its refusal lists them.
fn known(config: &Value) -> BTreeSet<String> {
    let problems = AgentSpec::compile("demo", config, &[]).expect_err("an unknown setting");
    let problem = problems.iter().find(|p| p.path.ends_with(UNKNOWN));
    let message = &problem.expect("a refusal of the setting").message;
    let (_, names) = message.split_once("; it has ").expect("a list of settings");
    names.split(", ").map(str::to_owned).collect()
}

/// The members of a declaration whose first line begins with this text.
fn declared(beginning: &str) -> BTreeSet<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_first = |line: &&str| line.trim_start().starts_with(beginning);
    let mut lines = TYPE_DECLARATIONS.lines().skip_while(|line| !is_first(line));
    let first = lines.next().expect(beginning);
    let members = lines.take_while(|line| line.trim().is_empty() || indent(line) > indent(first));
    let name = |line: &str| {
        let line = line.trim();
        let end = line.find(|c: char| !c.is_alphanumeric())?;
        let is_member = line[end..].starts_with(':') || line[end..].starts_with("?:");
        is_member.then(|| line[..end].to_owned())
    };
    members
        .filter(|line| indent(line) == indent(first) + 2)
        .filter_map(name)
        .collect()
}

#[test]
fn every_setting_is_declared() {
    let with = |name: &str, value: Value| json!({"prompt": "x", name: value});
    let inside = || json!({ UNKNOWN: 1 });
    let hitl = |section: &str| with("hitl", json!({ section: { UNKNOWN: 1 } }));
    let table = [
        ("export interface AgentConfig {", with(UNKNOWN, json!(1))),
        ("export interface HitlConfig {", with("hitl", inside())),
        ("confirmDefaults?: {", hitl("confirmDefaults")),
        ("escalationDefaults?: {", hitl("escalationDefaults")),
        ("takeover?: {", hitl("takeover")),
        ("export interface OpeningHours {", with("hours", inside())),
        (
            "export interface ToolDefinition<",
            with("tools", json!([inside()])),
        ),
        (
            "export interface CommandDefinition<",
            with("commands", json!({ "c": inside() })),
        ),
        (
            "export interface FlowRegistration<",
            with("flows", json!({ "f": inside() })),
        ),
    ];
    for (declaration, config) in table {
        assert_eq!(declared(declaration), known(&config), "{declaration}");
    }
}
