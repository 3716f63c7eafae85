//! Compaction of notes: readers of an earlier position see no change. `memory_model.rs` checks
//! random run trees at every event; the simulator checks crashes.

use serde_json::{Value, json};
use tandem_record::{Event, ForkMode, MemoryEntry, MemoryOrigin, RunId, RunStatus, Seq, Timestamp};
use tandem_runtime::{Limits, Redactor};
use tandem_store::{Commit, Log, MemoryQuery, MemoryRow, MemoryView, ReadMemory};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, tenant};
use tandem_testkit::{InjectedFault, wf};
use tokio::test;

const MEMORY: &str = "vendor.tandem.memory";
const ABOVE: u64 = 4;

fn plan() -> TestHostBuilder {
    TestHostBuilder {
        limits: Limits {
            compact_above: Some(ABOVE),
            ..Limits::default()
        },
        ..TestHostBuilder::default()
    }
}

/// Workflows that write one note each: with the input `text`, with a key, or with an expiry.
async fn host(plan: TestHostBuilder) -> TestHost {
    let host = plan.build().await;
    let note = |id: &str, more: Value| {
        let mut config = json!({"action": "put", "valueFrom": "text", "tags": ["seen"]});
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        wf(id).variable("text", json!("")).node("w", MEMORY, config)
    };
    for flow in [
        note("note", json!({})),
        note("named", json!({"key": "name"})),
        note("short", json!({"ttlSeconds": 3600})),
        wf("list").node("l", MEMORY, json!({"action": "list"})),
        wf("waits")
            .node("gate", "core.approvalGate", json!({"title": "ok?"}))
            .node("l", MEMORY, json!({"action": "list"}))
            .path("gate l")
            .settings(json!({"timeout": 0})),
    ] {
        host.register(flow).await;
    }
    host
}

async fn write(host: &TestHost, workflow: &str, texts: &[&str]) -> RunId {
    let mut last = None;
    for text in texts {
        let run = host.create(workflow, json!({"text": text})).await;
        assert_eq!(host.status(&run).await, RunStatus::Completed);
        last = Some(run);
    }
    last.expect("something is written")
}

async fn memory_entries(host: &TestHost, run: &RunId, at: Option<Seq>) -> Vec<MemoryEntry> {
    let stored = host.runtime.find_run(&tenant(), run).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let memory = host.runtime.run_memory(&stored, at, None).await;
    memory.expect("the store answers").entries
}

fn texts(entries: &[MemoryEntry]) -> Vec<String> {
    let texts = entries.iter().rev();
    texts.map(|e| MemoryEntry::text_of(&e.value)).collect()
}

/// What a run that starts now sees, oldest first.
async fn now(host: &TestHost) -> Vec<String> {
    let run = host.create("list", json!({})).await;
    texts(&memory_entries(host, &run, None).await)
}

fn compacted(log: &[tandem_record::RecordedEvent]) -> Vec<(MemoryEntry, Vec<String>)> {
    let facts = log.iter().filter_map(|r| match &r.event {
        Event::MemoryCompacted {
            output, sources, ..
        } => Some(((**output).clone(), sources.clone())),
        _ => None,
    });
    facts.collect()
}

#[test(start_paused = true)]
async fn oldest_notes_are_compacted_into_one_and_nothing_else() {
    let host = host(plan()).await;
    write(&host, "named", &["by name"]).await;
    write(&host, "short", &["for an hour"]).await;
    let before = write(&host, "note", &["a", "b", "c", "d", "e"]).await;
    let waiting = host.create("waits", json!({})).await;
    let seen_before = memory_entries(&host, &waiting, None).await;
    assert_eq!(
        seen_before.len(),
        7,
        "one above the limit, with two that do not count"
    );
    assert!(compacted(&host.log(&before).await).is_empty());

    let run = write(&host, "note", &["f"]).await;
    let log = host.log(&run).await;
    let (output, sources) = compacted(&log).remove(0);
    let oldest: Vec<&MemoryEntry> = seen_before
        .iter()
        .rev()
        .filter(|e| e.is_note() && e.expires_at.is_none())
        .take(2)
        .collect();
    assert_eq!(sources, [oldest[0].id.clone(), oldest[1].id.clone()]);
    assert_eq!(output.value, "a\nb");
    assert_eq!(output.expires_at, None);
    let from = |e: &MemoryEntry| format!("compacted-from:{}", e.id);
    assert_eq!(
        output.tags,
        ["seen".to_owned(), from(oldest[0]), from(oldest[1])]
    );
    assert!(
        log.last().is_some_and(|r| r.event.is_terminal()),
        "before the end"
    );

    let after = ["by name", "for an hour", "c", "d", "e", "f", "a\nb"];
    assert_eq!(now(&host).await, after);
    // Earlier readers still see the notes, the run itself included.
    assert_eq!(memory_entries(&host, &waiting, None).await, seen_before);
    assert_eq!(texts(&memory_entries(&host, &run, None).await).len(), 9);
    let list = host.create("list", json!({})).await;
    let by_id = memory_entries(&host, &list, None).await;
    assert!(
        by_id.iter().any(|e| e.key == output.id),
        "readable by its id"
    );
}

