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
async fn a_child_exists_from_the_commit_that_names_it() {
    let house = family().await;
    // Only the parent's own commit passes.
    house.faults.next([Mishap::None, Mishap::FailsBefore]);
    let parent = house.create("parent", json!({})).await;
    let child = &children(&house.log(&parent).await)[0];
    let found = house.runtime.find_run(&tenant(), child).await;
    let found = found.expect("the store answers").expect("it is named");
    assert_eq!(found.row.parent, Some(parent));
}

#[test(start_paused = true)]
async fn a_child_that_could_not_take_its_first_step_is_cancelled_without_one() {
    let house = family().await;
    house.faults.next([Mishap::None, Mishap::FailsBefore]);
    let parent = house.create("parent", json!({})).await;
    house.elapse(10).await;
    house.cancel(&parent).await.expect("running");
    house.elapse(5_000).await;
    assert_eq!(house.status(&parent).await, RunStatus::Cancelled);
    let child = &children(&house.log(&parent).await)[0];
    assert_eq!(house.status(child).await, RunStatus::Cancelled);
    let started = house.log(child).await;
    let started = started.iter().any(|r| r.event.node().is_some());
    assert!(!started, "nobody waits for it any more");
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
