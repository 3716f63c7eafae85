//! Effects: asked of the world once, started again when wanted again, none forgotten.

use serde_json::json;
use tandem_record::RunStatus;
use tandem_testkit::house::{House, Plan};
use tandem_testkit::{Mishap, Script, wf};
use tokio::test;

fn slow(ms: u64) -> Script {
    Script {
        trouble: 0,
        broken: 0,
        slowest_ms: ms,
    }
}

#[test(start_paused = true)]
async fn a_result_the_store_did_not_take_is_delivered_again_not_asked_for_again() {
    for mishap in [Mishap::FailsBefore, Mishap::FailsAfter] {
        let house = House::new().await;
        house.register(wf("call").http("call", 3)).await;
        let run = house.create("call", json!({})).await;
        house.faults.next([mishap, mishap, mishap]);
        assert_eq!(house.ended(&run).await, RunStatus::Completed);
        assert_eq!(house.world.performed().len(), 1, "{mishap:?}");
    }
}

#[test(start_paused = true)]
async fn a_call_cut_off_by_a_pause_is_made_again_right_after_the_resume() {
    let house = Plan {
        script: slow(1_000),
        ..Plan::default()
    };
    let house = house.build().await;
    house.register(wf("call").http("call", 1)).await;
    let run = house.create("call", json!({})).await;
    house.elapse(1).await;
    // Without a moment in between: the task that was cut off has not noticed yet.
    house.pause(&run).await.expect("running");
    house.resume(&run).await.expect("paused");
    house.elapse(1_001).await;
    assert_eq!(house.status(&run).await, RunStatus::Completed);
    let attempts: Vec<u32> = house.world.performed().iter().map(|p| p.attempt).collect();
    assert_eq!(attempts, [0, 1]);
}

#[test(start_paused = true)]
async fn more_effects_than_workers_wait_their_turn() {
    let house = Plan {
        max_effects: 2,
        script: slow(20),
        ..Plan::default()
    };
    let house = house.build().await;
    house.register(wf("calls").http("a", 1).http("b", 1)).await;
    let mut runs = Vec::new();
    for _ in 0..50 {
        runs.push(house.create("calls", json!({})).await);
    }
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Completed);
    }
    assert_eq!(house.world.performed().len(), 100);
    let left = tandem_store::Outbox::depth(&house.store).await;
    assert_eq!(left.expect("the store answers"), 0);
}

#[test(start_paused = true)]
async fn what_a_dead_process_left_is_taken_up_by_the_next() {
    let first = Plan {
        script: slow(60_000),
        ..Plan::default()
    };
    let first = first.build().await;
    first.register(wf("call").http("call", 1)).await;
    let run = first.create("call", json!({})).await;
    first.elapse(5).await;
    first.runtime.shutdown(std::time::Duration::ZERO).await;
    let second = Plan {
        store: first.store.clone(),
        ..Plan::default()
    };
    let second = second.build().await;
    assert_eq!(second.ended(&run).await, RunStatus::Completed);
}