#[test(start_paused = true)]
async fn compacted_note_can_be_compacted_again_up_to_the_entry_size_limit() {
    let host = host(plan()).await;
    let numbers: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    write(&host, "note", &numbers).await;
    let stored = now(&host).await;
    assert!(stored.len() as u64 <= ABOVE + 1, "{stored:?}");
    let mut lines: Vec<u32> = stored
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.parse().expect("a number"))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..40).collect::<Vec<_>>(), "each of them once");
    // Notes that do not fit are not compacted.
    let large = "x".repeat(40_000);
    write(&host, "note", &[large.as_str(); 8]).await;
    let stored = now(&host).await;
    let lines = stored.iter().flat_map(|text| text.lines());
    assert_eq!(lines.filter(|line| *line == large).count(), 8);
    assert!(
        stored
            .iter()
            .all(|text| text.len() <= tandem_runtime::MAX_ENTRY_BYTES)
    );
}

#[test(start_paused = true)]
async fn concurrent_compactions_of_the_same_notes_conflict() {
    let host = host(plan()).await;
    write(&host, "note", &["a", "b", "c", "d", "e"]).await;
    // Both read the same five; the first is slower to write.
    host.faults.next([InjectedFault::SlowBefore(1_000)]);
    let (slow, quick) = tokio::join!(
        host.create("note", json!({"text": "slow"})),
        host.create("note", json!({"text": "quick"})),
    );
    assert_eq!(
        host.runtime.metrics().conflicts.get(),
        1,
        "sequence conflict and retry"
    );
    for run in [&slow, &quick] {
        assert_eq!(host.status(run).await, RunStatus::Completed);
    }
    assert_eq!(compacted(&host.log(&quick).await)[0].0.value, "a\nb");
    let stored = now(&host).await;
    let mut lines: Vec<&str> = stored.iter().flat_map(|text| text.lines()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a", "b", "c", "d", "e", "quick", "slow"]);
}

async fn fork(host: &TestHost, run: &RunId, mode: ForkMode, from: Seq) -> RunId {
    let fork = host.fork(run, mode, from).await;
    fork.expect("it can be made")
}

#[test(start_paused = true)]
async fn replay_repeats_the_compaction_and_a_branch_makes_its_own() {
    let host = host(plan()).await;
    write(&host, "note", &["a", "b", "c", "d", "e"]).await;
    let run = write(&host, "note", &["f"]).await;
    let log = host.log(&run).await;
    let compactions = compacted(&log);
    let at = log
        .iter()
        .position(|r| matches!(r.event, Event::MemoryCompacted { .. }));
    let at = at.expect("it was compacted") as u64;
    for from in 0..log.len() as u64 {
        let replay = fork(&host, &run, ForkMode::Replay, Seq(from)).await;
        let again = host.log(&replay).await;
        assert_eq!(compacted(&again), compactions, "from {from}");
        assert_eq!(again.len(), log.len(), "from {from}");
    }
    let before = now(&host).await;
    // A branch after the compaction copies it with the other events.
    let later = fork(&host, &run, ForkMode::Branch, Seq(at + 1)).await;
    assert_eq!(host.status(&later).await, RunStatus::Completed);
    assert_eq!(compacted(&host.log(&later).await), compactions);
    assert_eq!(now(&host).await, before, "nothing is written twice");
    // A branch before it: the notes it would compact are gone, so it compacts others.
    let earlier = fork(&host, &run, ForkMode::Branch, Seq(at)).await;
    assert_eq!(host.status(&earlier).await, RunStatus::Completed);
    let own = compacted(&host.log(&earlier).await);
    assert!(
        own.iter()
            .all(|(output, _)| output.id != compactions[0].0.id)
    );
}

#[test(start_paused = true)]
async fn compacted_text_is_redacted_again() {
    let secret = "correct-horse-battery";
    let plan = TestHostBuilder {
        redactor: Redactor::new([("db", secret)].into_iter()),
        ..plan()
    };
    let host = host(plan).await;
    // Stored before it was configured as a secret.
    let old = MemoryEntry {
        id: "mem-1".to_owned(),
        memory_ref: "default".to_owned(),
        key: "mem-1".to_owned(),
        value: json!(format!("it is {secret}")),
        tags: vec![secret.to_owned()],
        written_at: Timestamp(0),
        expires_at: None,
        agent: None,
        sensitive: false,
    };
    let row = MemoryRow {
        tenant: tenant(),
        scope: MemoryOrigin::SHARED.to_owned(),
        memory_ref: "default".to_owned(),
        key: "mem-1".to_owned(),
        run: RunId::new("run-of-old"),
        seq: Seq(1),
        body: Some(serde_json::to_string(&old).expect("entries are plain data")),
    };
    let commit = Commit {
        memory: vec![row],
        ..Commit::default()
    };
    host.store.commit(commit).await.expect("the store takes it");
    write(&host, "note", &["b", "c", "d", "e"]).await;
    let run = write(&host, "note", &["f"]).await;
    let (output, _) = compacted(&host.log(&run).await).remove(0);
    assert_eq!(output.value, "it is [REDACTED:db]\nb");
    assert_eq!(output.tags[0], "[REDACTED:db]");
    let everything = MemoryView {
        tenant: tenant(),
        scope: MemoryOrigin::SHARED.to_owned(),
        start: u64::MAX,
        segments: Vec::new(),
    };
    let rows = host
        .store
        .memory_entries(&everything, &MemoryQuery::default())
        .await;
    for row in rows.expect("the store answers") {
        assert!(!row.body.expect("it is there").contains(secret));
    }
}

#[test(start_paused = true)]
async fn compaction_can_be_disabled() {
    let mut off = plan();
    off.limits.compact_above = None;
    let host = host(off).await;
    write(&host, "note", &["a"; 12]).await;
    assert_eq!(now(&host).await.len(), 12);
}

#[test(start_paused = true)]
async fn iteration_with_an_older_memory_view_restores_no_compacted_note() {
    let host = host(plan()).await;
    host.register(wf("rest").noop("n")).await;
    let first = write(&host, "note", &["first"]).await;
    write(&host, "note", &["second", "third", "fourth"]).await;
    let id = memory_entries(&host, &first, None).await[0].id.clone();
    let note = |text: &str| json!({"action": "put", "value": text});
    let worker = json!([{"kind": "next-worker", "nextWorkerIds": ["rest"]}]);
    let lead = json!({"mockDispatchPlan": worker});
    // The iteration deletes, writes, waits for its worker, and writes one note above the limit.
    let flow = wf("conformance-loop")
        .variable("id", json!(""))
        .node("lead", "core.orchestrator.supervisor", lead)
        .node("d", MEMORY, json!({"action": "delete", "keyFrom": "id"}))
        .node("u", MEMORY, note("fifth"))
        .node("v", MEMORY, note("sixth"))
        .node("send", "core.dispatch", json!({}))
        .node("w", MEMORY, note("seventh"))
        .path("lead d u v send w lead")
        .settings(json!({"timeout": 0}));
    host.register(flow).await;
    let run = host.create("conformance-loop", json!({"id": id})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let log = host.log(&run).await;
    let collapsed = log.iter().find_map(|recorded| match &recorded.event {
        Event::MemoryCompacted { output, .. } => Some(MemoryEntry::text_of(&output.value)),
        _ => None,
    });
    assert_eq!(collapsed.as_deref(), Some("second\nthird"));
    let left = now(&host).await.join("\n");
    assert!(!left.contains("first"), "{left}");
    assert!(left.contains("seventh"), "{left}");
}
