//! Retention, and limits of agents, runs and memory.

use super::*;

#[test]
fn retention_is_configurable() {
    let retention_of = |text| {
        resolved(
            Layer::default(),
            &[("TANDEM_RETENTION_SECONDS", text)],
            None,
        )
    };
    assert_eq!(
        retention_of("3600").unwrap().retention.default_ms,
        3_600_000
    );
    let month = resolved(Layer::default(), &[], None).unwrap();
    let month = month.retention.default_ms;
    assert_eq!(month, 30 * 24 * 3_600_000);
    for bad in ["0", "-1", "1.5", "a while", "99999999999"] {
        assert!(retention_of(bad).is_err(), "{bad}");
    }
}

#[test]
fn most_specific_retention_rule_wins() {
    let rules = "[retention]\ndefault = '2w'\ntenants.acme = '12h'\nworkflows.\"a.b\" = '90m'";
    let retention_of = |env: &[(&str, &str)], tenant: &str, workflow: &str| {
        let settings = resolved(Layer::default(), env, Some(rules)).unwrap();
        settings.retention.of(&tenant.into(), &workflow.into()) / 1000
    };
    assert_eq!(retention_of(&[], "other", "w"), 14 * 24 * 3600);
    assert_eq!(retention_of(&[], "acme", "w"), 12 * 3600);
    assert_eq!(retention_of(&[], "acme", "a.b"), 90 * 60);
    assert_eq!(retention_of(&[], "other", "a.b"), 90 * 60);
    let env = [("TANDEM_RETENTION_SECONDS", "7")];
    assert_eq!(retention_of(&env, "other", "w"), 7, "the default alone");
    assert_eq!(retention_of(&env, "acme", "w"), 12 * 3600);
    for bad in [
        "default = '30'",
        "default = '0d'",
        "default = 'd'",
        "tenants.a = '1y'",
        "days = 3",
    ] {
        let text = format!("[retention]\n{bad}");
        assert!(
            resolved(Layer::default(), &[], Some(&text)).is_err(),
            "{bad}"
        );
    }
    let why = resolved(
        Layer::default(),
        &[],
        Some("[retention]\nworkflows.x = 'soon'"),
    );
    let why = why.unwrap_err().to_string();
    assert!(
        why.contains("retention.workflows.x") && why.contains("90d"),
        "{why}"
    );
}

#[test]
fn agent_settings_out_of_range_are_rejected_at_start() {
    // R-0039-5 (half: it can be set), R-0039-7 (half: a server does not start with another)
    // R-0044-2 (half: a server does not start with another)
    let floor = |text| resolved(Layer::default(), &[("TANDEM_CONFIDENCE_FLOOR", text)], None);
    assert_eq!(
        floor("0.7").unwrap().agent_policy.advertised_floor(),
        Some(0.7)
    );
    let kind = |text| {
        let set = [("TANDEM_ESCALATION_INTERRUPT_KIND", text)];
        resolved(Layer::default(), &set, None)
    };
    assert_eq!(kind("none").unwrap().agent_policy.advertised_kind(), None);
    let model = |text: &str| {
        let set = [("TANDEM_EXECUTION_MODEL_VERSION", text)];
        resolved(Layer::default(), &set, None)
    };
    for version in 1..=6 {
        let capped = model(&version.to_string()).unwrap();
        assert_eq!(capped.agent_policy.model_cap(), Some(version));
    }
    for bad in [
        model("0"),
        model("7"),
        model("newest"),
        floor("0.3"),
        floor("1.1"),
        floor("high"),
        kind("low-confidence"),
    ] {
        assert!(bad.is_err());
    }
}

#[test]
fn bounds_of_runs_come_from_environment_or_file_and_are_checked() {
    let settings = |env: &[(&str, &str)], file| resolved(Layer::default(), env, file);
    let standard = settings(&[], None).unwrap();
    assert_eq!(standard.limits.max_descendants, 10_000);
    let file = Some("[limits]\nmax_descendants = 5\nmax_state_bytes = 2000000");
    let set = settings(&[("TANDEM_MAX_DESCENDANTS", "7")], file).unwrap();
    assert_eq!(set.limits.max_descendants, 7, "the environment wins");
    assert_eq!(set.limits.max_state_bytes, 2_000_000);
    let set = settings(&[("TANDEM_MAX_EVENT_BYTES", "70000")], None).unwrap();
    assert_eq!(set.limits.max_event_bytes, 70_000);
    for (name, wrong) in [
        ("TANDEM_MAX_STATE_BYTES", "1"),
        ("TANDEM_MAX_EVENT_BYTES", "99999999"),
        ("TANDEM_MAX_DESCENDANTS", "0"),
        ("TANDEM_MAX_DESCENDANTS", "many"),
    ] {
        let refused = settings(&[(name, wrong)], None).unwrap_err().to_string();
        assert!(
            refused.contains(&name["TANDEM_".len()..].to_lowercase()) || refused.contains(name)
        );
    }
}

#[test]
fn compaction_threshold_is_a_number_or_off() {
    let above = |env: &[(&str, &str)], file| {
        let settings = resolved(Layer::default(), env, file).unwrap();
        settings.limits.compact_above
    };
    let file = Some("[memory]\ncompact_above = 50");
    assert_eq!(above(&[], None), Some(1_000));
    assert_eq!(above(&[], file), Some(50));
    let name = "TANDEM_MEMORY_COMPACT_ABOVE";
    assert_eq!(above(&[(name, "7")], file), Some(7));
    assert_eq!(above(&[(name, "0")], file), None);
}
