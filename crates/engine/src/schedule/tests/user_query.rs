//! Filters of users.

use super::harness::at;
use crate::schedule::{UserFacts, UserQuery};
use serde_json::json;
use tandem_record::conversation::ChatUser;

fn ada() -> ChatUser {
    ChatUser {
        tags: vec!["vip".to_owned()],
        display_name: "Ada".to_owned(),
        preferences: json!({"newsletter": true, "visits": 7, "city": "Bern"}),
        ..ChatUser::stranger("usr-1".into(), "u1")
    }
}

fn holds(query: &str) -> bool {
    let profile = ada();
    let facts = UserFacts {
        profile: &profile,
        created_at: at("2031-01-01T00:00:00Z"),
        last_active_at: at("2031-03-01T12:00:00Z"),
    };
    let query = UserQuery::parse(query).unwrap_or_else(|why| panic!("{query}: {why}"));
    query.matches(&facts)
}

/// Z-173 (half: a custom query is a filter expression over user fields)
#[test]
fn conditions_compare_fields_and_combine() {
    for query in [
        "tags has \"vip\"",
        "displayName = 'Ada' and externalUserId = 'u1'",
        "not tags has 'blocked'",
        "tags has 'no' or preferences.newsletter = true",
        "preferences.visits >= 7 and preferences.visits < 7.5",
        "preferences.city != 'Rome'",
        "preferences.unknown = null",
        "lastActiveAt > \"2031-03-01T13:59:59+02:00\"",
        "createdAt <= \"2031-01-01\" or (createdAt < '2032-01-01T00:00:00Z')",
        "tags has 'vip' or tags has 'a' and tags has 'b'",
    ] {
        assert!(holds(query), "{query}");
    }
    for query in [
        "tags has 'VIP'",
        "not (tags has 'vip' or displayName = 'Bea')",
        "preferences.visits > 'a'",
        "(tags has 'vip' or tags has 'a') and tags has 'b'",
    ] {
        assert!(!holds(query), "{query}");
    }
}

#[test]
fn anything_else_is_refused() {
    let deep = format!("{}tags has 'a'{}", "(".repeat(40), ")".repeat(40));
    let long = format!("displayName = '{}'", "x".repeat(3_000));
    for query in [
        "",
        "tags",
        "tags = 'a'",
        "name = 'a'",
        "displayName",
        "displayName = ",
        "displayName = 'a",
        "displayName = 'a' displayName = 'b'",
        "(tags has 'a'",
        "tags has 'a')",
        "SELECT * FROM users",
        "displayName = 'a'; DROP TABLE users",
        "1 = 1",
        "not",
        &deep,
        &long,
    ] {
        assert!(UserQuery::parse(query).is_err(), "{query:?} is accepted");
    }
}
