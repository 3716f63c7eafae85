//! A machine beside the workflow run, driven by the same runtime: timers, ordered effects, a refusal at
//! dispatch, questions and idempotency records, through crashes, restarts and several processes, and in
//! one commit with a workflow run.

#[path = "second_machine/driven.rs"]
mod driven;
#[path = "second_machine/mailbox.rs"]
mod mailbox;

use driven::{MAX_TRIES, RETRY_MS, Transport};
use mailbox::{MailCommand, MailEvent, MailReply, Mailbox, REMIND_AFTER_MS, stream};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{Command, RunId, RunStatus, StreamId, TenantId};
use tandem_runtime::{
    CommitRecord, IdempotencyKey, IdempotencyRecord, InterruptFilter, MachineDriver, Machines,
    Page, StoredResponse, SubmitError, Transaction, TransactionParts,
};
use tandem_store::memory::MemoryStore;
use tandem_store::{Outbox as _, ReadLog as _, ReadTimers as _};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, tenant};
use tandem_testkit::{InjectedFault, StoreConnection, wf};
use tokio::test;

/// A process that drives mailboxes.
struct MailHost {
    host: TestHost,
    boxes: Arc<MachineDriver<Mailbox>>,
    transport: Arc<Transport>,
}

impl MailHost {
    async fn start(builder: TestHostBuilder, transport: &Arc<Transport>) -> Self {
        let boxes = MachineDriver::new(Arc::clone(transport), 16, 1 << 20);
        let mut machines = Machines::default();
        machines.register(Arc::clone(&boxes));
        let builder = TestHostBuilder {
            machines,
            ..builder
        };
        Self {
            host: builder.build().await,
            boxes,
            transport: Arc::clone(transport),
        }
    }

    async fn new() -> Self {
        let host = Self::start(TestHostBuilder::default(), &Arc::default()).await;
        host.open("a").await;
        host
    }

    /// The process ends, and another one takes over its store.
    async fn restart(self) -> Self {
        self.host.runtime.shutdown(Duration::ZERO).await;
        let builder = TestHostBuilder {
            store: self.host.store.reopen(),
            incarnation: 2,
            ..TestHostBuilder::default()
        };
        Self::start(builder, &self.transport).await
    }

    async fn submit(&self, name: &str, command: MailCommand) -> MailReply {
        let runtime = &self.host.runtime;
        let to = stream(name);
        let reply = runtime.submit_command(&self.boxes, &to, command, None);
        reply.await.expect("the command is handled")
    }

    async fn open(&self, name: &str) {
        let command = MailCommand::Open { tenant: tenant() };
        assert_eq!(self.submit(name, command).await, MailReply::Accepted);
    }

    async fn post(&self, name: &str, count: u32) {
        for _ in 0..count {
            let reply = self.submit(name, MailCommand::Post).await;
            assert_eq!(reply, MailReply::Accepted);
        }
    }

    async fn depth(&self) -> u64 {
        self.host.store.depth().await.expect("the store answers")
    }

    async fn log(&self, name: &str) -> Vec<MailEvent> {
        events(&self.host.store, name).await
    }
}

async fn events(store: &MemoryStore, name: &str) -> Vec<MailEvent> {
    let slice = store.events(&stream(name), None, usize::MAX).await;
    let slice = slice.expect("the store answers");
    let read = |body: &str| {
        let stored: Value = serde_json::from_str(body).expect("it is JSON");
        serde_json::from_value(stored["e"].clone()).expect("it is an event")
    };
    slice.events.iter().map(|event| read(&event.body)).collect()
}

/// How each message ended, in the order of the log.
fn endings(log: &[MailEvent]) -> Vec<(u32, &'static str)> {
    log.iter()
        .filter_map(|event| match event {
            MailEvent::Sent { number } => Some((*number, "sent")),
            MailEvent::Failed { number } => Some((*number, "failed")),
            MailEvent::Suppressed { number } => Some((*number, "suppressed")),
            _ => None,
        })
        .collect()
}

/// Z-197 (half: a retry keeps later texts back, a final failure does not)
#[test(start_paused = true)]
async fn ordered_effects_wait_for_retries_and_follow_a_final_failure() {
    let mail = MailHost::new().await;
    mail.transport.fail_next(1 + MAX_TRIES);
    mail.post("a", 4).await;
    mail.host.elapse(RETRY_MS / 2).await;
    assert_eq!(mail.transport.numbers(), [0], "its retry holds the others");
    mail.host.elapse(10 * RETRY_MS).await;
    // The first fails for good; the second fails once.
    assert_eq!(mail.transport.numbers(), [0, 0, 0, 1, 1, 2, 3]);
    let expected = [(0, "failed"), (1, "sent"), (2, "sent"), (3, "sent")];
    assert_eq!(endings(&mail.log("a").await), expected);
    assert_eq!(mail.depth().await, 0);
}

