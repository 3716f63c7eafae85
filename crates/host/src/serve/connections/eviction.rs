//! Which connections are closed when others need their place.
//!
//! A connection with an authenticated request in progress is kept, unless its body is overdue. Unauthenticated
//! connections go first, the oldest before others. Then waiting ones of the tenant that has the most go, so that
//! a tenant that opens many connections evicts its own. A few unauthenticated connections are spared, because every new one needs
//! time to send its first request.

use super::phase::{Connection, Phase};
use super::table::ObservedState;
use std::cmp::Reverse;
use std::time::Duration;

/// An authenticated body that is not complete after this time may be evicted.
const BODY_OVERDUE: Duration = Duration::from_secs(5);

/// One of this many waiting connections is closed at once. More than one is closed, because the search is
/// linear.
const SHARE_CLOSED: usize = 32;

/// One of this many connections may be unauthenticated before authenticated ones are spared.
const SHARE_UNAUTHENTICATED: usize = 16;

/// In the order of eviction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// New, idle, with an incomplete body or an unread response.
    Unauthenticated,
    /// Between two requests of a known caller.
    Idle,
    BodyOverdue,
}

/// A connection that may be closed.
pub(super) struct Candidate {
    rank: Rank,
    /// How many connections its tenant has.
    of_tenant: Option<usize>,
    observed: ObservedState,
}

impl Candidate {
    /// `None` if the connection must be kept. `of_tenant` is `None` while its caller is not known.
    pub(super) fn examine(
        id: u64,
        connection: &Connection,
        of_tenant: Option<usize>,
        now: u64,
    ) -> Option<Self> {
        let (phase, since) = connection.phase();
        let waited = Duration::from_millis(now.saturating_sub(since));
        let has_place = connection.has_place();
        let blocked = connection.blocked_for(now).is_some();
        let rank = match phase {
            Phase::Closed => return None,
            _ if blocked && has_place => return None,
            _ if blocked => Rank::Unauthenticated,
            Phase::Header | Phase::Idle if of_tenant.is_none() => Rank::Unauthenticated,
            Phase::Header | Phase::Idle => Rank::Idle,
            Phase::Body if !has_place => Rank::Unauthenticated,
            Phase::Body if waited > BODY_OVERDUE => Rank::BodyOverdue,
            Phase::Body | Phase::Response | Phase::Upgraded => return None,
        };
        Some(Self {
            rank,
            // Unauthenticated ones go by age alone.
            of_tenant: of_tenant.filter(|_| rank != Rank::Unauthenticated),
            observed: ObservedState { since, id, phase },
        })
    }

    fn is_unauthenticated(&self) -> bool {
        self.rank == Rank::Unauthenticated
    }
}

/// Those to be closed, of a table with `size` connections.
pub(super) fn choose(mut candidates: Vec<Candidate>, size: usize) -> Vec<ObservedState> {
    let unauthenticated = candidates.iter().filter(|c| c.is_unauthenticated()).count();
    let spared = unauthenticated <= size / SHARE_UNAUTHENTICATED;
    let order = |candidate: &Candidate| {
        let ObservedState { since, id, .. } = candidate.observed;
        let last = spared && candidate.is_unauthenticated();
        (
            last,
            candidate.rank,
            Reverse(candidate.of_tenant),
            since,
            id,
        )
    };
    let count = (candidates.len() / SHARE_CLOSED).max(1);
    if candidates.len() > count {
        candidates.select_nth_unstable_by_key(count, order);
    }
    candidates.truncate(count);
    candidates.into_iter().map(|c| c.observed).collect()
}
