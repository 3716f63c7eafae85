//! Work that may take long and waits for nothing: run outside the threads that serve everybody.
//!
//! Tenants share the slots: one that holds a slot gets another only while more are free than it holds,
//! and of those that wait, the one that had its turn longest ago is next. However much one tenant
//! waits for, another waits for one piece of work at most. Agents of one tenant take turns in the same way: loops of
//! one agent's flows delay those of another by one piece of work.

use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tandem_record::{AgentId, TenantId};
use tandem_store::Fault;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::{block_in_place, spawn_blocking};

/// Longest wait for offloaded work, including the queue. The work itself is bounded; this covers a
/// machine that is too busy to do it.
const DEADLINE: Duration = Duration::from_secs(30);
/// Bytes that are read or written on the threads that serve everybody.
pub(crate) const INLINE_BYTES: usize = 256 * 1024;
/// The code of work that missed its deadline. It says nothing about the work.
pub(crate) const DEADLINE_MISSED: &str = "decision_deadline";

/// A share of the machine. Half of its threads, so that the other half serves; two at least, so that
/// one is left to the next tenant.
pub(crate) struct Offload(Arc<Slots>);

struct Slots {
    total: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    used: usize,
    turns: u64,
    tenants: HashMap<Option<TenantId>, Share>,
}

/// Of one tenant, or of work that is no tenant's.
struct Share {
    held: usize,
    last_turn: u64,
    /// By agent. Work that is no agent's has a line of its own.
    waiting: HashMap<Option<AgentId>, Line>,
    /// Whose line had its turn last. The line itself is forgotten when it is empty.
    last: Option<Option<AgentId>>,
}

/// Those who wait with work of one agent.
struct Line {
    last_turn: u64,
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Share {
    fn is_waiting(&self) -> bool {
        self.waiting.values().any(|line| !line.waiting.is_empty())
    }

    /// The next of the agent that had its turn longest ago.
    fn next(&mut self, turn: u64) -> Option<oneshot::Sender<()>> {
        let lines = self.waiting.iter_mut();
        let lines = lines.filter(|(_, line)| !line.waiting.is_empty());
        let (agent, line) = lines.min_by_key(|(_, line)| line.last_turn)?;
        line.last_turn = turn;
        self.last = Some(agent.clone());
        line.waiting.pop_front()
    }
}

impl Default for Offload {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::with_slots((threads / 2).max(2))
    }
}

impl Offload {
    pub(crate) fn with_slots(total: usize) -> Self {
        Self(Arc::new(Slots {
            total,
            queue: Mutex::default(),
        }))
    }

    /// Waits for a turn. On a runtime of one thread there is nobody to protect: the work is done
    /// where it is asked for, and a simulation stays deterministic.
    pub(crate) async fn acquire(&self, tenant: Option<&TenantId>) -> OffloadPermit {
        self.acquire_for(tenant, None).await
    }

    /// The same for work of one agent.
    pub(crate) async fn acquire_for(
        &self,
        tenant: Option<&TenantId>,
        agent: Option<&AgentId>,
    ) -> OffloadPermit {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return OffloadPermit(None);
        }
        OffloadPermit(Some(self.slot(tenant, agent).await))
    }

    async fn slot(&self, tenant: Option<&TenantId>, agent: Option<&AgentId>) -> Slot {
        let turn = self.0.enqueue(tenant.cloned(), agent.cloned());
        let mut waiter = Waiter {
            slots: &self.0,
            tenant: tenant.cloned(),
            turn: Some(turn),
        };
        if let Some(turn) = &mut waiter.turn {
            turn.await.expect("a waiter is dropped only by itself");
        }
        waiter.turn = None;
        Slot {
            slots: Arc::clone(&self.0),
            tenant: waiter.tenant.take(),
        }
    }
}

impl Slots {
    fn enqueue(&self, tenant: Option<TenantId>, agent: Option<AgentId>) -> oneshot::Receiver<()> {
        let (sender, turn) = oneshot::channel();
        let mut queue = self.queue.lock();
        // A new tenant is before the one that had its turn last, and behind the others.
        let last_turn = queue.turns;
        let share = queue.tenants.entry(tenant).or_insert_with(|| Share {
            held: 0,
            last_turn,
            waiting: HashMap::new(),
            last: None,
        });
        // Behind the lines that begin now, if it had its turn last.
        let was_last = share.last.as_ref() == Some(&agent);
        let line = share.waiting.entry(agent).or_insert_with(|| Line {
            last_turn: last_turn + u64::from(was_last),
            waiting: VecDeque::new(),
        });
        line.waiting.push_back(sender);
        self.grant(&mut queue);
        turn
    }

    fn release(&self, tenant: &Option<TenantId>) {
        let mut queue = self.queue.lock();
        queue.used -= 1;
        if let Some(share) = queue.tenants.get_mut(tenant) {
            share.held -= 1;
        }
        self.grant(&mut queue);
    }

    fn grant(&self, queue: &mut Queue) {
        while queue.used < self.total {
            let free = self.total - queue.used;
            let entitled = queue.tenants.iter_mut().filter(|(tenant, share)| {
                share.is_waiting() && (tenant.is_none() || share.held < free)
            });
            let next = entitled.min_by_key(|(_, share)| (share.held, share.last_turn));
            let Some((_, share)) = next else {
                break;
            };
            let waiter = share.next(queue.turns + 3).expect("somebody waits");
            // Some have stopped waiting.
            if waiter.send(()).is_ok() {
                queue.turns += 2;
                share.last_turn = queue.turns + 1;
                share.held += 1;
                queue.used += 1;
            }
        }
        queue.tenants.retain(|_, share| {
            share.waiting.retain(|_, line| !line.waiting.is_empty());
            share.held > 0 || !share.waiting.is_empty()
        });
    }
}

/// Gives a turn back that came when nobody waited for it any more.
struct Waiter<'a> {
    slots: &'a Slots,
    tenant: Option<TenantId>,
    turn: Option<oneshot::Receiver<()>>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.close();
            if turn.try_recv().is_ok() {
                self.slots.release(&self.tenant);
            }
        }
    }
}

struct Slot {
    slots: Arc<Slots>,
    tenant: Option<TenantId>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.release(&self.tenant);
    }
}

/// The right to work, while it is held.
pub(crate) struct OffloadPermit(Option<Slot>);

impl OffloadPermit {
    pub(crate) async fn run<T, W>(self, work: W) -> T
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let Some(slot) = self.0 else {
            return work();
        };
        // Whoever stops waiting does not stop the work: the slot stays with it.
        let done = spawn_blocking(move || {
            let done = work();
            drop(slot);
            done
        });
        match done.await {
            Ok(done) => done,
            Err(error) => resume_unwind(error.into_panic()),
        }
    }
}

/// Does work whose length follows from so many bytes, and has the thread's other tasks taken over
/// meanwhile when they are many. For what is linear and borrows what it works on.
pub fn in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let handle = Handle::try_current();
    let shared = handle.is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    match shared && bytes > INLINE_BYTES {
        true => block_in_place(work),
        false => work(),
    }
}

/// Tells work that nobody waits for it any more.
#[derive(Default)]
pub(crate) struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Runtime {
    /// Limits the wait for offloaded work: by a deadline, and by the shutdown of this process.
    pub(crate) async fn with_deadline<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.stopped() => {
                Err(Fault::retryable("stopping", "the host stops; ask again"))
            }
            () = tokio::time::sleep(DEADLINE) => {
                let seconds = DEADLINE.as_secs();
                let message = format!("deciding took longer than {seconds} s");
                Err(Fault::retryable(DEADLINE_MISSED, message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
