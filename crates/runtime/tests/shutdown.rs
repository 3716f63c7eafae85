//! The end of a process that is asked to end.

use serde_json::json;
use std::time::Duration;
use tandem_record::RunStatus;
use tandem_store::{Outbox, ReadRuns};
use tandem_testkit::house::{House, Plan, tenant};
use tandem_testkit::{Script, wf};
use tokio::test;

async fn house(slowest_ms: u64) -> House {
    let plan = Plan {
        script: Script {
            trouble: 0,
            broken: 0,
            slowest_ms,
        },
        ..Plan::default()
    };
    let house = plan.build().await;
    house
        .register(wf("call").http("call", 1).noop("after").path("call after"))
        .await;
    house
}

#[test(start_paused = true)]
async fn what_is_under_way_is_finished_and_recorded() {
    let house = house(2_000).await;
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(house.create("call", json!({})).await);
    }
    house.elapse(1).await;
    house.runtime.shutdown(Duration::from_secs(10)).await;
    let left = house.store.reopen();
    for run in &runs {
        let stored = left.run(&tenant(), run).await.expect("the store answers");
        assert_eq!(
            stored.expect("the run exists").row.status,
            RunStatus::Completed
        );
    }
    assert_eq!(left.depth().await.expect("the store answers"), 0);
}

#[test(start_paused = true)]
async fn what_takes_too_long_is_left_to_the_next_process() {
    let house = house(600_000).await;
    let run = house.create("call", json!({})).await;
    house.elapse(1).await;
    house.runtime.shutdown(Duration::from_millis(10)).await;
    let left = house.store.reopen();
    let stored = left.run(&tenant(), &run).await.expect("the store answers");
    assert_eq!(
        stored.expect("the run exists").row.status,
        RunStatus::Running
    );
    assert_eq!(left.depth().await.expect("the store answers"), 1);
}

#[test(start_paused = true)]
async fn a_closed_house_says_so() {
    let house = house(0).await;
    house.runtime.shutdown(Duration::ZERO).await;
    let refused = house.create_with("call", json!({}), None).await;
    assert!(refused.is_err());
}
