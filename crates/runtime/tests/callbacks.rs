//! Callbacks of runs: every question is announced with its commit, at least once, until it is closed.

use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::{Command, Event, ForkMode, NodeId, Principal, RunId, RunStatus, Seq, Standing};
use tandem_runtime::NewRun;
use tandem_store::Outbox as _;
use tandem_testkit::house::{House, Plan, children, names, new_run};
use tandem_testkit::{Announced, Flow, Mishap, Target, wf};
use tokio::test;

const URL: &str = "https://example.com/asked";
const MINUTE: u64 = 60_000;

fn gated(id: &str) -> Flow {
    wf(id).node("gate", "core.approvalGate", json!({}))
}

fn heard(workflow: &str, url: &str) -> NewRun {
    let mut new = new_run(workflow, json!({}));
    new.request.callback_url = Some(url.to_owned());
    new
}

async fn start(house: &House, new: NewRun) -> RunId {
    let created = house.runtime.create_run(new, None).await;
    created.expect("the run may start")
}

async fn asking(house: &House) -> RunId {
    house.register(gated("flow")).await;
    start(house, heard("flow", URL)).await
}

async fn accept(house: &House, run: &RunId) {
    let accept = Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value: json!({"action": "accept"}),
        by: Some(Principal::new("ana")),
        by_link: false,
        standing: Standing::default(),
    };
    house.submit(run, accept).await.expect("it is open");
}

async fn depth(house: &House) -> u64 {
    house.store.depth().await.expect("it answers")
}

/// The same house after a crash.
async fn restarted(house: House) -> House {
    let next = Plan {
        store: house.store.reopen(),
        courier: house.courier.clone(),
        life: 2,
        ..Plan::default()
    };
    next.build().await
}

#[test(start_paused = true)]
async fn a_question_is_announced_when_it_is_durable() {
    let house = House::new().await;
    let run = asking(&house).await;
    house.elapse(10).await;
    let told = house.courier.announced();
    let open = house.folded(&run).await.open_questions();
    let expected = Announced {
        id: format!("announce:{}", open[0].interrupt.id),
        url: URL.to_owned(),
        run: run.clone(),
        family: None,
        interrupt: open[0].interrupt.id.clone(),
        may_answer: false,
        at: told[0].at,
        taken: true,
    };
    assert_eq!(told, [expected]);
    assert_eq!(depth(&house).await, 0);
    house.elapse(120 * MINUTE).await;
    assert_eq!(house.courier.announced().len(), 1, "it was heard");
    accept(&house, &run).await;
    assert_eq!(house.status(&run).await, RunStatus::Completed);
}

#[test(start_paused = true)]
async fn nothing_is_announced_that_was_not_committed() {
    let house = House::new().await;
    house.register(gated("flow")).await;
    house.faults.next([Mishap::FailsBefore]);
    let failed = house.runtime.create_run(heard("flow", URL), None).await;
    assert!(failed.is_err());
    house.elapse(MINUTE).await;
    assert_eq!(house.courier.announced(), []);
}

#[test(start_paused = true)]
async fn a_callback_that_is_down_hears_of_it_later_under_the_same_id() {
    let house = House::new().await;
    let well_at = house.runtime.clock().now().plus_ms(20_000);
    house.courier.set_callback(URL, Target::DownUntil(well_at));
    asking(&house).await;
    house.elapse(MINUTE).await;
    let told = house.courier.announced();
    let taken: Vec<bool> = told.iter().map(|told| told.taken).collect();
    assert_eq!(taken, [false, false, false, true]);
    assert!(told.iter().all(|other| other.id == told[0].id));
    assert_eq!(depth(&house).await, 0);
}

#[test(start_paused = true)]
async fn a_question_that_is_closed_is_announced_no_more() {
    let house = House::new().await;
    let down = Target::DownUntil(house.runtime.clock().now().plus_ms(600 * MINUTE));
    house.courier.set_callback(URL, down);
    let answered = asking(&house).await;
    let cancelled = start(&house, heard("flow", URL)).await;
    house.elapse(2_000).await;
    accept(&house, &answered).await;
    house.cancel(&cancelled).await.expect("it is live");
    assert_eq!(depth(&house).await, 0, "taken back with the answer");
    let tried = house.courier.announced().len();
    house.elapse(120 * MINUTE).await;
    assert_eq!(house.courier.announced().len(), tried);
}

#[test(start_paused = true)]
async fn a_question_closed_while_it_is_announced_does_not_come_back() {
    let house = House::new().await;
    house.courier.set_callback(URL, Target::Hangs);
    let run = asking(&house).await;
    house.elapse(100).await;
    accept(&house, &run).await;
    house.elapse(120 * MINUTE).await;
    assert_eq!(depth(&house).await, 0);
    assert_eq!(house.courier.announced(), []);
}

