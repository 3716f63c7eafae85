use super::*;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

fn name(tenant: &str) -> TenantId {
    TenantId::new(tenant)
}

fn poll<F: Future>(waiting: &mut Pin<Box<F>>) -> Option<F::Output> {
    match waiting
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn one_tenant_leaves_a_slot_to_the_next() {
    let offload = Offload::with_slots(2);
    let (noisy, quiet) = (name("noisy"), name("quiet"));
    let first = offload.slot(Some(&noisy), None).await;
    let mut second = Box::pin(offload.slot(Some(&noisy), None));
    assert!(poll(&mut second).is_none(), "one is left");
    let other = offload.slot(Some(&quiet), None).await;
    assert!(poll(&mut second).is_none());
    drop(first);
    let _second = second.await;
    drop(other);
}

#[tokio::test]
async fn tenants_take_turns() {
    let offload = Offload::with_slots(1);
    let (noisy, quiet) = (name("noisy"), name("quiet"));
    let first = offload.slot(Some(&noisy), None).await;
    let mut queued: Vec<_> = (0..5)
        .map(|_| Box::pin(offload.slot(Some(&noisy), None)))
        .collect();
    for waiting in &mut queued {
        assert!(poll(waiting).is_none());
    }
    let mut other = Box::pin(offload.slot(Some(&quiet), None));
    assert!(poll(&mut other).is_none());
    drop(first);
    let other = poll(&mut other).expect("it is its turn");
    assert!(poll(&mut queued[0]).is_none());
    drop(other);
    assert!(poll(&mut queued[0]).is_some());
}

/// Z-16 (half: loops of one agent's flows do not delay those of another of the same tenant)
#[tokio::test]
async fn agents_of_one_tenant_take_turns() {
    let offload = Offload::with_slots(2);
    let tenant = name("t");
    let (noisy, quiet) = (AgentId::new("noisy"), AgentId::new("quiet"));
    let slot = |agent| Box::pin(offload.slot(Some(&tenant), Some(agent)));
    let first = slot(&noisy).await;
    let mut queued: Vec<_> = (0..20).map(|_| slot(&noisy)).collect();
    for waiting in &mut queued {
        assert!(poll(waiting).is_none());
    }
    let mut other = slot(&quiet);
    assert!(poll(&mut other).is_none());
    drop(first);
    let other = poll(&mut other).expect("it is its turn");
    assert!(poll(&mut queued[0]).is_none());
    drop(other);
    let held = poll(&mut queued[0]).expect("it is its turn again");
    let mut other = slot(&quiet);
    assert!(poll(&mut other).is_none());
    drop(held);
    assert!(poll(&mut queued[1]).is_none());
    assert!(poll(&mut other).is_some());
}

#[tokio::test]
async fn abandoned_wait_gives_its_turn_back() {
    let offload = Offload::with_slots(1);
    let tenant = name("t");
    let first = offload.slot(Some(&tenant), None).await;
    let mut given_up = Box::pin(offload.slot(Some(&tenant), None));
    assert!(poll(&mut given_up).is_none());
    let mut next = Box::pin(offload.slot(None, None));
    assert!(poll(&mut next).is_none());
    // Its turn comes, and it leaves without having noticed.
    drop(first);
    drop(given_up);
    assert!(poll(&mut next).is_some());
    assert_eq!(offload.0.queue.lock().used, 0);
}

#[tokio::test]
async fn tenants_with_long_queues_alternate() {
    let offload = Offload::with_slots(1);
    let tenants = [name("a"), name("b")];
    let mut held = Some(offload.slot(None, None).await);
    let queue = (0..6).map(|n| (n % 2, Box::pin(offload.slot(Some(&tenants[n % 2]), None))));
    let mut queue: Vec<_> = queue.collect();
    for (_, waiting) in &mut queue {
        assert!(poll(waiting).is_none());
    }
    let mut turns = Vec::new();
    while !queue.is_empty() {
        drop(held.take());
        let granted = queue.iter_mut().position(|(_, waiting)| {
            held = poll(waiting);
            held.is_some()
        });
        turns.push(queue.remove(granted.expect("a slot is free")).0);
    }
    assert!(turns.windows(2).all(|turn| turn[0] != turn[1]), "{turns:?}");
}

#[test]
fn work_learns_that_nobody_waits_for_it() {
    let waiting = StopOnDrop::default();
    let flag = waiting.flag();
    assert!(!flag.load(Ordering::Relaxed));
    drop(waiting);
    assert!(flag.load(Ordering::Relaxed));
}
