//! How many visitors are connected at once, and how fast new ones arrive and old ones write.
//!
//! Besides these, a connection takes a place among the streams of the chat's tenant, and a message counts
//! against the agent's own rates.

use crate::problem::Problem;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use tandem_access::{RateKey, RateLimiter, VisitorId};
use tandem_app::{ShareRefused, ShareScope};
use tandem_record::{AgentId, Timestamp};

/// Connections of one visitor: the tabs of a browser.
const PER_VISITOR: usize = 8;
/// Connections that one address opens per second, and at once. Many people may share an address.
const CONNECTS_PER_SECOND: u32 = 20;
const CONNECT_BURST: u32 = 200;
/// Frames of one visitor per second, and at once. Above, the connection is closed.
const FRAMES_PER_SECOND: u32 = 10;
const FRAME_BURST: u32 = 60;

pub(crate) struct VisitorLimits {
    open: Mutex<HashMap<AgentId, AgentVisitors>>,
    connects: RateLimiter,
    frames: RateLimiter,
}

#[derive(Default)]
struct AgentVisitors {
    connections: usize,
    by_visitor: HashMap<VisitorId, usize>,
}

impl Default for VisitorLimits {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            connects: RateLimiter::new(CONNECTS_PER_SECOND, CONNECT_BURST),
            frames: RateLimiter::new(FRAMES_PER_SECOND, FRAME_BURST),
        }
    }
}

impl VisitorLimits {
    /// Counts a connection that an address opens.
    pub(super) fn check_connect(
        &self,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(), Problem> {
        let key = match address {
            Some(address) => RateKey::address(address),
            None => RateKey::credential(""),
        };
        Ok(self.connects.check(key, milliseconds(now))?)
    }

    /// Whether the visitor may send another frame now.
    pub(super) fn admits_frame(&self, visitor: &VisitorId, now: Timestamp) -> bool {
        let key = RateKey::credential(visitor.as_str());
        self.frames.check(key, milliseconds(now)).is_ok()
    }

    /// A place among the connections to an agent.
    pub(super) fn enter(
        self: &Arc<Self>,
        agent: &AgentId,
        max: usize,
    ) -> Result<VisitorPlace, Problem> {
        let mut open = self.open.lock();
        let of_agent = open.entry(agent.clone()).or_default();
        if of_agent.connections >= max {
            return Err(Problem::too_many_streams(ShareRefused {
                scope: ShareScope::Host,
                limit: max,
            }));
        }
        of_agent.connections += 1;
        Ok(VisitorPlace {
            limits: Arc::clone(self),
            agent: agent.clone(),
            visitor: None,
        })
    }
}

fn milliseconds(now: Timestamp) -> u64 {
    u64::try_from(now.0).unwrap_or(0)
}

/// One of the connections to an agent; released when dropped.
pub(super) struct VisitorPlace {
    limits: Arc<VisitorLimits>,
    agent: AgentId,
    visitor: Option<VisitorId>,
}

impl VisitorPlace {
    /// The visitor of the connection is known now. `false` if they have too many.
    pub(super) fn belongs_to(&mut self, visitor: &VisitorId) -> bool {
        let mut open = self.limits.open.lock();
        let of_agent = open.entry(self.agent.clone()).or_default();
        let of_visitor = of_agent.by_visitor.entry(visitor.clone()).or_default();
        if *of_visitor >= PER_VISITOR {
            return false;
        }
        *of_visitor += 1;
        self.visitor = Some(visitor.clone());
        true
    }
}

impl Drop for VisitorPlace {
    fn drop(&mut self) {
        let mut open = self.limits.open.lock();
        let Some(of_agent) = open.get_mut(&self.agent) else {
            return;
        };
        of_agent.connections -= 1;
        if let Some(visitor) = &self.visitor
            && let Some(count) = of_agent.by_visitor.get_mut(visitor)
        {
            *count -= 1;
            if *count == 0 {
                of_agent.by_visitor.remove(visitor);
            }
        }
        if of_agent.connections == 0 {
            open.remove(&self.agent);
        }
    }
}
