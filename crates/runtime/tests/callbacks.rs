//! Callbacks of runs: every question is announced at least once after its commit, until it is
//! closed.

use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::{
    Command, DeciderSnapshot, Event, ForkMode, NodeId, Principal, RunId, RunStatus, Seq,
};
use tandem_runtime::{NewRun, StarterAccess};
use tandem_store::Outbox as _;
use tandem_testkit::test_host::{TestHost, TestHostBuilder, children, names, new_run};
use tandem_testkit::{AnnouncementAttempt, InjectedFault, TargetBehavior, WorkflowBuilder, wf};
use tokio::test;

const URL: &str = "https://example.com/asked";
const MINUTE: u64 = 60_000;

fn gated(id: &str) -> WorkflowBuilder {
    wf(id).node("gate", "core.approvalGate", json!({}))
}

fn run_with_callback(workflow: &str, url: &str) -> NewRun {
    let mut new = new_run(workflow, json!({}));
    new.request.callback_url = Some(url.to_owned());
    new
}

async fn start(host: &TestHost, new: NewRun) -> RunId {
    let created = host.runtime.create_run(new, None).await;
    created.expect("the run may start")
}

async fn asking(host: &TestHost) -> RunId {
    host.register(gated("flow")).await;
    start(host, run_with_callback("flow", URL)).await
}

async fn accept(host: &TestHost, run: &RunId) {
    let accept = Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value: json!({"action": "accept"}),
        by: Some(Principal::new("ana")),
        by_link: false,
        decider: DeciderSnapshot::default(),
    };
    host.submit(run, accept).await.expect("it is open");
}

async fn depth(host: &TestHost) -> u64 {
    host.store.depth().await.expect("it answers")
}

/// The same host after a crash.
async fn restarted(host: TestHost) -> TestHost {
    let next = TestHostBuilder {
        store: host.store.reopen(),
        webhook_sender: host.webhook_sender.clone(),
        incarnation: 2,
        ..TestHostBuilder::default()
    };
    next.build().await
}

#[test(start_paused = true)]
async fn question_is_announced_after_its_commit() {
    let host = TestHost::new().await;
    let run = asking(&host).await;
    host.elapse(10).await;
    let announcements = host.webhook_sender.announcements();
    let open = host.folded(&run).await.open_questions();
    let expected = AnnouncementAttempt {
        id: format!("announce:{}", open[0].interrupt.id),
        url: URL.to_owned(),
        run: run.clone(),
        parent_and_root: None,
        interrupt: open[0].interrupt.id.clone(),
        may_answer: false,
        at: announcements[0].at,
        accepted: true,
    };
    assert_eq!(announcements, [expected]);
    assert_eq!(depth(&host).await, 0);
    host.elapse(120 * MINUTE).await;
    assert_eq!(
        host.webhook_sender.announcements().len(),
        1,
        "one announcement"
    );
    accept(&host, &run).await;
    assert_eq!(host.status(&run).await, RunStatus::Completed);
}

#[test(start_paused = true)]
async fn uncommitted_question_is_not_announced() {
    let host = TestHost::new().await;
    host.register(gated("flow")).await;
    host.faults.next([InjectedFault::FailsBefore]);
    let failed = host
        .runtime
        .create_run(run_with_callback("flow", URL), None)
        .await;
    assert!(failed.is_err());
    host.elapse(MINUTE).await;
    assert_eq!(host.webhook_sender.announcements(), []);
}

#[test(start_paused = true)]
async fn announcement_to_a_callback_that_is_down_is_retried_under_the_same_id() {
    let host = TestHost::new().await;
    let well_at = host.runtime.clock().now().plus_ms(20_000);
    host.webhook_sender
        .set_callback(URL, TargetBehavior::DownUntil(well_at));
    asking(&host).await;
    host.elapse(MINUTE).await;
    let announcements = host.webhook_sender.announcements();
    let accepted: Vec<bool> = announcements
        .iter()
        .map(|attempt| attempt.accepted)
        .collect();
    assert_eq!(accepted, [false, false, false, true]);
    assert!(
        announcements
            .iter()
            .all(|other| other.id == announcements[0].id)
    );
    assert_eq!(depth(&host).await, 0);
}

