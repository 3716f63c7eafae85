//! The phase of one connection, and since when. Written by the connection's own task, read by the
//! sweep. One atomic word holds both, so that a connection chosen for closing cannot start a
//! request at the same moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// New, or a part of the request headers has arrived.
    Header,
    /// Between two requests.
    Idle,
    /// The headers are complete, the body is not.
    Body,
    /// The response is being computed or sent.
    Response,
    /// It is a WebSocket now. Its own task bounds how long it may be silent.
    Upgraded,
    /// Chosen for closing; its task is being cancelled.
    Closed,
}

const PHASE_BITS: u32 = 3;

pub(super) struct Connection {
    /// Times below are in milliseconds since this instant.
    epoch: Instant,
    /// Milliseconds in the high bits, phase in the low bits.
    state: AtomicU64,
    /// Since when the peer accepts no bytes; 0 while it does.
    blocked_since: AtomicU64,
    /// Whether the newest request has a place in the share of its caller.
    has_place: AtomicBool,
}

impl Connection {
    pub(super) fn new(epoch: Instant) -> Self {
        let connection = Self {
            epoch,
            state: AtomicU64::new(0),
            blocked_since: AtomicU64::new(0),
            has_place: AtomicBool::new(false),
        };
        connection
            .state
            .store(pack(Phase::Header, connection.now_ms()), Ordering::Relaxed);
        connection
    }

    pub(super) fn phase(&self) -> (Phase, u64) {
        unpack(self.state.load(Ordering::Acquire))
    }

    /// How long the peer has accepted none of the bytes written to it.
    pub(super) fn blocked_for(&self, now_ms: u64) -> Option<Duration> {
        match self.blocked_since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Duration::from_millis(now_ms.saturating_sub(since))),
        }
    }

    /// Some bytes were read.
    pub(super) fn bytes_arrived(&self) {
        self.change(|phase| (phase == Phase::Idle).then_some(Phase::Header));
    }

    /// The headers are complete. `false` if the connection is being closed: the request must then
    /// not be executed.
    pub(super) fn begin(&self, body_follows: bool) -> bool {
        let next = match body_follows {
            true => Phase::Body,
            false => Phase::Response,
        };
        self.has_place.store(false, Ordering::Relaxed);
        self.change(|phase| (phase != Phase::Closed).then_some(next))
    }

    /// The caller of the newest request is known and has a place for it. The place is held until the next
    /// request, and counts while the connection is in use.
    pub(super) fn take_place(&self) {
        self.has_place.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_place(&self) -> bool {
        self.has_place.load(Ordering::Relaxed)
    }

    /// Whether a request or its response is in progress. The last bytes of a response may still be unsent
    /// in a later phase.
    pub(super) fn in_use(&self) -> bool {
        let in_request = matches!(
            self.phase().0,
            Phase::Body | Phase::Response | Phase::Upgraded
        );
        in_request || self.blocked_since.load(Ordering::Relaxed) != 0
    }

    pub(super) fn body_arrived(&self) {
        self.change(|phase| (phase == Phase::Body).then_some(Phase::Response));
    }

    pub(super) fn response_sent(&self) {
        self.change(|phase| match phase {
            Phase::Upgraded | Phase::Closed => None,
            Phase::Header | Phase::Idle | Phase::Body | Phase::Response => Some(Phase::Idle),
        });
    }

    /// The response makes it a WebSocket.
    pub(super) fn upgraded(&self) {
        self.change(|phase| (phase != Phase::Closed).then_some(Phase::Upgraded));
    }

    /// Closes the connection unless its phase changed since `observed`.
    pub(super) fn close(&self, observed: (Phase, u64)) -> bool {
        let closed = pack(Phase::Closed, observed.1);
        self.state
            .compare_exchange(
                pack(observed.0, observed.1),
                closed,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }

    pub(super) fn write_blocked(&self) {
        if self.blocked_since.load(Ordering::Relaxed) == 0 {
            let since = self.now_ms().max(1);
            self.blocked_since.store(since, Ordering::Relaxed);
        }
    }

    pub(super) fn write_resumed(&self) {
        if self.blocked_since.load(Ordering::Relaxed) != 0 {
            self.blocked_since.store(0, Ordering::Relaxed);
        }
    }

    /// Changes to the phase that `next` returns for the current one; `false` if it returns none.
    fn change(&self, next: impl Fn(Phase) -> Option<Phase>) -> bool {
        let mut observed = self.state.load(Ordering::Acquire);
        let Some(mut phase) = next(unpack(observed).0) else {
            return false;
        };
        let now = self.now_ms();
        while let Err(moved) = self.state.compare_exchange_weak(
            observed,
            pack(phase, now),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            observed = moved;
            match next(unpack(observed).0) {
                Some(again) => phase = again,
                None => return false,
            }
        }
        true
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX >> PHASE_BITS)
    }
}

fn pack(phase: Phase, since_ms: u64) -> u64 {
    (since_ms << PHASE_BITS) | phase as u64
}

fn unpack(state: u64) -> (Phase, u64) {
    let phase = match state & ((1 << PHASE_BITS) - 1) {
        0 => Phase::Header,
        1 => Phase::Idle,
        2 => Phase::Body,
        3 => Phase::Response,
        4 => Phase::Upgraded,
        _ => Phase::Closed,
    };
    (phase, state >> PHASE_BITS)
}