#[test(start_paused = true)]
async fn different_orders_do_not_wait_for_each_other() {
    let mail = MailHost::new().await;
    mail.open("b").await;
    mail.transport.fail_next(1);
    mail.post("a", 1).await;
    mail.host.elapse(RETRY_MS / 2).await;
    mail.post("b", 1).await;
    mail.host.elapse(RETRY_MS / 4).await;
    assert_eq!(endings(&mail.log("b").await), [(0, "sent")]);
    assert!(endings(&mail.log("a").await).is_empty());
}

// Z-90 (half: machine refuses effects that wait in the outbox),
// Z-91 (half: machine refuses effects that wait in the outbox)
#[test(start_paused = true)]
async fn machine_refuses_effects_that_wait_in_the_outbox() {
    let mail = MailHost::new().await;
    mail.transport.fail_next(1);
    mail.post("a", 3).await;
    mail.host.elapse(RETRY_MS / 2).await;
    mail.submit("a", MailCommand::Mute).await;
    mail.host.elapse(10 * RETRY_MS).await;
    assert_eq!(mail.transport.numbers(), [0], "only the first attempt");
    let suppressed = [(0, "suppressed"), (1, "suppressed"), (2, "suppressed")];
    assert_eq!(endings(&mail.log("a").await), suppressed);
    assert_eq!(mail.depth().await, 0);
    mail.submit("a", MailCommand::Unmute).await;
    mail.post("a", 1).await;
    mail.host.elapse(RETRY_MS).await;
    assert_eq!(mail.transport.numbers(), [0, 3]);
}

#[test(start_paused = true)]
async fn refusal_of_another_process_is_seen_at_dispatch() {
    let transport = Arc::default();
    let store = MemoryStore::new();
    let process = |incarnation| TestHostBuilder {
        store: store.clone(),
        incarnation,
        shares_store: true,
        ..TestHostBuilder::default()
    };
    let first = MailHost::start(process(1), &transport).await;
    let second = MailHost::start(process(2), &transport).await;
    first.open("a").await;
    transport.fail_next(1);
    first.post("a", 2).await;
    first.host.elapse(RETRY_MS / 2).await;
    // The first process has the mailbox in its cache, not muted.
    second.submit("a", MailCommand::Mute).await;
    first.host.elapse(20 * RETRY_MS).await;
    assert_eq!(transport.numbers(), [0]);
    let log = first.log("a").await;
    assert_eq!(endings(&log), [(0, "suppressed"), (1, "suppressed")]);
}

#[test(start_paused = true)]
async fn retry_is_not_scheduled_by_a_process_that_lost_its_lease() {
    let transport = Arc::default();
    let store = MemoryStore::new();
    let process = |incarnation| TestHostBuilder {
        store: store.clone(),
        incarnation,
        shares_store: true,
        ..TestHostBuilder::default()
    };
    let first = MailHost::start(process(1), &transport).await;
    let second = MailHost::start(process(2), &transport).await;
    first.open("a").await;
    transport.fail_next(1);
    // The commit of the retry is under way for long, and the process renews no lease meanwhile.
    let hangs = InjectedFault::SlowBefore(200_000);
    first.host.faults.next([InjectedFault::None, hangs]);
    first.post("a", 1).await;
    first.host.elapse(10).await;
    assert_eq!(transport.numbers(), [0]);
    first.host.faults.set_connection(StoreConnection::Stalled);
    second.host.elapse(120_000).await;
    assert_eq!(transport.numbers(), [0, 0], "the second process sent it");
    second.host.elapse(120_000).await;
    assert_eq!(transport.numbers(), [0, 0], "the retry came too late");
}

#[test(start_paused = true)]
async fn several_processes_send_each_message_once_and_in_order() {
    let transport = Arc::default();
    let store = MemoryStore::new();
    let process = |incarnation| TestHostBuilder {
        store: store.clone(),
        incarnation,
        shares_store: true,
        ..TestHostBuilder::default()
    };
    let first = MailHost::start(process(1), &transport).await;
    let second = MailHost::start(process(2), &transport).await;
    first.open("a").await;
    for _ in 0..10 {
        let both = tokio::join!(first.post("a", 1), second.post("a", 1));
        assert_eq!(both, ((), ()));
    }
    first.host.elapse(120_000).await;
    assert_eq!(transport.numbers(), (0..20).collect::<Vec<_>>());
    assert_eq!(endings(&second.log("a").await).len(), 20);
}

