//! Families of runs, where the order of effects could lose a member.

use serde_json::json;
use tandem_record::RunStatus;
use tandem_testkit::house::{House, children, tenant};
use tandem_testkit::{Mishap, wf};
use tokio::test;

async fn family() -> House {
    let house = House::new().await;
    house.register(wf("child").delay("nap", 3_600_000)).await;
    house
        .register(wf("parent").call("call", "child", json!({})))
        .await;
    house
}

#[test(start_paused = true)]
async fn a_child_that_could_not_be_started_in_time_is_not_started_after_the_cancel() {
    let house = family().await;
    // The parent's own commit passes; the child's first does not.
    house.faults.next([Mishap::None, Mishap::FailsBefore]);
    let parent = house.create("parent", json!({})).await;
    house.elapse(10).await;
    house.cancel(&parent).await.expect("running");
    house.elapse(5_000).await;
    assert_eq!(house.status(&parent).await, RunStatus::Cancelled);
    let child = &children(&house.log(&parent).await)[0];
    let found = house.runtime.find_run(&tenant(), child).await;
    assert!(
        found.expect("the store answers").is_none(),
        "nobody waits for it"
    );
}

#[test(start_paused = true)]
async fn a_child_that_was_started_is_cancelled_before_its_parent() {
    let house = family().await;
    let parent = house.create("parent", json!({})).await;
    house.elapse(10).await;
    house.cancel(&parent).await.expect("running");
    house.elapse(1).await;
    let child = &children(&house.log(&parent).await)[0];
    assert_eq!(house.status(child).await, RunStatus::Cancelled);
    assert_eq!(house.status(&parent).await, RunStatus::Cancelled);
}

#[test(start_paused = true)]
async fn a_start_that_was_durable_though_it_failed_makes_one_child() {
    let house = House::new().await;
    house.register(wf("child").delay("nap", 100)).await;
    house
        .register(wf("parent").call("call", "child", json!({})))
        .await;
    house
        .faults
        .next([Mishap::None, Mishap::FailsAfter, Mishap::FailsAfter]);
    let parent = house.create("parent", json!({})).await;
    assert_eq!(house.ended(&parent).await, RunStatus::Completed);
}
