//! All open connections: decides which connection is accepted, which is closed to make room, and
//! which is closed because it took too long.
//!
//! When the table is full, connections that wait for a request are evicted for new ones, so a peer
//! that opens many idle connections evicts its own. A connection with a request in progress is
//! never evicted, except one whose body is overdue. The same holds for the connections of one address
//! and of one key: at its own maximum it evicts its own.

use super::ConnectionLimits;
use super::phase::{Connection, Phase};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_api::{ConnectionKey, ConnectionsByKey};
use tokio::task::AbortHandle;

/// A body that is not complete after this time may be evicted when the table is full.
const BODY_OVERDUE: Duration = Duration::from_secs(5);

/// When the table is full, one of this many waiting connections is closed at once. More than one is
/// closed, because the search for the oldest is linear.
const SHARE_CLOSED: usize = 32;

pub(super) struct ConnectionTable {
    limits: ConnectionLimits,
    epoch: Instant,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    connections: HashMap<u64, Entry>,
    by_peer: HashMap<IpAddr, usize>,
    by_key: HashMap<Arc<str>, usize>,
}

/// A connection and its phase when it was examined.
#[derive(Clone, Copy)]
struct ObservedState {
    since: u64,
    id: u64,
    phase: Phase,
}

struct Entry {
    connection: Arc<Connection>,
    peer: IpAddr,
    /// The key of its newest request.
    key: Option<Arc<str>>,
    /// Set once its task runs.
    task: Option<AbortHandle>,
}

/// A slot in the table, released when dropped.
pub(super) struct ConnectionSlot {
    table: Arc<ConnectionTable>,
    pub(super) id: u64,
    pub(super) connection: Arc<Connection>,
}

impl ConnectionSlot {
    /// For requests on this connection.
    pub(super) fn key(&self) -> ConnectionKey {
        ConnectionKey(Arc::new(SlotKey {
            table: Arc::clone(&self.table),
            id: self.id,
        }))
    }
}

struct SlotKey {
    table: Arc<ConnectionTable>,
    id: u64,
}

impl ConnectionsByKey for SlotKey {
    fn use_key(&self, key_id: &Arc<str>) -> Result<(), usize> {
        let table = &self.table;
        let max = table.limits.max_per_key;
        let counted = table
            .open
            .lock()
            .set_key(self.id, key_id, max, table.now_ms());
        counted.ok_or(max)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.table.open.lock().remove(self.id);
    }
}

impl ConnectionTable {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            epoch: Instant::now(),
            open: Mutex::default(),
        })
    }

    /// A slot for a connection from `address`; `None` if all others are busy.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let address = address.to_canonical();
        let peer = peer(address);
        let now = self.now_ms();
        let mut open = self.open.lock();
        // All local proxies and tools share one address.
        let share = match address.is_loopback() {
            true => self.limits.max,
            false => self.limits.max_per_address,
        };
        if open.by_peer.get(&peer).is_some_and(|count| *count >= share) {
            open.evict_waiting(now, |entry| entry.peer == peer)?;
        }
        if open.connections.len() >= self.limits.max {
            open.evict_waiting(now, |_| true)?;
        }
        let id = open.next_id;
        open.next_id += 1;
        let connection = Arc::new(Connection::new(self.epoch));
        *open.by_peer.entry(peer).or_default() += 1;
        open.connections.insert(
            id,
            Entry {
                connection: Arc::clone(&connection),
                peer,
                key: None,
                task: None,
            },
        );
        Some(ConnectionSlot {
            table: Arc::clone(self),
            id,
            connection,
        })
    }

    /// Registers the connection's task, so that it can be cancelled.
    pub(super) fn started(&self, id: u64, task: AbortHandle) {
        if let Some(entry) = self.open.lock().connections.get_mut(&id) {
            entry.task = Some(task);
        }
    }

    /// Evicts some waiting connections when the system has no descriptors left.
    pub(super) fn evict_waiting(&self) {
        let now = self.now_ms();
        let _ = self.open.lock().evict_waiting(now, |_| true);
    }

    /// Closes overdue connections; called periodically.
    pub(super) fn close_overdue(&self) {
        let now = self.now_ms();
        self.open
            .lock()
            .close_where(|connection, phase, since| self.is_overdue(connection, phase, since, now));
    }

    /// Closes every connection without a complete request, because the host stops.
    pub(super) fn close_without_request(&self) {
        let has_request = |phase| matches!(phase, Phase::Body | Phase::Response);
        self.open.lock().close_where(|connection, phase, _| {
            !has_request(phase) && connection.blocked_for(0).is_none()
        });
    }

    /// Aborts all connections.
    pub(super) fn abort(&self) {
        for entry in self.open.lock().connections.values() {
            entry.abort();
        }
    }

    fn is_overdue(&self, connection: &Connection, phase: Phase, since: u64, now: u64) -> bool {
        let stalled = connection.blocked_for(now);
        if let Some(stalled) = stalled {
            return stalled > self.limits.write_timeout;
        }
        let waited = Duration::from_millis(now.saturating_sub(since));
        match phase {
            Phase::Header => waited > self.limits.header_timeout,
            Phase::Idle => waited > self.limits.idle_timeout,
            // The API has its own timeout for a body; streams have none.
            Phase::Body | Phase::Response | Phase::Closed => false,
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.open.lock().connections.len()
    }
}

