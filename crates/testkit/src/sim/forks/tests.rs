//! Differences that the comparison of events detects.

use super::renaming::Renaming;
use serde_json::json;
use tandem_record::{ForkMode, RunId};

fn runs() -> (RunId, RunId) {
    (RunId::new("run-a"), RunId::new("run-b"))
}

#[test]
fn derived_ids_differ_one_to_one() {
    let (source, fork) = runs();
    let mut ids = Renaming::new(ForkMode::Replay, &source, &fork);
    let event = |id: &str| json!({"interrupt": {"id": id}});
    assert!(ids.is_same(&event("a"), &event("b")));
    assert!(ids.is_same(&event("a"), &event("b")));
    assert!(
        !ids.is_same(&event("a"), &event("c")),
        "two names of one id"
    );
    assert!(
        !ids.is_same(&event("d"), &event("b")),
        "one name of two ids"
    );
}

#[test]
fn everything_else_is_equal() {
    let (source, fork) = runs();
    let mut ids = Renaming::new(ForkMode::Replay, &source, &fork);
    let same = json!({"outputs": {"value": 1}, "node": "n"});
    assert!(ids.is_same(&same, &same));
    for other in [
        json!({"outputs": {"value": 2}, "node": "n"}),
        json!({"outputs": {"value": 1}, "node": "m"}),
        json!({"outputs": {"value": 1}}),
        json!({"outputs": {"value": 1}, "node": "n", "more": true}),
    ] {
        assert!(!ids.is_same(&same, &other), "{other}");
    }
    assert!(!ids.is_same(&json!([1]), &json!([1, 2])));
}

#[test]
fn only_a_branch_begins_open_work_anew() {
    let [then, now] = [1, 2].map(|until| json!({"work": {"until": until}}));
    let (source, fork) = runs();
    let same = |mode| Renaming::new(mode, &source, &fork).is_same(&then, &now);
    assert!(same(ForkMode::Branch) && !same(ForkMode::Replay));
}

#[test]
fn fork_has_its_own_id_in_names() {
    let (source, fork) = runs();
    let mut ids = Renaming::new(ForkMode::Replay, &source, &fork);
    let event = |run: &str| json!({"key": format!("{run}:gate:1")});
    assert!(ids.is_same(&event("run-a"), &event("run-b")));
    assert!(!ids.is_same(&event("run-a"), &event("run-c")));
}
