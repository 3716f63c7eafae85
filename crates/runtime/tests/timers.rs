//! The timer loop with unreadable runs, a clock that goes back, and unknown commands.

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tandem_record::{Command, RunStatus, StreamId, TimerKey, TimerName, Timestamp};
use tandem_runtime::Clock;
use tandem_store::{Append, Commit, Log, NewEvent, ReadLog, ReadTimers, TimerChange};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, tenant};
use tandem_testkit::{Faults, InjectedFault, SimClock, wf};
use tokio::test;

#[test(start_paused = true)]
async fn unreadable_run_does_not_delay_timers_of_others() {
    let slow_disk = TestHostBuilder {
        faults: Faults::always(InjectedFault::SlowBefore(10)),
        ..TestHostBuilder::default()
    };
    let host = slow_disk.build().await;
    host.register(wf("nap").delay("nap", 500)).await;
    let broken = host.create("nap", json!({})).await;
    let mut others = Vec::new();
    for _ in 0..10 {
        others.push(host.create("nap", json!({})).await);
    }
    let stream = StreamId::of_run(&broken);
    let slice = host.store.events(&stream, None, 100).await;
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
    host.store
        .commit(garbage)
        .await
        .expect("the store takes it");
    host.elapse(2_000).await;
    for run in &others {
        assert_eq!(host.status(run).await, RunStatus::Completed);
    }
}

/// A clock of which every second read returns an earlier time.
struct WobblingClock {
    true_time: SimClock,
    looks: AtomicU32,
}

impl Clock for WobblingClock {
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
async fn timer_fired_too_early_is_set_again() {
    let clock = WobblingClock {
        true_time: SimClock::starting_at(Timestamp(1_800_000_000_000)),
        looks: AtomicU32::new(0),
    };
    let host = TestHostBuilder {
        clock: Arc::new(clock),
        ..TestHostBuilder::default()
    };
    let host = host.build().await;
    host.register(wf("nap").delay("nap", 500)).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(host.create("nap", json!({})).await);
        host.elapse(7).await;
    }
    for run in &runs {
        assert_eq!(host.ended(run).await, RunStatus::Completed);
    }
}

#[test(start_paused = true)]
async fn timer_command_before_its_due_time_leaves_the_timer_set() {
    let host = TestHost::new().await;
    host.register(wf("nap").delay("nap", 500)).await;
    let run = host.create("nap", json!({})).await;
    let key = TimerKey::NodeWake {
        node: "nap".into(),
        attempt: 0,
    };
    host.submit(&run, Command::FireTimer(key))
        .await
        .expect("the command is handled");
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let left = host.store.next_timer().await.expect("the store answers");
    assert_eq!(left, None);
}

#[test(start_paused = true)]
async fn timer_that_its_run_does_not_need_is_removed_once_fired() {
    let host = TestHost::new().await;
    host.register(wf("gated").node("gate", "core.approvalGate", json!({"title": "Go?"})))
        .await;
    let run = host.create("gated", json!({})).await;
    let key = TimerKey::NodeWake {
        node: "gate".into(),
        attempt: 7,
    };
    let name = serde_json::to_string(&key).expect("plain data");
    let stray = Commit {
        timers: vec![TimerChange::Set {
            stream: StreamId::of_run(&run),
            name: TimerName::from(name),
            due: Timestamp(0),
            tenant: tenant(),
        }],
        ..Commit::default()
    };
    host.store.commit(stray).await.expect("the store answers");
    // Its commit was not this host's, so the timer loop finds it with the next timer that is set.
    host.register(wf("nap").delay("nap", 5)).await;
    let nap = host.create("nap", json!({})).await;
    assert_eq!(host.ended(&nap).await, RunStatus::Completed);
    host.elapse(10).await;
    let left = host.store.next_timer().await.expect("the store answers");
    assert_ne!(left, Some(Timestamp(0)), "it would fire again and again");
    assert_eq!(host.status(&run).await, RunStatus::WaitingApproval);
}