/// Z-198 (half: it is sent again before later ones)
#[test(start_paused = true)]
async fn crash_between_sending_and_recording_repeats_the_message_before_later_ones() {
    let mail = MailHost::new().await;
    mail.transport.fail_next(1);
    mail.post("a", 3).await;
    mail.host.elapse(RETRY_MS / 2).await;
    // From now on nothing is written: the retry is sent, its result is lost with the process.
    mail.host
        .faults
        .next(std::iter::repeat_n(InjectedFault::CrashesBefore, 50));
    mail.host.elapse(RETRY_MS).await;
    mail.host.faults.disable();
    let mail = mail.restart().await;
    mail.host.elapse(60_000).await;
    assert_eq!(mail.transport.numbers(), [0, 0, 0, 1, 2]);
    let sent = [(0, "sent"), (1, "sent"), (2, "sent")];
    assert_eq!(endings(&mail.log("a").await), sent);
}

#[test(start_paused = true)]
async fn timer_survives_a_restart() {
    let mail = MailHost::new().await;
    mail.submit("a", MailCommand::Ask).await;
    let mail = mail.restart().await;
    mail.host.elapse(REMIND_AFTER_MS / 2).await;
    assert!(!mail.log("a").await.contains(&MailEvent::Reminded));
    mail.host.elapse(REMIND_AFTER_MS).await;
    let reminders = mail.log("a").await;
    let reminders = reminders.iter().filter(|e| **e == MailEvent::Reminded);
    assert_eq!(reminders.count(), 1);
    let left = mail.host.store.next_timer().await;
    assert_eq!(left.expect("the store answers"), None);
}

#[test(start_paused = true)]
async fn questions_of_a_machine_are_listed_by_its_stream() {
    let mail = MailHost::new().await;
    mail.submit("a", MailCommand::Ask).await;
    let listed = async |open| {
        let filter = InterruptFilter {
            stream: Some(stream("a")),
            open: Some(open),
            ..InterruptFilter::default()
        };
        let page = Page {
            before: None,
            limit: 9,
        };
        let runtime = &mail.host.runtime;
        let listing = runtime.questions(&tenant(), &filter, &page).await;
        listing.expect("the store answers").rows
    };
    let open = listed(true).await;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].1.step.as_str(), "desk");
    assert_eq!(open[0].1.run_and_node(), None);
    mail.submit("a", MailCommand::Answer).await;
    assert!(listed(true).await.is_empty());
    let closed = listed(false).await;
    assert_eq!(closed[0].1.closed.as_deref(), Some("answered"));
}

fn record(key: &str) -> IdempotencyRecord {
    IdempotencyRecord {
        key: IdempotencyKey(key.to_owned()),
        digest: "digest".to_owned(),
        response: StoredResponse {
            status: 200,
            body: "{}".to_owned(),
        },
        recorded_at: tandem_record::Timestamp(0),
        session: None,
    }
}

#[test(start_paused = true)]
async fn message_with_a_used_id_changes_nothing() {
    let mail = MailHost::new().await;
    let runtime = &mail.host.runtime;
    let records = |_: &MailReply| vec![CommitRecord::Response(record("message-1"))];
    let post = async || {
        let box_a = stream("a");
        runtime
            .submit_command(&mail.boxes, &box_a, MailCommand::Post, Some(&records))
            .await
    };
    assert_eq!(post().await.expect("it is new"), MailReply::Accepted);
    let again = post().await.expect_err("it was received before");
    assert!(matches!(again, SubmitError::IdempotencyKeyUsed), "{again}");
    let queued = mail.log("a").await;
    let queued = queued
        .iter()
        .filter(|e| matches!(e, MailEvent::Queued { .. }));
    assert_eq!(queued.count(), 1);
}

#[test(start_paused = true)]
async fn command_that_does_not_begin_a_stream_leaves_nothing() {
    let mail = MailHost::new().await;
    let reply = mail.submit("unknown", MailCommand::Post).await;
    assert_eq!(reply, MailReply::Refused);
    assert!(mail.log("unknown").await.is_empty());
}

/// Mutes a mailbox, and cancels a run if one is named.
struct MuteAndCancel<'a> {
    mail: &'a MailHost,
    run: Option<&'a RunId>,
}

impl TransactionParts for MuteAndCancel<'_> {
    type Reply = MailReply;

    async fn submit_to(&self, transaction: &mut Transaction<'_>) -> Result<MailReply, SubmitError> {
        let (boxes, mute) = (&self.mail.boxes, MailCommand::Mute);
        let reply = transaction.submit(boxes, &stream("a"), &mute).await?;
        if let Some(run) = self.run {
            let cancel = Command::Cancel {
                reason: None,
                by: None,
                by_parent: None,
            };
            let runs = self.mail.host.runtime.runs();
            let stream = StreamId::of_run(run);
            transaction.submit(runs, &stream, &cancel).await?;
        }
        Ok(reply)
    }
}

