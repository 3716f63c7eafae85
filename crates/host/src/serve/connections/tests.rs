//! Admission and eviction of connections.

use super::ConnectionLimits;
use super::phase::Phase;
use super::table::{ConnectionSlot, ConnectionTable};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const LOCAL: &str = "127.0.0.1";
const FAR: &str = "203.0.113.7";

fn table(max: usize, max_per_address: usize) -> Arc<ConnectionTable> {
    ConnectionTable::new(ConnectionLimits {
        max,
        max_per_address,
        max_per_key: max.div_ceil(2),
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
fn incomplete_headers_are_evicted_before_idle_and_requests_never() {
    let table = table(3, 3);
    let busy = admit(&table, LOCAL).unwrap();
    assert!(busy.connection.begin(false));
    let idle = admit(&table, LOCAL).unwrap();
    assert!(idle.connection.begin(false));
    idle.connection.response_sent();
    wait_2_ms();
    let half = admit(&table, LOCAL).unwrap();
    let fourth = admit(&table, LOCAL).expect("there is room");
    assert!(is_closed(&half) && !is_closed(&idle) && !is_closed(&busy));
    assert!(fourth.connection.begin(false));
    let fifth = admit(&table, LOCAL).expect("the idle connection is evicted");
    assert!(is_closed(&idle) && !is_closed(&busy));
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

/// Begins a request of this key whose body is not complete.
fn begin_body(slot: &ConnectionSlot, key: &str) -> Result<(), usize> {
    assert!(slot.connection.begin(true));
    slot.key().0.use_key(&Arc::from(key))
}

#[test]
fn one_key_with_unfinished_bodies_leaves_connections_to_others() {
    let table = table(6, 6);
    let noisy: Vec<_> = (0..6).map(|_| admit(&table, LOCAL).unwrap()).collect();
    let refused: Vec<_> = noisy.iter().map(|slot| begin_body(slot, "noisy")).collect();
    assert_eq!(refused, [Ok(()), Ok(()), Ok(()), Err(3), Err(3), Err(3)]);
    // A refused request is answered, and its connection waits for the next one.
    noisy[3..]
        .iter()
        .for_each(|slot| slot.connection.response_sent());
    let quiet = admit(&table, LOCAL).expect("a connection of the noisy key is evicted");
    assert_eq!(begin_body(&quiet, "quiet"), Ok(()));
    assert!(
        !noisy[..3].iter().any(is_closed),
        "requests are not cut off"
    );
}

#[test]
fn key_at_its_maximum_evicts_its_own_idle_connections() {
    let table = table(6, 6);
    let quiet = admit(&table, LOCAL).unwrap();
    assert_eq!(begin_body(&quiet, "quiet"), Ok(()));
    quiet.connection.response_sent();
    let mut own: Vec<_> = (0..3).map(|_| admit(&table, LOCAL).unwrap()).collect();
    for slot in &own {
        assert_eq!(begin_body(slot, "noisy"), Ok(()));
    }
    own[0].connection.response_sent();
    let next = admit(&table, LOCAL).unwrap();
    assert_eq!(begin_body(&next, "noisy"), Ok(()));
    assert!(is_closed(&own[0]) && !is_closed(&quiet));
    drop(own.pop());
    let last = admit(&table, LOCAL).unwrap();
    assert_eq!(
        begin_body(&last, "noisy"),
        Ok(()),
        "a closed one is not counted"
    );
    assert_eq!(begin_body(&last, "other"), Ok(()), "the key may change");
    assert_eq!(begin_body(&quiet, "noisy"), Ok(()), "and is counted once");
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
    assert!(slot.connection.begin(true));
    assert!(admit(&table, FAR).is_none());
    drop(slot);
    assert!(admit(&table, FAR).is_some());
}
