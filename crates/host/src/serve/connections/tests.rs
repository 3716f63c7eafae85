//! Admission and eviction of connections.

use super::ConnectionLimits;
use super::phase::Phase;
use super::table::{ConnectionSlot, ConnectionTable};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tandem_app::{ShareRefused, ShareScope};
use tandem_record::TenantId;

const LOCAL: &str = "127.0.0.1";
const FAR: &str = "203.0.113.7";

fn table(max: usize, max_per_address: usize) -> Arc<ConnectionTable> {
    ConnectionTable::new(ConnectionLimits {
        max,
        max_per_address,
        max_per_tenant: max,
        max_per_key: max,
        header_timeout: Duration::ZERO,
        idle_timeout: Duration::from_secs(60),
        write_timeout: Duration::ZERO,
    })
}

fn admit(table: &Arc<ConnectionTable>, address: &str) -> Option<ConnectionSlot> {
    table.admit(address.parse::<IpAddr>().unwrap())
}

fn is_closed(slot: &ConnectionSlot) -> bool {
    slot.connection.phase().0 == Phase::Closed
}

/// Ensures that times differ.
fn wait_2_ms() {
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_millis(2) {
        std::thread::yield_now();
    }
}

#[test]
fn connection_that_waits_longest_is_evicted_and_requests_never_are() {
    let table = table(3, 3);
    let busy = admit(&table, LOCAL).unwrap();
    assert!(busy.connection.begin(false));
    let idle = admit(&table, LOCAL).unwrap();
    assert!(idle.connection.begin(false));
    idle.connection.response_sent();
    wait_2_ms();
    let half = admit(&table, LOCAL).unwrap();
    let fourth = admit(&table, LOCAL).expect("the idle connection is evicted");
    assert!(is_closed(&idle) && !is_closed(&half) && !is_closed(&busy));
    assert!(fourth.connection.begin(false));
    let fifth = admit(&table, LOCAL).expect("the incomplete request is evicted");
    assert!(is_closed(&half) && !is_closed(&busy));
    assert!(fifth.connection.begin(false));
    assert!(admit(&table, LOCAL).is_none(), "all have requests");
    assert_eq!(table.count(), 3);
}

#[test]
fn request_does_not_begin_on_a_closing_connection() {
    let table = table(1, 1);
    let first = admit(&table, LOCAL).unwrap();
    let _second = admit(&table, LOCAL).unwrap();
    assert!(!first.connection.begin(false), "it is not performed");
    first.connection.response_sent();
    assert!(is_closed(&first), "and stays closed");
}

#[test]
fn address_limit_evicts_only_connections_of_that_address() {
    let table = table(10, 2);
    let other = admit(&table, LOCAL).unwrap();
    let first = admit(&table, FAR).unwrap();
    wait_2_ms();
    let second = admit(&table, FAR).unwrap();
    let _third = admit(&table, FAR).unwrap();
    assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&other));
    let neighbours: Vec<_> = (1..=3)
        .filter_map(|n| admit(&table, &format!("2001:db8::{n}")))
        .collect();
    assert!(is_closed(&neighbours[0]), "one subscriber has 64 bits");
    let local: Vec<_> = (0..3).filter_map(|_| admit(&table, LOCAL)).collect();
    assert!(!local.iter().any(is_closed), "loopback has no share");
}

/// Begins a request of this key whose body is not complete. The tenant is the first letter of the key.
fn begin_body(slot: &ConnectionSlot, key: &str) -> Result<(), ShareRefused> {
    assert!(slot.connection.begin(true));
    slot.key()
        .0
        .use_key(&TenantId::new(&key[..1]), &Arc::from(key))
}

fn admit_many(table: &Arc<ConnectionTable>, count: usize) -> Vec<ConnectionSlot> {
    (0..count).map(|_| admit(table, LOCAL).unwrap()).collect()
}

/// A connection that was used with this key and waits for its next request.
fn idle(table: &Arc<ConnectionTable>, key: &str) -> ConnectionSlot {
    let slot = admit(table, LOCAL).unwrap();
    assert_eq!(begin_body(&slot, key), Ok(()));
    slot.connection.response_sent();
    slot
}

#[test]
fn keys_of_one_tenant_with_unfinished_bodies_leave_connections_to_other_tenants() {
    let table = table(16, 16);
    let noisy = admit_many(&table, 16);
    let keys = ["a1", "a2", "a3", "a4"].iter().cycle();
    let accepted: Vec<bool> = noisy
        .iter()
        .zip(keys)
        .map(|(slot, key)| {
            let accepted = begin_body(slot, key).is_ok();
            // A refused request is answered, and its connection waits for the next one.
            if !accepted {
                slot.connection.response_sent();
            }
            accepted
        })
        .collect();
    let count = accepted.iter().filter(|accepted| **accepted).count();
    assert_eq!(count, 7, "one of eight is left for a further key");
    let quiet = admit_many(&table, 4);
    for (slot, key) in quiet.iter().zip(["b1", "b1", "b2", "c1"]) {
        assert_eq!(begin_body(slot, key), Ok(()), "{key}");
    }
    let cut = noisy.iter().zip(&accepted);
    let cut = cut.filter(|(slot, accepted)| **accepted && is_closed(slot));
    assert_eq!(cut.count(), 0, "requests are not cut off");
}

