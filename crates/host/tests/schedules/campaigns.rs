//! Campaigns: who is addressed, and what survives a crash.

use super::{
    HOST, campaign, clock_at, create, delivered, desk, for_user, list, ok, once, recipients, runs,
    send, tag, users,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Z-173 (half: the selectors, evaluated when the campaign is triggered),
/// Z-172 (half: segments are resolved when the campaign is triggered, and each recipient has an outcome)
#[test]
fn segments_are_resolved_when_the_campaign_is_triggered() {
    let server = desk();
    let segments = [
        json!({"type": "all"}),
        json!({"type": "tag", "tag": "vip"}),
        json!({"type": "active_since", "activeSinceDays": 1}),
        json!({"type": "custom_query", "query": "preferences.city = 'Bern' and not tags has 'vip'"}),
    ];
    let made = segments.map(|segment| {
        let definition = json!({"trigger": {"type": "cron", "expr": "0 10 5 3 *"},
            "target": campaign(segment), "allowSessionBootstrap": true});
        create(&server, definition)
    });
    for user in ["a", "b", "c"] {
        send(&server, user, "hi");
    }
    tag(
        &server,
        "a",
        &json!({"tags": ["vip"], "preferences": {"city": "Bern"}}),
    );
    tag(&server, "b", &json!({"preferences": {"city": "Bern"}}));
    clock_at(&server, "2031-03-04T12:00:00Z");
    send(&server, "c", "hi");
    clock_at(&server, "2031-03-05T09:00:05Z");
    let addressed = made.map(|schedule| {
        let runs = runs(&server, &schedule);
        assert_eq!(runs.len(), 1);
        assert_eq!(
            (&runs[0]["outcome"], &runs[0]["campaignId"]),
            (&json!("success"), &json!("spring"))
        );
        let found = recipients(&server, &runs[0]);
        assert_eq!(runs[0]["expandedRecipients"], found.len());
        assert_eq!(runs[0]["counts"]["success"], found.len());
        found
    });
    assert_eq!(
        addressed,
        [
            users(&["a", "b", "c"]),
            users(&["a"]),
            users(&["c"]),
            users(&["b"])
        ]
    );
    let last = delivered(&server, "b").pop();
    assert_eq!(last.as_deref(), Some("tick for b"));
}

/// Z-242 (half: a user who opted out gets no scheduled and no campaign turn),
/// Z-260 (half: a user's activity does not move with scheduled turns)
#[test]
fn users_who_opted_out_are_left_alone() {
    let server = desk();
    send(&server, "a", "hi");
    send(&server, "b", "hi");
    send(&server, "a", "stop");
    let before = list(&server, "/agents/desk/users", "users");
    let to_all = create(
        &server,
        json!({"trigger": once("09:00"), "target": campaign(json!({"type": "all"})),
            "allowSessionBootstrap": true}),
    );
    let to_one = create(
        &server,
        json!({"trigger": once("09:00"), "target": for_user("a"), "allowSessionBootstrap": true}),
    );
    clock_at(&server, "2031-03-03T09:00:05Z");
    let all = runs(&server, &to_all);
    assert_eq!(
        all[0]["counts"],
        json!({"success": 1, "skipped": 1, "failed": 0, "canceledHitl": 0})
    );
    assert_eq!(all[0]["partial"], true);
    let one = runs(&server, &to_one);
    assert_eq!(
        (&one[0]["outcome"], &one[0]["reason"]),
        (&json!("skipped"), &json!("opted_out"))
    );
    assert!(
        !delivered(&server, "a")
            .iter()
            .any(|text| text.starts_with("tick"))
    );
    let active = |users: &[Value]| {
        users
            .iter()
            .map(|user| user["lastActiveAt"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        active(&list(&server, "/agents/desk/users", "users")),
        active(&before)
    );
}

/// Z-171 (half: a claim that expired with its process is taken over), Z-259 (half: same run, attempt one higher),
/// Z-163 (half: the turn takes place once)
#[test]
fn run_goes_on_after_a_crash_in_the_middle_of_its_turn() {
    let mut server = desk();
    let schedule = create(
        &server,
        json!({"flowId": "paying", "trigger": once("09:00"), "target": for_user("u1"),
            "allowSessionBootstrap": true}),
    );
    let crash = json!({"point": "after_tool_call"}).to_string();
    ok(&server.post(&format!("{HOST}/test/crash"), &[], &crash));
    let body = json!({"set": "2031-03-03T09:00:05Z"}).to_string();
    server.try_post(&format!("{HOST}/test/clock"), &body);
    server.wait_for_crash();
    server.start_again();
    assert_eq!(delivered(&server, "u1"), ["paid"]);
    let runs = runs(&server, &schedule);
    assert_eq!(runs.len(), 1);
    assert_eq!(
        (&runs[0]["outcome"], &runs[0]["attempt"]),
        (&json!("success"), &json!(2))
    );
    let calls = list(&server, "/test/tools/desk", "calls");
    let keys: BTreeSet<&str> = calls
        .iter()
        .filter_map(|call| call["idempotencyKey"].as_str())
        .collect();
    assert_eq!(keys.len(), 1, "{calls:?}");
}

/// Z-173 (half: a takeover after a crash continues the list), Z-172 (half: nobody is addressed twice)
#[test]
fn campaign_goes_on_after_a_crash() {
    let mut server = desk();
    let names: Vec<String> = (0..12).map(|i| format!("u{i}")).collect();
    for name in &names {
        send(&server, name, "hi");
    }
    let schedule = create(
        &server,
        json!({"flowId": "paying", "trigger": once("09:00"),
            "target": campaign(json!({"type": "all"})), "allowSessionBootstrap": true}),
    );
    let crash = json!({"point": "after_tool_call"}).to_string();
    ok(&server.post(&format!("{HOST}/test/crash"), &[], &crash));
    let body = json!({"set": "2031-03-03T09:00:05Z"}).to_string();
    server.try_post(&format!("{HOST}/test/clock"), &body);
    server.wait_for_crash();
    server.start_again();
    let runs = runs(&server, &schedule);
    assert_eq!(runs[0]["counts"]["success"], 12);
    assert_eq!(runs[0]["attempt"], 2);
    for name in &names {
        let texts = delivered(&server, name);
        let paid = texts.iter().filter(|text| *text == "paid").count();
        assert_eq!(paid, 1, "{name}: {texts:?}");
    }
}
