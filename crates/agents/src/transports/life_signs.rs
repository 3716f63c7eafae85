//! Signs of life on their way to networks (Z-244): shown soon, in order for each address, and never waited for.
//!
//! A sign is not worth a queue: those of an address that a slow network has not taken are dropped, the oldest
//! first, and so are all beyond a number of addresses. Where a network takes typing for over by itself, the sign is
//! shown again until the turn ends, also when the turn stays silent. Each address that is waited for has one task and
//! no thread.

use super::ChatTransport;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tandem_record::AgentId;
use tandem_runtime::conversation::{LifeSign, LifeSignKind};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// Addresses that signs are under way to.
const MAX_ADDRESSES: usize = 256;
/// Signs that wait for one address. The end of typing is the last.
const MAX_WAITING: usize = 4;
/// How long typing is shown again after the call that began it. A turn that goes on begins further ones; one whose end
/// another process sees is not shown for longer.
const LONGEST_TYPING: Duration = Duration::from_secs(5 * 60);

type Address = (AgentId, String, String);

#[derive(Clone, Default)]
pub struct LifeSigns {
    waiting: Arc<Mutex<HashMap<Address, Waiting>>>,
}

#[derive(Default)]
struct Waiting {
    signs: VecDeque<LifeSign>,
    /// Rings when a sign is added.
    bell: Arc<Notify>,
}

/// Typing that is shown now.
struct Typing {
    sign: LifeSign,
    since: Instant,
    again_after: Duration,
}

impl LifeSigns {
    /// Returns at once.
    pub(crate) fn show(&self, agent: &AgentId, transport: Arc<dyn ChatTransport>, sign: LifeSign) {
        let address = (agent.clone(), sign.transport.clone(), sign.to.clone());
        let mut waiting = self.waiting.lock();
        if let Some(known) = waiting.get_mut(&address) {
            if known.signs.len() == MAX_WAITING {
                known.signs.pop_front();
            }
            known.signs.push_back(sign);
            known.bell.notify_one();
            return;
        }
        let is_end = sign.kind == (LifeSignKind::Typing { active: false });
        // Where typing ends by itself, there is nothing to show at its end.
        if waiting.len() == MAX_ADDRESSES || (is_end && transport.typing_lasts().is_some()) {
            return;
        }
        let known = Waiting {
            signs: VecDeque::from([sign]),
            bell: Arc::default(),
        };
        let bell = Arc::clone(&known.bell);
        waiting.insert(address.clone(), known);
        let signs = self.clone();
        tokio::spawn(async move { signs.show_all(&address, &*transport, &bell).await });
    }

    /// Shows the signs of an address until there are none and nobody is typing.
    async fn show_all(&self, address: &Address, transport: &dyn ChatTransport, bell: &Notify) {
        let mut typing: Option<Typing> = None;
        loop {
            let Some(sign) = self.next(address, typing.is_some()) else {
                let Some(shown) = &typing else {
                    return;
                };
                if timeout(shown.again_after, bell.notified()).await.is_err() {
                    match shown.since.elapsed() < LONGEST_TYPING {
                        true => transport.show(&shown.sign).await,
                        false => typing = None,
                    }
                }
                continue;
            };
            transport.show(&sign).await;
            if let LifeSignKind::Typing { active } = sign.kind {
                let lasts = transport.typing_lasts().filter(|_| active);
                typing = lasts.map(|lasts| Typing {
                    sign,
                    since: Instant::now(),
                    // Before the network takes it for over.
                    again_after: lasts * 4 / 5,
                });
            }
        }
    }

    /// The next sign. Without one the address is forgotten, unless it `is_kept`.
    fn next(&self, address: &Address, is_kept: bool) -> Option<LifeSign> {
        let mut waiting = self.waiting.lock();
        let known = waiting.get_mut(address);
        let next = known.and_then(|known| known.signs.pop_front());
        if next.is_none() && !is_kept {
            waiting.remove(address);
        }
        next
    }
}

#[cfg(test)]
mod tests;