#[test]
fn one_key_leaves_connections_to_other_keys_of_its_tenant() {
    let table = table(16, 16);
    let noisy = admit_many(&table, 5);
    let refused: Vec<_> = noisy.iter().map(|slot| begin_body(slot, "a1")).collect();
    let limit = ShareRefused {
        scope: ShareScope::Key,
        limit: 4,
    };
    assert_eq!(refused, [Ok(()), Ok(()), Ok(()), Ok(()), Err(limit)]);
    let other = admit(&table, LOCAL).unwrap();
    assert_eq!(begin_body(&other, "a2"), Ok(()));
}

#[test]
fn only_requests_in_progress_count_for_a_share() {
    let table = table(8, 8);
    let waiting: Vec<_> = (0..6).map(|_| idle(&table, "a1")).collect();
    assert!(!waiting.iter().any(is_closed), "idle ones are not limited");
    assert_eq!(begin_body(&waiting[0], "a1"), Ok(()));
    assert_eq!(begin_body(&waiting[1], "a1"), Ok(()));
    assert!(begin_body(&waiting[2], "a1").is_err(), "a half of a half");
    waiting[2].connection.response_sent();
    waiting[0].connection.response_sent();
    assert_eq!(begin_body(&waiting[2], "a1"), Ok(()), "a place is free");
    waiting[2].connection.write_blocked();
    waiting[2].connection.response_sent();
    assert!(
        begin_body(&waiting[3], "a1").is_err(),
        "an unread response counts"
    );
    assert_eq!(begin_body(&waiting[4], "b1"), Ok(()), "the key may change");
}

#[test]
fn idle_connections_of_the_tenant_with_the_most_are_evicted() {
    let table = table(6, 6);
    let quiet = idle(&table, "b1");
    wait_2_ms();
    let noisy: Vec<_> = ["a1", "a2", "a3", "a4", "a1"]
        .map(|key| idle(&table, key))
        .into();
    let _new = admit(&table, LOCAL).expect("one is evicted");
    assert!(is_closed(&noisy[0]) && !is_closed(&quiet));
}

#[test]
fn unauthenticated_connections_are_evicted_first() {
    let table = table(4, 4);
    let known = idle(&table, "a1");
    wait_2_ms();
    let unread = admit(&table, LOCAL).unwrap();
    assert!(unread.connection.begin(false));
    unread.connection.write_blocked();
    wait_2_ms();
    let body = admit(&table, LOCAL).unwrap();
    assert!(body.connection.begin(true));
    wait_2_ms();
    let half = admit(&table, LOCAL).unwrap();
    for evicted in [&unread, &body, &half, &known] {
        assert!(!is_closed(evicted));
        let new = admit(&table, LOCAL).expect("one is evicted");
        assert!(is_closed(evicted));
        assert!(new.connection.begin(false), "it is not the next one");
        std::mem::forget(new);
    }
}

#[test]
fn new_connections_have_time_for_their_first_request() {
    let table = table(32, 32);
    let known: Vec<_> = (0..30).map(|_| idle(&table, "a1")).collect();
    let new = admit_many(&table, 2);
    let _next = admit(&table, LOCAL).expect("an idle one is evicted");
    assert!(!new.iter().any(is_closed));
    assert_eq!(known.iter().filter(|slot| is_closed(slot)).count(), 1);
    let _one_more = admit(&table, LOCAL).expect("more than a sixteenth are new");
    assert!(is_closed(&new[0]));
}

#[test]
fn overdue_connections_are_closed() {
    let table = table(10, 10);
    let half = admit(&table, LOCAL).unwrap();
    let idle = admit(&table, LOCAL).unwrap();
    assert!(idle.connection.begin(false));
    idle.connection.response_sent();
    let stuck = admit(&table, LOCAL).unwrap();
    assert!(stuck.connection.begin(false));
    stuck.connection.write_blocked();
    let slow_reader = admit(&table, LOCAL).unwrap();
    assert!(slow_reader.connection.begin(false));
    slow_reader.connection.write_blocked();
    slow_reader.connection.write_resumed();
    wait_2_ms();
    table.close_overdue();
    assert!(is_closed(&half) && is_closed(&stuck));
    assert!(!is_closed(&idle) && !is_closed(&slow_reader));
    // The first byte of the next request begins its headers.
    idle.connection.bytes_arrived();
    wait_2_ms();
    table.close_overdue();
    assert!(is_closed(&idle));
}

#[test]
fn dropped_slot_is_released() {
    let table = table(1, 1);
    let slot = admit(&table, FAR).unwrap();
    assert!(slot.connection.begin(false));
    assert!(admit(&table, FAR).is_none());
    drop(slot);
    assert!(admit(&table, FAR).is_some());
}

#[test]
fn web_socket_keeps_its_place_until_it_is_closed() {
    let table = table(1, 1);
    let slot = Arc::new(admit(&table, LOCAL).unwrap());
    assert!(slot.connection.begin(false));
    slot.connection.upgraded();
    slot.connection.response_sent();
    slot.connection.bytes_arrived();
    wait_2_ms();
    table.close_overdue();
    table.close_without_request();
    assert!(!is_closed(&slot), "its own task ends it");
    assert!(admit(&table, LOCAL).is_none(), "nor does a new connection");
    drop(slot);
    assert!(admit(&table, LOCAL).is_some());
}
