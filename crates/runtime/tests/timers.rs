//! The timer loop in bad company.

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tandem_record::{Command, RunStatus, StreamId, TimerKey, Timestamp};
use tandem_runtime::Clock;
use tandem_store::{Append, Commit, Log, NewEvent, ReadLog, ReadTimers};
use tandem_testkit::house::{House, Plan};
use tandem_testkit::{Faults, Mishap, SimClock, wf};
use tokio::test;

#[test(start_paused = true)]
async fn a_run_that_cannot_be_read_does_not_hold_up_the_others() {
    let slow_disk = Plan {
        faults: Faults::always(Mishap::SlowBefore(10)),
        ..Plan::default()
    };
    let house = slow_disk.build().await;
    house.register(wf("nap").delay("nap", 500)).await;
    let broken = house.create("nap", json!({})).await;
    let mut others = Vec::new();
    for _ in 0..10 {
        others.push(house.create("nap", json!({})).await);
    }
    let stream = StreamId::of_run(&broken);
    let slice = house.store.events(&stream, None, 100).await;
    let garbage = Commit {
        appends: vec![Append {
            stream,
            after: slice.expect("the store answers").head,
            events: vec![NewEvent {
                at: Default::default(),
                body: "not an event".to_owned(),
            }],
            run: None,
            snapshot: None,
        }],
        ..Commit::default()
    };
    house
        .store
        .commit(garbage)
        .await
        .expect("the store takes it");
    house.elapse(2_000).await;
    for run in &others {
        assert_eq!(house.status(run).await, RunStatus::Completed);
    }
}

/// Every other look at it shows an earlier time.
struct Wobbling {
    true_time: SimClock,
    looks: AtomicU32,
}

impl Clock for Wobbling {
    fn now(&self) -> Timestamp {
        let behind = self.looks.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let now = self.true_time.now();
        Timestamp(now.0 - if behind { 100 } else { 0 })
    }

    fn advance(&self, ms: i64) -> Timestamp {
        self.true_time.advance(ms)
    }

    fn offset_ms(&self) -> i64 {
        self.true_time.offset_ms()
    }
}

#[test(start_paused = true)]
async fn a_timer_that_fired_before_its_time_is_not_lost() {
    let clock = Wobbling {
        true_time: SimClock::starting_at(Timestamp(1_800_000_000_000)),
        looks: AtomicU32::new(0),
    };
    let house = Plan {
        clock: Arc::new(clock),
        ..Plan::default()
    };
    let house = house.build().await;
    house.register(wf("nap").delay("nap", 500)).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(house.create("nap", json!({})).await);
        house.elapse(7).await;
    }
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Completed);
    }
}

#[test(start_paused = true)]
async fn a_false_alarm_leaves_the_timer_standing() {
    let house = House::new().await;
    house.register(wf("nap").delay("nap", 500)).await;
    let run = house.create("nap", json!({})).await;
    let key = TimerKey::NodeWake {
        node: "nap".into(),
        attempt: 0,
    };
    house
        .submit(&run, Command::TimerFired(key))
        .await
        .expect("it is heard");
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let left = house.store.next_timer().await.expect("the store answers");
    assert_eq!(left, None);
}