#[test(start_paused = true)]
async fn what_a_crash_leaves_open_is_announced_afterwards() {
    // The asking commit is durable and the process dies: before it tells, and before it notes that
    // it has told.
    for (mishaps, expected) in [
        (vec![Mishap::CrashesAfter], 1),
        (vec![Mishap::None, Mishap::CrashesBefore], 2),
    ] {
        let house = House::new().await;
        house.register(gated("flow")).await;
        house.faults.next(mishaps);
        let creating = house.runtime.create_run(heard("flow", URL), None);
        tokio::select! {
            _ = creating => house.faults.crashed().await,
            () = house.faults.crashed() => {}
        }
        let next = restarted(house).await;
        next.elapse(100).await;
        let told = next.courier.announced();
        assert_eq!(told.len(), expected, "at least once");
        assert!(told.iter().all(|other| other.id == told[0].id));
        assert_eq!(depth(&next).await, 0);
    }
}

#[test(start_paused = true)]
async fn failures_survive_a_restart() {
    let house = House::new().await;
    let well_at = house.runtime.clock().now().plus_ms(20_000);
    house.courier.set_callback(URL, Target::DownUntil(well_at));
    asking(&house).await;
    house.elapse(2_000).await;
    let tried = house.courier.announced().len();
    assert_eq!(tried, 2);
    house.runtime.shutdown(Duration::ZERO).await;
    let next = restarted(house).await;
    next.elapse(500).await;
    assert_eq!(next.courier.announced().len(), tried, "it keeps its pause");
    next.elapse(2 * MINUTE).await;
    assert!(next.courier.announced().last().expect("it was told").taken);
}

#[test(start_paused = true)]
async fn trouble_of_the_store_does_not_repeat_what_was_said() {
    for mishap in [Mishap::FailsBefore, Mishap::FailsAfter] {
        let house = House::new().await;
        house.register(gated("flow")).await;
        house.faults.next([Mishap::None, mishap, mishap]);
        start(&house, heard("flow", URL)).await;
        house.elapse(MINUTE).await;
        assert_eq!(house.courier.announced().len(), 1, "{mishap:?}");
        assert_eq!(depth(&house).await, 0);
    }
}

#[test(start_paused = true)]
async fn what_nobody_takes_is_given_up_in_the_open() {
    let house = House::new().await;
    let never = house.runtime.clock().now().plus_ms(u64::from(u32::MAX));
    house.courier.set_callback(URL, Target::DownUntil(never));
    let run = asking(&house).await;
    house.elapse(48 * 60 * MINUTE).await;
    assert_eq!(house.courier.announced().len(), 24);
    assert_eq!(depth(&house).await, 0);
    assert_eq!(house.status(&run).await, RunStatus::WaitingApproval);
    let log = house.log(&run).await;
    let said: Vec<&Value> = log
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::LogAppended {
                fields: Some(fields),
                ..
            } => fields.get("code"),
            _ => None,
        })
        .collect();
    assert_eq!(said, [&json!("callback_undelivered")]);
    accept(&house, &run).await;
    assert_eq!(house.status(&run).await, RunStatus::Completed);
    let replay = house.fork(&run, ForkMode::Replay, Seq(0)).await;
    let replay = replay.expect("it may be forked");
    assert_eq!(house.status(&replay).await, RunStatus::Completed);
    let (source, replayed) = (house.log(&run).await, house.log(&replay).await);
    assert_eq!(names(&source), names(&replayed), "it is repeated as it was");
}

#[test(start_paused = true)]
async fn a_question_of_a_child_is_announced_once_with_its_family() {
    let house = House::new().await;
    house.register(gated("leaf")).await;
    let middle = wf("middle").call("call", "leaf", json!({}));
    house.register(middle).await;
    house
        .register(wf("top").call("call", "middle", json!({})))
        .await;
    let top = start(&house, heard("top", URL)).await;
    house.elapse(1_000).await;
    let middle = children(&house.log(&top).await).remove(0);
    let leaf = children(&house.log(&middle).await).remove(0);
    assert_eq!(house.status(&top).await, RunStatus::WaitingApproval);
    let told = house.courier.announced();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0].run, &*told[0].url), (&leaf, URL));
    assert_eq!(told[0].family, Some((middle, top)));
}

#[test(start_paused = true)]
async fn a_fork_has_no_callback() {
    let house = House::new().await;
    let run = asking(&house).await;
    house.elapse(10).await;
    for mode in [ForkMode::Branch, ForkMode::Replay] {
        let forked = house.fork(&run, mode, Seq(0)).await;
        forked.expect("it may be forked");
    }
    house.elapse(MINUTE).await;
    let told = house.courier.announced();
    assert!(told.iter().all(|told| told.run == run), "{told:?}");
}

#[test(start_paused = true)]
async fn a_callback_that_hangs_leaves_the_others_theirs() {
    let house = House::new().await;
    house.courier.set_callback(URL, Target::Hangs);
    house.register(gated("flow")).await;
    for _ in 0..20 {
        start(&house, heard("flow", URL)).await;
    }
    house.elapse(100).await;
    let other = "https://other.example.net/asked";
    let run = start(&house, heard("flow", other)).await;
    house.elapse(100).await;
    let told = house.courier.announced();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].run, run);
}