async fn mute_and_cancel(mail: &MailHost, run: &RunId) -> Result<MailReply, SubmitError> {
    let parts = MuteAndCancel {
        mail,
        run: Some(run),
    };
    mail.host.runtime.transact(&tenant(), &parts).await
}

#[test(start_paused = true)]
async fn mailbox_and_run_change_in_one_commit() {
    let mail = MailHost::new().await;
    mail.host.register(wf("nap").delay("nap", 500_000)).await;
    let run = mail.host.create("nap", json!({})).await;
    mail.host.faults.next([InjectedFault::FailsBefore]);
    let failed = mute_and_cancel(&mail, &run).await;
    assert!(matches!(failed, Err(SubmitError::Fault(_))));
    assert!(!mail.log("a").await.contains(&MailEvent::Muted));
    assert_eq!(mail.host.status(&run).await, RunStatus::Running);
    let reply = mute_and_cancel(&mail, &run).await;
    assert_eq!(reply.expect("both accept"), MailReply::Accepted);
    assert!(mail.log("a").await.contains(&MailEvent::Muted));
    assert_eq!(mail.host.status(&run).await, RunStatus::Cancelled);
}

/// Z-189 (half: it is decided again from fresh state)
#[test(start_paused = true)]
async fn transaction_is_decided_again_after_a_conflict() {
    let store = MemoryStore::new();
    let transport = Arc::default();
    let process = |incarnation| TestHostBuilder {
        store: store.clone(),
        incarnation,
        shares_store: true,
        ..TestHostBuilder::default()
    };
    let first = MailHost::start(process(1), &transport).await;
    let second = MailHost::start(process(2), &transport).await;
    first.open("a").await;
    first.host.register(wf("nap").delay("nap", 500_000)).await;
    let run = first.host.create("nap", json!({})).await;
    // The cached mailbox of the first process is old from now on.
    second.submit("a", MailCommand::Ask).await;
    let reply = mute_and_cancel(&first, &run).await;
    assert_eq!(reply.expect("both accept"), MailReply::Accepted);
    let log = first.log("a").await;
    assert_eq!(log.last(), Some(&MailEvent::Muted));
    assert_eq!(second.host.status(&run).await, RunStatus::Cancelled);
}

#[test(start_paused = true)]
async fn refused_part_abandons_the_transaction() {
    let mail = MailHost::new().await;
    let missing = mute_and_cancel(&mail, &RunId::new("run-missing")).await;
    assert!(matches!(missing, Err(SubmitError::NotFound)));
    assert!(!mail.log("a").await.contains(&MailEvent::Muted));
    let parts = MuteAndCancel {
        mail: &mail,
        run: None,
    };
    let stranger = TenantId::new("stranger");
    let theirs = mail.host.runtime.transact(&stranger, &parts).await;
    assert!(matches!(theirs, Err(SubmitError::NotFound)));
    mail.submit("a", MailCommand::Ask).await;
    assert!(!mail.log("a").await.contains(&MailEvent::Muted));
}

#[test(start_paused = true)]
async fn work_without_its_machine_waits_for_a_host_that_drives_it() {
    let mail = MailHost::new().await;
    mail.submit("a", MailCommand::Ask).await;
    mail.transport.fail_next(1);
    mail.post("a", 1).await;
    mail.host.elapse(RETRY_MS / 2).await;
    mail.host.runtime.shutdown(Duration::ZERO).await;
    let plain = TestHostBuilder {
        store: mail.host.store.reopen(),
        incarnation: 2,
        ..TestHostBuilder::default()
    };
    let plain = plain.build().await;
    plain.elapse(2 * REMIND_AFTER_MS).await;
    let parked = plain.runtime.parked_work(&tenant()).await;
    let parked = parked.expect("the store answers");
    let mut kinds: Vec<&str> = parked.iter().map(|work| work.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["mail", "timer"]);
    assert!(
        parked
            .iter()
            .all(|work| work.error.starts_with("no_machine"))
    );
    plain.runtime.shutdown(Duration::ZERO).await;
    let builder = TestHostBuilder {
        store: plain.store.reopen(),
        incarnation: 3,
        ..TestHostBuilder::default()
    };
    let mail = MailHost::start(builder, &mail.transport).await;
    let retried = mail
        .host
        .runtime
        .retry_parked(&tenant(), &stream("a"))
        .await;
    assert_eq!(retried.expect("the store answers"), Some(2));
    mail.host.elapse(RETRY_MS).await;
    let log = mail.log("a").await;
    assert_eq!(endings(&log), [(0, "sent")]);
    assert!(log.contains(&MailEvent::Reminded));
}