#[test(start_paused = true)]
async fn closed_question_is_not_announced_again() {
    let host = TestHost::new().await;
    let down = TargetBehavior::DownUntil(host.runtime.clock().now().plus_ms(600 * MINUTE));
    host.webhook_sender.set_callback(URL, down);
    let answered = asking(&host).await;
    let cancelled = start(&host, run_with_callback("flow", URL)).await;
    host.elapse(2_000).await;
    accept(&host, &answered).await;
    host.cancel(&cancelled).await.expect("it is live");
    assert_eq!(depth(&host).await, 0, "removed with the answer");
    let tried = host.webhook_sender.announcements().len();
    host.elapse(120 * MINUTE).await;
    assert_eq!(host.webhook_sender.announcements().len(), tried);
}

#[test(start_paused = true)]
async fn question_closed_during_announcement_is_not_rescheduled() {
    let host = TestHost::new().await;
    host.webhook_sender.set_callback(URL, TargetBehavior::Hangs);
    let run = asking(&host).await;
    host.elapse(100).await;
    accept(&host, &run).await;
    host.elapse(120 * MINUTE).await;
    assert_eq!(depth(&host).await, 0);
    assert_eq!(host.webhook_sender.announcements(), []);
}

#[test(start_paused = true)]
async fn question_left_open_by_a_crash_is_announced_after_restart() {
    // The commit that opens the question is durable. The process then crashes: before the
    // announcement, or before it records the announcement.
    for (faults, expected) in [
        (vec![InjectedFault::CrashesAfter], 1),
        (vec![InjectedFault::None, InjectedFault::CrashesBefore], 2),
    ] {
        let host = TestHost::new().await;
        host.register(gated("flow")).await;
        host.faults.next(faults);
        let creating = host
            .runtime
            .create_run(run_with_callback("flow", URL), None);
        tokio::select! {
            _ = creating => host.faults.crashed().await,
            () = host.faults.crashed() => {}
        }
        let next = restarted(host).await;
        next.elapse(100).await;
        let announcements = next.webhook_sender.announcements();
        assert_eq!(announcements.len(), expected, "at least once");
        assert!(
            announcements
                .iter()
                .all(|other| other.id == announcements[0].id)
        );
        assert_eq!(depth(&next).await, 0);
    }
}

#[test(start_paused = true)]
async fn announcement_failures_survive_a_restart() {
    let host = TestHost::new().await;
    let well_at = host.runtime.clock().now().plus_ms(20_000);
    host.webhook_sender
        .set_callback(URL, TargetBehavior::DownUntil(well_at));
    asking(&host).await;
    host.elapse(2_000).await;
    let tried = host.webhook_sender.announcements().len();
    assert_eq!(tried, 2);
    host.runtime.shutdown(Duration::ZERO).await;
    let next = restarted(host).await;
    next.elapse(500).await;
    assert_eq!(
        next.webhook_sender.announcements().len(),
        tried,
        "the pause continues"
    );
    next.elapse(2 * MINUTE).await;
    assert!(
        next.webhook_sender
            .announcements()
            .last()
            .expect("it was announced")
            .accepted
    );
}

#[test(start_paused = true)]
async fn store_failure_does_not_repeat_an_announcement() {
    for fault in [InjectedFault::FailsBefore, InjectedFault::FailsAfter] {
        let host = TestHost::new().await;
        host.register(gated("flow")).await;
        host.faults.next([InjectedFault::None, fault, fault]);
        start(&host, run_with_callback("flow", URL)).await;
        host.elapse(MINUTE).await;
        assert_eq!(host.webhook_sender.announcements().len(), 1, "{fault:?}");
        assert_eq!(depth(&host).await, 0);
    }
}

