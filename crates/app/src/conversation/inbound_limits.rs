//! Which messages of users are accepted: how often one sender may write, and how many turns of an agent may be
//! under way. Kept by this process; nothing of it is stored.

use super::inbound::DeliveryStatus;
use crate::app::App;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{AgentId, SessionId, TenantId, Timestamp};
use tandem_runtime::Fault;
use tandem_runtime::conversation::{AgentSpec, MessageClaim, SenderRates};

const MINUTE_MS: i64 = 60_000;
/// Refusals that have an event of their own within a minute, of one agent and of one sender. Others are counted: the
/// log of an agent is bounded, whatever its senders do.
const MAX_LISTED_REFUSALS: u32 = 600;
const MAX_LISTED_OF_SENDER: u32 = 60;

type LoadKey = (TenantId, AgentId);

/// The messages of each agent within the last minute, and the turns under way.
#[derive(Default)]
pub struct InboundLimits(Arc<Mutex<HashMap<LoadKey, AgentLoad>>>);

#[derive(Default)]
struct AgentLoad {
    rates: SenderRates,
    /// Messages that are being accepted.
    entering: usize,
    /// The last turn of each session for which this process accepted a message. Some may be over.
    turns: HashMap<SessionId, u64>,
    refusals: ListedRefusals,
}

/// Refusals that have an event within the current minute.
#[derive(Default)]
struct ListedRefusals {
    since: Option<Timestamp>,
    listed: u32,
    by_sender: HashMap<String, u32>,
    unlisted: u32,
}

/// A message that is being accepted; ends when it is dropped.
pub(super) struct Entering {
    limits: Arc<Mutex<HashMap<LoadKey, AgentLoad>>>,
    of: LoadKey,
}

impl Entering {
    /// The message was accepted: its turn is under way.
    pub(super) fn accepted(&self, claim: &MessageClaim) {
        if let Some(load) = self.limits.lock().get_mut(&self.of) {
            load.turns.insert(claim.session_id.clone(), claim.turn);
        }
    }

    /// The turn is over.
    pub(super) fn finished(&self, claim: &MessageClaim) {
        if let Some(load) = self.limits.lock().get_mut(&self.of) {
            let is_last = load.turns.get(&claim.session_id) == Some(&claim.turn);
            if is_last {
                load.turns.remove(&claim.session_id);
            }
        }
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        if let Some(load) = self.limits.lock().get_mut(&self.of) {
            load.entering = load.entering.saturating_sub(1);
        }
    }
}

impl ListedRefusals {
    /// Whether a refusal gets an event, and how many before it got none.
    fn list(&mut self, from: &str, now: Timestamp) -> Option<u32> {
        let is_new_minute = self.since.is_none_or(|since| now.0 - since.0 >= MINUTE_MS);
        if is_new_minute {
            self.since = Some(now);
            self.listed = 0;
            self.by_sender.clear();
        }
        let of_sender = self.by_sender.get(from).copied().unwrap_or_default();
        if of_sender >= MAX_LISTED_OF_SENDER || self.listed >= MAX_LISTED_REFUSALS {
            self.unlisted = self.unlisted.saturating_add(1);
            return None;
        }
        self.listed += 1;
        self.by_sender.insert(from.to_owned(), of_sender + 1);
        Some(std::mem::take(&mut self.unlisted))
    }
}

impl InboundLimits {
    fn check_rate(&self, of: &LoadKey, from: &str, rate: u32, now: Timestamp) -> bool {
        let mut all = self.0.lock();
        let load = all.entry(of.clone()).or_default();
        let now_ms = u64::try_from(now.0).unwrap_or(0);
        load.rates.admit(from, now_ms, rate)
    }

    /// `None` when as many turns are under way as may be.
    fn enter(&self, of: &LoadKey, max: usize) -> Option<Entering> {
        let mut all = self.0.lock();
        let load = all.entry(of.clone()).or_default();
        if load.entering + load.turns.len() >= max {
            return None;
        }
        load.entering += 1;
        Some(Entering {
            limits: Arc::clone(&self.0),
            of: of.clone(),
        })
    }

    fn turns(&self, of: &LoadKey) -> Vec<(SessionId, u64)> {
        let all = self.0.lock();
        let turns = all.get(of).map(|load| &load.turns);
        let turns = turns.into_iter().flatten();
        turns
            .map(|(session, turn)| (session.clone(), *turn))
            .collect()
    }

    fn remove_turn(&self, of: &LoadKey, session: &SessionId, turn: u64) {
        if let Some(load) = self.0.lock().get_mut(of)
            && load.turns.get(session) == Some(&turn)
        {
            load.turns.remove(session);
        }
    }

    /// Whether a refusal gets an event, and how many before it got none.
    pub(super) fn list_refusal(&self, of: &LoadKey, from: &str, now: Timestamp) -> Option<u32> {
        let mut all = self.0.lock();
        let load = all.entry(of.clone()).or_default();
        load.refusals.list(from, now)
    }
}

impl App {
    /// Lets a message in, or says why not. Nothing is claimed for one that is refused (Z-11).
    pub(super) async fn admit_inbound(
        &self,
        of: &LoadKey,
        from: &str,
        agent: &AgentSpec,
    ) -> Result<Result<Entering, DeliveryStatus>, Fault> {
        let limits = &self.inner.inbound;
        let rate = agent.limits.rate_limit_per_user_per_minute;
        if !limits.check_rate(of, from, rate, self.now()) {
            return Ok(Err(DeliveryStatus::RateLimited));
        }
        let max = agent.limits.max_inbound_concurrency;
        if let Some(entering) = limits.enter(of, max) {
            return Ok(Ok(entering));
        }
        // Turns end without a word to this place: those that are over make room.
        for (session, turn) in limits.turns(of) {
            let current = self.runtime().read_session(&session).await?;
            if current.is_none_or(|current| current.is_turn_over(turn)) {
                limits.remove_turn(of, &session, turn);
            }
        }
        let entering = limits.enter(of, max);
        Ok(entering.ok_or(DeliveryStatus::Overloaded))
    }
}
