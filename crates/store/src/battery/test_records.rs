//! What test seams record: appended, in order, found by kind, agent and address.

use crate::{Store, TestRecord, TestRecordQuery};
use std::sync::Arc;

fn record(kind: &str, agent: &str, address: &str, key: Option<&str>) -> TestRecord {
    TestRecord {
        kind: kind.into(),
        agent: agent.into(),
        address: address.into(),
        key: key.map(Into::into),
        body: format!(r#"{{"to":"{address}"}}"#),
    }
}

pub async fn test_records_are_listed_in_order(store: Arc<dyn Store>) {
    let records = [
        record("outbound", "desk", "ana", Some("k1")),
        record("outbound", "shop", "ana", None),
        record("model", "desk", "", None),
        record("outbound", "desk", "ben", Some("k2")),
        record("outbound", "desk", "ana", Some("k1")),
    ];
    let mut positions = Vec::new();
    for record in &records {
        let position = store.add_test_record(record.clone()).await.unwrap();
        assert!(positions.last().is_none_or(|last| *last < position));
        positions.push(position);
    }
    assert!(positions[0] > 0, "0 is before all");
    let outbound = TestRecordQuery {
        kind: "outbound".into(),
        agent: None,
        address: None,
        after: 0,
        limit: 10,
    };
    let of_agent = |agent: &str| TestRecordQuery {
        agent: Some(agent.into()),
        ..outbound.clone()
    };
    let to = |address: &str, query: TestRecordQuery| TestRecordQuery {
        address: Some(address.into()),
        ..query
    };
    let later = TestRecordQuery {
        after: positions[0],
        limit: 2,
        ..outbound.clone()
    };
    let model = TestRecordQuery {
        kind: "model".into(),
        ..outbound.clone()
    };
    for (query, expected) in [
        (outbound.clone(), &[0, 1, 3, 4][..]),
        (of_agent("desk"), &[0, 3, 4]),
        (to("ana", outbound.clone()), &[0, 1, 4]),
        (to("ana", of_agent("desk")), &[0, 4]),
        (to("eva", outbound.clone()), &[]),
        (later, &[1, 3]),
        (model, &[2]),
    ] {
        let found = store.test_records(&query).await.unwrap();
        let at = |place: &usize| (positions[*place], records[*place].clone());
        let expected: Vec<_> = expected.iter().map(at).collect();
        assert_eq!(found, expected, "{query:?}");
    }
}
