//! Entries wait in lanes, so that one tenant's work does not hide another's.

use super::sample::{NOW, entry, lanes_due, later, must, put};
use crate::{DueLane, Lane, LaneQuery, LeaseId, LeaseRequest, OutboxEntry, Store, WorkClass};
use std::sync::Arc;
use tandem_record::TenantId;

fn lane(class: WorkClass, tenant: &str, target: &str) -> Lane {
    Lane {
        class,
        tenant: TenantId::new(tenant),
        target: target.into(),
    }
}

fn call(tenant: &str, target: &str) -> Lane {
    lane(WorkClass::Call, tenant, target)
}

fn in_lane(effect: &str, lane: Lane) -> OutboxEntry {
    OutboxEntry {
        lane,
        ..entry(effect, NOW)
    }
}

async fn due(store: &Arc<dyn Store>, query: LaneQuery) -> Vec<(Lane, usize)> {
    let found = store.due_lanes(query).await.expect("reads work");
    let pair = |DueLane { lane, due }| (lane, due);
    found.into_iter().map(pair).collect()
}

pub async fn lanes_separate_tenants_and_targets(store: Arc<dyn Store>) {
    let internal = lane(WorkClass::Internal, "acme", "");
    let not_yet = OutboxEntry {
        available_at: later(1),
        ..in_lane("e5", call("zeta", "x"))
    };
    let entries = [
        in_lane("e1", call("acme", "x")),
        in_lane("e2", call("acme", "x")),
        in_lane("e3", call("acme", "y")),
        in_lane("e4", call("beta", "x")),
        not_yet,
        in_lane("e6", internal.clone()),
    ];
    must(&store, put(entries)).await;
    let calls = due(&store, lanes_due(WorkClass::Call, NOW)).await;
    let expected = [
        (call("acme", "x"), 2),
        (call("acme", "y"), 1),
        (call("beta", "x"), 1),
    ];
    assert_eq!(calls, expected, "what is not due is in no lane");
    let inside = due(&store, lanes_due(WorkClass::Internal, NOW)).await;
    assert_eq!(inside, [(internal, 1)]);
    let none = due(&store, lanes_due(WorkClass::Delivery, NOW)).await;
    assert!(none.is_empty());
}

pub async fn listing_starts_after_last_served_lane(store: Arc<dyn Store>) {
    let mut entries = Vec::new();
    for tenant in ["a", "b", "c"] {
        for target in ["x", "y", "z"] {
            entries.push(in_lane(&format!("{tenant}{target}"), call(tenant, target)));
        }
    }
    must(&store, put(entries)).await;
    let query = LaneQuery {
        after_tenant: Some(TenantId::new("b")),
        after_target: [(TenantId::new("a"), "y".to_owned())].into(),
        tenants: 2,
        targets: 2,
        ..lanes_due(WorkClass::Call, NOW)
    };
    let lanes: Vec<Lane> = due(&store, query).await.into_iter().map(|d| d.0).collect();
    let expected = [
        call("c", "x"),
        call("c", "y"),
        call("a", "z"),
        call("a", "x"),
    ];
    assert_eq!(lanes, expected, "round robin over tenants and targets");
}

pub async fn lease_respects_the_limit_of_each_lane(store: Arc<dyn Store>) {
    let entries = (0..10).map(|n| in_lane(&format!("a{n}"), call("a", "x")));
    must(&store, put(entries)).await;
    must(&store, put([in_lane("b0", call("b", "x"))])).await;
    let request = LeaseRequest {
        lease: LeaseId::new("me", 1),
        now: NOW,
        until: later(60),
        lane_limits: vec![
            (call("a", "x"), 2),
            (call("b", "x"), 5),
            (call("c", "x"), 1),
        ],
    };
    let taken = store.lease(request).await.expect("leasing works");
    let names: Vec<&str> = taken.iter().map(|e| e.effect.as_str()).collect();
    assert_eq!(names, ["a0", "a1", "b0"]);
    assert_eq!(taken[2].lane, call("b", "x"), "an entry keeps its lane");
    let left = due(&store, lanes_due(WorkClass::Call, NOW)).await;
    assert_eq!(left, [(call("a", "x"), 8)]);
}

pub async fn long_lane_does_not_hide_other_lanes(store: Arc<dyn Store>) {
    let entries = (0..500).map(|n| in_lane(&format!("a{n:03}"), call("a", "hangs")));
    must(&store, put(entries)).await;
    let late = OutboxEntry {
        available_at: later(9),
        ..in_lane("b", call("b", "x"))
    };
    must(&store, put([late, in_lane("z", call("a", "well"))])).await;
    let query = LaneQuery {
        count_up_to: 3,
        ..lanes_due(WorkClass::Call, later(9))
    };
    let expected = [
        (call("a", "hangs"), 3),
        (call("a", "well"), 1),
        (call("b", "x"), 1),
    ];
    assert_eq!(due(&store, query).await, expected);
}
