//! All open connections: decides which connection is accepted, which is closed to make room, and
//! which is closed because it took too long.
//!
//! When the table is full, or an address has its maximum, connections that wait are evicted for new ones; see
//! [`super::eviction`]. Of the connections with a request in progress a tenant and a key have a share; see
//! [`CallerShares`]. A request above the share is refused, and its connection counts as unauthenticated.

use super::ConnectionLimits;
use super::eviction::{Candidate, choose};
use super::phase::{Connection, Phase};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_api::{ConnectionKey, ConnectionsByKey};
use tandem_app::{CallerShares, ShareRefused};
use tandem_record::TenantId;
use tokio::task::AbortHandle;

pub(super) struct ConnectionTable {
    limits: ConnectionLimits,
    epoch: Instant,
    open: Mutex<Open>,
}

struct Open {
    next_id: u64,
    connections: HashMap<u64, Entry>,
    by_peer: HashMap<IpAddr, usize>,
    /// All connections whose caller is known, in use or not.
    by_caller: CallerShares,
}

/// A connection and its phase when it was examined.
#[derive(Clone, Copy)]
pub(super) struct ObservedState {
    pub(super) since: u64,
    pub(super) id: u64,
    pub(super) phase: Phase,
}

/// Whose key a request was sent with.
#[derive(Clone, PartialEq, Eq)]
struct Caller {
    tenant: TenantId,
    key: Arc<str>,
}

struct Entry {
    connection: Arc<Connection>,
    peer: IpAddr,
    /// The caller of the newest authenticated request.
    caller: Option<Caller>,
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
    fn use_key(&self, tenant: &TenantId, key_id: &Arc<str>) -> Result<(), ShareRefused> {
        let caller = Caller {
            tenant: tenant.clone(),
            key: Arc::clone(key_id),
        };
        let limits = &self.table.limits;
        self.table.open.lock().set_caller(self.id, caller, limits)
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
            epoch: Instant::now(),
            open: Mutex::new(Open {
                next_id: 0,
                connections: HashMap::new(),
                by_peer: HashMap::new(),
                by_caller: CallerShares::new(limits.shares()),
            }),
            limits,
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
                caller: None,
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
        let has_request = |phase| matches!(phase, Phase::Body | Phase::Response | Phase::Upgraded);
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
            Phase::Body | Phase::Response | Phase::Upgraded | Phase::Closed => false,
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
        if let Some(Caller { tenant, key }) = &entry.caller {
            self.by_caller.remove(tenant, key);
        }
    }

    /// Takes a place for the newest request of a connection, if its caller's share has one.
    fn set_caller(
        &mut self,
        id: u64,
        caller: Caller,
        limits: &ConnectionLimits,
    ) -> Result<(), ShareRefused> {
        // It may have been closed in the meantime.
        let Some(entry) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        if let Some(Caller { tenant, key }) = entry.caller.take() {
            self.by_caller.remove(&tenant, &key);
        }
        let Caller { tenant, key } = &caller;
        // Idle connections count only here. Without them there may be room: they can be evicted.
        if self.by_caller.check(tenant, key).is_err() {
            self.in_use(limits).check(tenant, key)?;
        }
        self.by_caller.add(tenant, key);
        if let Some(entry) = self.connections.get_mut(&id) {
            entry.connection.take_place();
            entry.caller = Some(caller);
        }
        Ok(())
    }

    /// The places of requests in progress.
    fn in_use(&self, limits: &ConnectionLimits) -> CallerShares {
        let mut in_use = CallerShares::new(limits.shares());
        for entry in self.connections.values() {
            let counts = entry.connection.has_place() && entry.connection.in_use();
            if let Some(Caller { tenant, key }) = entry.caller.as_ref().filter(|_| counts) {
                in_use.add(tenant, key);
            }
        }
        in_use
    }

    /// Closes some of these connections that wait. `None` if none can be closed.
    fn evict_waiting(&mut self, now: u64, among: impl Fn(&Entry) -> bool) -> Option<()> {
        let size = self.connections.len();
        let entries = self.connections.iter().filter(|(_, entry)| among(entry));
        let candidates = entries.filter_map(|(id, entry)| {
            let caller = entry.caller.as_ref();
            let of_tenant = caller.map(|caller| self.by_caller.held_by(&caller.tenant));
            Candidate::examine(*id, &entry.connection, of_tenant, now)
        });
        let chosen = choose(candidates.collect(), size);
        let closed = chosen.into_iter().filter(|observed| self.close(*observed));
        (closed.count() > 0).then_some(())
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