impl Open {
    fn remove(&mut self, id: u64) {
        let Some(entry) = self.connections.remove(&id) else {
            return;
        };
        decrement(&mut self.by_peer, &entry.peer);
        if let Some(key) = &entry.key {
            decrement(&mut self.by_key, key);
        }
    }

    /// Counts a connection for a key. `None` if the key has `max` others and none of them waits.
    fn set_key(&mut self, id: u64, key: &Arc<str>, max: usize, now: u64) -> Option<()> {
        let before = self.connections.get(&id)?.key.clone();
        if before.as_ref() == Some(key) {
            return Some(());
        }
        if self.by_key.get(key).is_some_and(|count| *count >= max) {
            self.evict_waiting(now, |entry| entry.key.as_ref() == Some(key))?;
        }
        if let Some(before) = before {
            decrement(&mut self.by_key, &before);
        }
        *self.by_key.entry(Arc::clone(key)).or_default() += 1;
        self.connections.get_mut(&id)?.key = Some(Arc::clone(key));
        Some(())
    }

    /// Closes those of the chosen connections that waited longest: first with incomplete headers, then idle ones,
    /// then with an overdue body. `None` if none can be closed.
    fn evict_waiting(&mut self, now: u64, among: impl Fn(&Entry) -> bool) -> Option<()> {
        let entries = self.connections.iter();
        let mut waiting: Vec<(u8, ObservedState)> = entries
            .filter(|(_, entry)| among(entry))
            .filter(|(_, entry)| entry.connection.blocked_for(now).is_none())
            .filter_map(|(id, entry)| {
                let (phase, since) = entry.connection.phase();
                let waited = Duration::from_millis(now.saturating_sub(since));
                let rank = match phase {
                    Phase::Header => 0,
                    Phase::Idle => 1,
                    Phase::Body if waited > BODY_OVERDUE => 2,
                    Phase::Body | Phase::Response | Phase::Closed => return None,
                };
                let id = *id;
                Some((rank, ObservedState { since, id, phase }))
            })
            .collect();
        let close_count = (waiting.len() / SHARE_CLOSED).max(1);
        if waiting.len() > close_count {
            waiting.select_nth_unstable_by_key(close_count, |(rank, observed)| {
                (*rank, observed.since, observed.id)
            });
        }
        let closed = waiting
            .into_iter()
            .take(close_count)
            .filter(|(_, observed)| self.close(*observed))
            .count();
        (closed > 0).then_some(())
    }

    fn close_where(&mut self, chosen: impl Fn(&Connection, Phase, u64) -> bool) {
        let entries = self.connections.iter();
        let found: Vec<ObservedState> = entries
            .filter_map(|(id, entry)| {
                let (phase, since) = entry.connection.phase();
                let id = *id;
                chosen(&entry.connection, phase, since).then_some(ObservedState {
                    since,
                    id,
                    phase,
                })
            })
            .collect();
        for observed in found {
            self.close(observed);
        }
    }

    /// `false` if the phase changed since the connection was examined.
    fn close(&mut self, observed: ObservedState) -> bool {
        let Some(entry) = self.connections.get(&observed.id) else {
            return false;
        };
        let closed = entry.connection.close((observed.phase, observed.since));
        if closed {
            entry.abort();
            self.remove(observed.id);
        }
        closed
    }
}

fn decrement<K: Hash + Eq>(counts: &mut HashMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

impl Entry {
    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The key for the address limit: an IPv6 subscriber usually owns a /64 prefix.
fn peer(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}
