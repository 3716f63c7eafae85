use super::*;

fn of(tenant: &str, bytes: usize) -> Source {
    Source {
        tenant: Some(TenantId::new(tenant)),
        bytes,
    }
}

async fn push(queue: &Queue<String>, tenant: &str, bytes: usize, count: usize) {
    for n in 0..count {
        let pushed = queue.push(of(tenant, bytes), format!("{tenant}{n}")).await;
        pushed.expect("the queue is open");
    }
}

fn taken(queue: &Queue<String>) -> Vec<String> {
    let mut batch = Vec::new();
    assert!(queue.take(&mut batch), "something waits");
    batch
}

#[tokio::test]
async fn one_tenant_is_served_in_order_in_full_batches() {
    let queue = Queue::new();
    push(&queue, "a", 100, BATCH + 1).await;
    let expected: Vec<String> = (0..BATCH).map(|n| format!("a{n}")).collect();
    assert_eq!(taken(&queue), expected);
    assert_eq!(taken(&queue), [format!("a{BATCH}")]);
}

#[tokio::test]
async fn small_job_is_in_the_next_batch_despite_long_queues_of_others() {
    let queue = Queue::new();
    push(&queue, "big", 900_000, 8).await;
    push(&queue, "small", 500, 1).await;
    push(&queue, "many", 10, 2_000).await;
    let batch = taken(&queue);
    assert!(batch.contains(&"small0".to_owned()), "{batch:?}");
    let big = batch.iter().filter(|name| name.starts_with("big")).count();
    assert!(big <= 2, "a batch is bounded in bytes: {big}");
}

/// The bytes that the caller of a small job waits for: what is in progress when it comes, and its own batch.
#[tokio::test]
async fn small_job_waits_for_one_large_job_at_most() {
    let queue = Queue::new();
    push(&queue, "big", 700_000, 8).await;
    for n in 0..3 {
        assert_eq!(taken(&queue), [format!("big{n}")], "one at a time");
        push(&queue, "small", 500, 1).await;
        assert_eq!(taken(&queue), ["small0"], "not together with a large one");
    }
    // A tenant that always has small jobs does not keep the large ones out.
    let mut large = 0;
    for _ in 0..60 {
        push(&queue, "small", 500, 1).await;
        large += taken(&queue)
            .iter()
            .filter(|name| name.starts_with("big"))
            .count();
    }
    assert_eq!(large, 5);
}

#[tokio::test]
async fn busy_tenant_does_not_starve_others() {
    let queue = Queue::new();
    push(&queue, "noisy", 200_000, 30).await;
    push(&queue, "quiet", 200_000, 3).await;
    let mut quiet = Vec::new();
    for _ in 0..4 {
        let batch = taken(&queue);
        quiet.extend(batch.into_iter().filter(|n| n.starts_with("quiet")));
    }
    assert_eq!(quiet, ["quiet0", "quiet1", "quiet2"]);
}

#[tokio::test]
async fn job_larger_than_a_batch_is_accepted() {
    let queue = Queue::new();
    push(&queue, "huge", 50_000_000, 1).await;
    push(&queue, "small", 10, 1).await;
    let mut seen = taken(&queue);
    while seen.len() < 2 {
        seen.extend(taken(&queue));
    }
    seen.sort();
    assert_eq!(seen, ["huge0", "small0"]);
}

#[tokio::test]
async fn full_queue_blocks_only_its_own_tenant() {
    let queue = Arc::new(Queue::new());
    push(&queue, "full", 1_000_000, 8).await;
    let waiting = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { push(&queue, "full", 1_000_000, 1).await }
    });
    push(&queue, "other", 1_000_000, 1).await;
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "its tenant has no capacity");
    taken(&queue);
    waiting.await.expect("the batch freed capacity");
}

#[tokio::test]
async fn closed_queue_drains_and_rejects_new_jobs() {
    let queue = Queue::new();
    push(&queue, "a", 10, 1).await;
    queue.close();
    assert!(queue.push(of("a", 10), "late".to_owned()).await.is_err());
    assert_eq!(taken(&queue), ["a0"]);
    assert!(!queue.take(&mut Vec::new()));
}

#[tokio::test]
async fn idle_tenant_queues_are_removed() {
    let queue = Queue::new();
    for n in 0..1_000 {
        push(&queue, &format!("tenant-{n}"), 10, 1).await;
        taken(&queue);
    }
    assert!(queue.lock().queues.len() <= MAX_IDLE_QUEUES);
}