#[test(start_paused = true)]
async fn undeliverable_announcement_is_recorded_in_the_run_log() {
    let host = TestHost::new().await;
    let never = host.runtime.clock().now().plus_ms(u64::from(u32::MAX));
    host.webhook_sender
        .set_callback(URL, TargetBehavior::DownUntil(never));
    let run = asking(&host).await;
    host.elapse(48 * 60 * MINUTE).await;
    assert_eq!(host.webhook_sender.announcements().len(), 24);
    assert_eq!(depth(&host).await, 0);
    assert_eq!(host.status(&run).await, RunStatus::WaitingApproval);
    let log = host.log(&run).await;
    let codes: Vec<&Value> = log
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::LogAppended {
                fields: Some(fields),
                ..
            } => fields.get("code"),
            _ => None,
        })
        .collect();
    assert_eq!(codes, [&json!("callback_undelivered")]);
    accept(&host, &run).await;
    assert_eq!(host.status(&run).await, RunStatus::Completed);
    let replay = host.fork(&run, ForkMode::Replay, Seq(0)).await;
    let replay = replay.expect("it may be forked");
    assert_eq!(host.status(&replay).await, RunStatus::Completed);
    let (source, replayed) = (host.log(&run).await, host.log(&replay).await);
    assert_eq!(names(&source), names(&replayed), "the replay repeats it");
}

#[test(start_paused = true)]
async fn question_of_a_child_is_announced_once_with_parent_and_root() {
    let host = TestHost::new().await;
    host.register(gated("leaf")).await;
    let middle = wf("middle").call("call", "leaf", json!({}));
    host.register(middle).await;
    host.register(wf("top").call("call", "middle", json!({})))
        .await;
    let top = start(&host, run_with_callback("top", URL)).await;
    host.elapse(1_000).await;
    let middle = children(&host.log(&top).await).remove(0);
    let leaf = children(&host.log(&middle).await).remove(0);
    assert_eq!(host.status(&top).await, RunStatus::WaitingApproval);
    let announcements = host.webhook_sender.announcements();
    assert_eq!(announcements.len(), 1, "{announcements:?}");
    assert_eq!(
        (&announcements[0].run, &*announcements[0].url),
        (&leaf, URL)
    );
    assert_eq!(announcements[0].parent_and_root, Some((middle, top)));
}

#[test(start_paused = true)]
async fn fork_has_no_callback() {
    let host = TestHost::new().await;
    let run = asking(&host).await;
    host.elapse(10).await;
    for mode in [ForkMode::Branch, ForkMode::Replay] {
        let forked = host.fork(&run, mode, Seq(0)).await;
        forked.expect("it may be forked");
    }
    host.elapse(MINUTE).await;
    let announcements = host.webhook_sender.announcements();
    assert!(
        announcements.iter().all(|attempt| attempt.run == run),
        "{announcements:?}"
    );
}

#[test(start_paused = true)]
async fn hanging_callback_does_not_block_other_callbacks() {
    let host = TestHost::new().await;
    host.webhook_sender.set_callback(URL, TargetBehavior::Hangs);
    host.register(gated("flow")).await;
    for _ in 0..20 {
        start(&host, run_with_callback("flow", URL)).await;
    }
    host.elapse(100).await;
    let other = "https://other.example.net/asked";
    let run = start(&host, run_with_callback("flow", other)).await;
    host.elapse(100).await;
    let announcements = host.webhook_sender.announcements();
    assert_eq!(announcements.len(), 1, "{announcements:?}");
    assert_eq!(announcements[0].run, run);
}

#[test(start_paused = true)]
async fn nothing_is_announced_once_the_starter_may_not_read() {
    let host = TestHost::new().await;
    let down = TargetBehavior::DownUntil(host.runtime.clock().now().plus_ms(600 * MINUTE));
    host.webhook_sender.set_callback(URL, down);
    let run = asking(&host).await;
    host.elapse(10).await;
    assert_eq!(host.webhook_sender.announcements().len(), 1);
    host.webhook_sender.set_starter_access(StarterAccess {
        may_read: false,
        may_answer: true,
    });
    host.elapse(120 * MINUTE).await;
    assert_eq!(host.webhook_sender.announcements().len(), 1);
    assert_eq!(depth(&host).await, 0);
    accept(&host, &run).await;
    assert_eq!(host.status(&run).await, RunStatus::Completed);
}
