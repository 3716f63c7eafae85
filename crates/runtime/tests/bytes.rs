//! What cannot be stored, what is read in pages, and what a large run leaves in the store.

use serde_json::{Value, json};
use tandem_record::{Event, Recorded, RunStatus, Seq, StreamId};
use tandem_runtime::{Limits, PageLimit};
use tandem_store::{ReadLog, ReadTimers};
use tandem_testkit::house::{House, Plan};
use tandem_testkit::{Mishap, wf};
use tokio::test;

fn failure(log: &[Recorded]) -> Option<String> {
    log.iter().find_map(|recorded| match &recorded.event {
        Event::RunFailed { error, .. } => Some(error.code.clone()),
        _ => None,
    })
}

/// A decision the store refuses for good is not made again for ever: the run fails.
#[test(start_paused = true)]
async fn a_run_that_cannot_be_stored_any_more_fails_and_its_timer_is_gone() {
    let house = House::new().await;
    house.register(wf("nap").delay("nap", 500)).await;
    let run = house.create("nap", json!({})).await;
    house.faults.next([Mishap::NeverFits]);
    house.elapse(5_000).await;
    assert_eq!(house.status(&run).await, RunStatus::Failed);
    let log = house.log(&run).await;
    assert_eq!(failure(&log).as_deref(), Some("run_too_large_to_store"));
    assert_eq!(house.store.next_timer().await.unwrap(), None);
    // Others are not touched.
    let other = house.create("nap", json!({})).await;
    house.elapse(1_000).await;
    assert_eq!(house.status(&other).await, RunStatus::Completed);
}

/// The caller whose command cannot be stored is told, and the run has ended.
#[test(start_paused = true)]
async fn a_command_that_cannot_be_stored_is_refused_and_ends_the_run() {
    let house = House::new().await;
    house.register(wf("nap").delay("nap", 60_000)).await;
    let run = house.create("nap", json!({})).await;
    house.faults.next([Mishap::NeverFits]);
    assert!(house.pause(&run).await.is_err());
    assert_eq!(house.status(&run).await, RunStatus::Failed);
}

fn passed_on(nodes: usize) -> tandem_testkit::Flow {
    let ids: Vec<String> = (0..nodes).map(|n| format!("n{n}")).collect();
    let bound = json!({"v": {"type": "variable", "variableName": "v"}});
    let flow = ids.iter().fold(wf("large"), |flow, id| {
        flow.node(id, "core.noop", json!({}))
            .with("inputs", bound.clone())
    });
    flow.variable("v", json!("")).path(&ids.join(" "))
}

#[test(start_paused = true)]
async fn pages_of_bytes_show_the_whole_log_in_order() {
    let house = House::new().await;
    house.register(passed_on(12)).await;
    let run = house.create("large", json!({"v": "x".repeat(4_000)})).await;
    let whole = house.log(&run).await;
    let (mut read, mut after): (Vec<Recorded>, Option<Seq>) = (Vec::new(), None);
    let limit = PageLimit {
        events: 1_000,
        bytes: 10_000,
    };
    loop {
        let page = house.runtime.event_page(&run, after, limit).await;
        let page = page.unwrap().unwrap();
        assert!(
            page.bytes <= 10_000 || page.events.len() == 1,
            "{}",
            page.bytes
        );
        let Some(last) = page.events.last() else {
            break;
        };
        after = Some(last.seq);
        read.extend(page.events);
    }
    assert_eq!(read, whole);
}

/// The snapshot is the state, so the bound on the state is its bound; and who reads the run after a
/// restart finds it as it was.
#[test(start_paused = true)]
async fn a_run_over_its_budget_fails_and_leaves_no_large_snapshot() {
    let plan = Plan {
        limits: Limits {
            max_state_bytes: 1024 * 1024,
            max_decision_bytes: 256 * 1024,
            max_starts_per_decision: 1_000,
            ..Limits::default()
        },
        ..Plan::default()
    };
    let house = plan.build().await;
    house.register(passed_on(150)).await;
    let value: Value = json!("x".repeat(20_000));
    let run = house.create("large", json!({"v": value})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Failed);
    let log = house.log(&run).await;
    assert_eq!(failure(&log).as_deref(), Some("run_state_too_large"));
    let snapshot = house.store.snapshot(&StreamId::of_run(&run)).await.unwrap();
    let length = snapshot.map_or(0, |snapshot| snapshot.body.len());
    assert!(length < 2 * 1024 * 1024, "{length}");
    assert_eq!(house.folded(&run).await.status(), RunStatus::Failed);
}
