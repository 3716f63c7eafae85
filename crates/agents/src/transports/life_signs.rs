//! Signs of life on their way to networks (Z-244): shown soon, in order for each address, and never waited for.
//!
//! A sign is not worth a queue: those of an address that a slow network has not taken are dropped, the oldest
//! first, and so are all beyond a number of addresses.

use super::ChatTransport;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tandem_record::AgentId;
use tandem_runtime::conversation::LifeSign;

/// Addresses that signs are under way to.
const MAX_ADDRESSES: usize = 256;
/// Signs that wait for one address. The end of typing is the last.
const MAX_WAITING: usize = 4;

type Address = (AgentId, String, String);

#[derive(Clone, Default)]
pub struct LifeSigns {
    waiting: Arc<Mutex<HashMap<Address, VecDeque<LifeSign>>>>,
}

impl LifeSigns {
    /// Returns at once.
    pub(crate) fn show(&self, agent: &AgentId, transport: Arc<dyn ChatTransport>, sign: LifeSign) {
        let address = (agent.clone(), sign.transport.clone(), sign.to.clone());
        let mut waiting = self.waiting.lock();
        if let Some(queue) = waiting.get_mut(&address) {
            if queue.len() == MAX_WAITING {
                queue.pop_front();
            }
            queue.push_back(sign);
            return;
        }
        if waiting.len() == MAX_ADDRESSES {
            return;
        }
        waiting.insert(address.clone(), VecDeque::from([sign]));
        let signs = self.clone();
        tokio::spawn(async move {
            while let Some(sign) = signs.next(&address) {
                transport.show(&sign).await;
            }
        });
    }

    fn next(&self, address: &Address) -> Option<LifeSign> {
        let mut waiting = self.waiting.lock();
        let next = waiting.get_mut(address).and_then(VecDeque::pop_front);
        if next.is_none() {
            waiting.remove(address);
        }
        next
    }
}
