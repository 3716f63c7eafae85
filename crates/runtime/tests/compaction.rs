//! Notes that become too many are collapsed, and nobody who read them before notices. What holds
//! at every index of random families is in `remembering.rs`, what holds through crashes in the
//! simulator.

use serde_json::{Value, json};
use tandem_record::{Event, ForkMode, MemoryEntry, MemoryOrigin, RunId, RunStatus, Seq, Timestamp};
use tandem_runtime::{Limits, Redactor};
use tandem_store::{Commit, Log, MemoryQuery, MemoryRow, MemoryView, ReadMemory};
use tandem_testkit::house::{House, Plan, tenant};
use tandem_testkit::{Mishap, wf};
use tokio::test;

const MEMORY: &str = "vendor.tandem.memory";
const ABOVE: u64 = 4;

fn plan() -> Plan {
    Plan {
        limits: Limits {
            compact_above: Some(ABOVE),
            ..Limits::default()
        },
        ..Plan::default()
    }
}

/// Workflows that write one note each: of the input `text`, by name, or for a while.
async fn house(plan: Plan) -> House {
    let house = plan.build().await;
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
        house.register(flow).await;
    }
    house
}

async fn write(house: &House, workflow: &str, texts: &[&str]) -> RunId {
    let mut last = None;
    for text in texts {
        let run = house.create(workflow, json!({"text": text})).await;
        assert_eq!(house.status(&run).await, RunStatus::Completed);
        last = Some(run);
    }
    last.expect("something is written")
}

async fn known(house: &House, run: &RunId, at: Option<Seq>) -> Vec<MemoryEntry> {
    let stored = house.runtime.find_run(&tenant(), run).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let seen = house.runtime.remembered(&stored, at, None).await;
    seen.expect("the store answers").entries
}

fn texts(entries: &[MemoryEntry]) -> Vec<String> {
    let texts = entries.iter().rev();
    texts.map(|e| MemoryEntry::text_of(&e.value)).collect()
}

/// What a run that begins now sees, oldest first.
async fn now(house: &House) -> Vec<String> {
    let run = house.create("list", json!({})).await;
    texts(&known(house, &run, None).await)
}

fn compacted(log: &[tandem_record::Recorded]) -> Vec<(MemoryEntry, Vec<String>)> {
    let facts = log.iter().filter_map(|r| match &r.event {
        Event::MemoryCompacted {
            output, sources, ..
        } => Some(((**output).clone(), sources.clone())),
        _ => None,
    });
    facts.collect()
}

#[test(start_paused = true)]
async fn the_oldest_notes_become_one_and_nothing_else_does() {
    let house = house(plan()).await;
    write(&house, "named", &["by name"]).await;
    write(&house, "short", &["for an hour"]).await;
    let before = write(&house, "note", &["a", "b", "c", "d", "e"]).await;
    let waiting = house.create("waits", json!({})).await;
    let seen_before = known(&house, &waiting, None).await;
    assert_eq!(
        seen_before.len(),
        7,
        "one more than there may be, with two that do not count"
    );
    assert!(compacted(&house.log(&before).await).is_empty());

    let run = write(&house, "note", &["f"]).await;
    let log = house.log(&run).await;
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
    assert_eq!(now(&house).await, after);
    // Who read them before still does, the run itself included.
    assert_eq!(known(&house, &waiting, None).await, seen_before);
    assert_eq!(texts(&known(&house, &run, None).await).len(), 9);
    let list = house.create("list", json!({})).await;
    let by_id = known(&house, &list, None).await;
    assert!(
        by_id.iter().any(|e| e.key == output.id),
        "readable by its id"
    );
}

#[test(start_paused = true)]
async fn what_is_collapsed_can_be_collapsed_again_up_to_the_size_of_an_entry() {
    let house = house(plan()).await;
    let numbers: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    write(&house, "note", &numbers).await;
    let kept = now(&house).await;
    assert!(kept.len() as u64 <= ABOVE + 1, "{kept:?}");
    let mut lines: Vec<u32> = kept
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.parse().expect("a number"))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..40).collect::<Vec<_>>(), "each of them once");
    // What does not fit stays as it is.
    let large = "x".repeat(40_000);
    write(&house, "note", &[large.as_str(); 8]).await;
    let kept = now(&house).await;
    let lines = kept.iter().flat_map(|text| text.lines());
    assert_eq!(lines.filter(|line| *line == large).count(), 8);
    assert!(
        kept.iter()
            .all(|text| text.len() <= tandem_runtime::MAX_ENTRY_BYTES)
    );
}

#[test(start_paused = true)]
async fn two_runs_that_want_the_same_notes_do_not_both_get_them() {
    let house = house(plan()).await;
    write(&house, "note", &["a", "b", "c", "d", "e"]).await;
    // Both look at the same five; the first is slower to write.
    house.faults.next([Mishap::SlowBefore(1_000)]);
    let (slow, quick) = tokio::join!(
        house.create("note", json!({"text": "slow"})),
        house.create("note", json!({"text": "quick"})),
    );
    assert_eq!(
        house.runtime.metrics().conflicts.get(),
        1,
        "it decided again"
    );
    for run in [&slow, &quick] {
        assert_eq!(house.status(run).await, RunStatus::Completed);
    }
    assert_eq!(compacted(&house.log(&quick).await)[0].0.value, "a\nb");
    let kept = now(&house).await;
    let mut lines: Vec<&str> = kept.iter().flat_map(|text| text.lines()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a", "b", "c", "d", "e", "quick", "slow"]);
}

async fn fork(house: &House, run: &RunId, mode: ForkMode, from: Seq) -> RunId {
    let fork = house.fork(run, mode, from).await;
    fork.expect("it can be made")
}

#[test(start_paused = true)]
async fn a_replay_tells_the_same_compaction_and_a_branch_its_own() {
    let house = house(plan()).await;
    write(&house, "note", &["a", "b", "c", "d", "e"]).await;
    let run = write(&house, "note", &["f"]).await;
    let log = house.log(&run).await;
    let told = compacted(&log);
    let at = log
        .iter()
        .position(|r| matches!(r.event, Event::MemoryCompacted { .. }));
    let at = at.expect("it was collapsed") as u64;
    for from in 0..log.len() as u64 {
        let replay = fork(&house, &run, ForkMode::Replay, Seq(from)).await;
        let again = house.log(&replay).await;
        assert_eq!(compacted(&again), told, "from {from}");
        assert_eq!(again.len(), log.len(), "from {from}");
    }
    let before = now(&house).await;
    // After it: a fact of the past, told with the rest.
    let later = fork(&house, &run, ForkMode::Branch, Seq(at + 1)).await;
    assert_eq!(house.status(&later).await, RunStatus::Completed);
    assert_eq!(compacted(&house.log(&later).await), told);
    assert_eq!(now(&house).await, before, "nothing is written twice");
    // Before it: what it would collapse is gone, so others are.
    let earlier = fork(&house, &run, ForkMode::Branch, Seq(at)).await;
    assert_eq!(house.status(&earlier).await, RunStatus::Completed);
    let own = compacted(&house.log(&earlier).await);
    assert!(own.iter().all(|(output, _)| output.id != told[0].0.id));
}

#[test(start_paused = true)]
async fn what_is_collapsed_passes_the_redactor_again() {
    let secret = "correct-horse-battery";
    let plan = Plan {
        redactor: Redactor::new([("db", secret)].into_iter()),
        ..plan()
    };
    let house = house(plan).await;
    // Stored before anybody knew that it was one.
    let old = MemoryEntry {
        id: "mem-1".to_owned(),
        memory_ref: "default".to_owned(),
        key: "mem-1".to_owned(),
        value: json!(format!("it is {secret}")),
        tags: vec![secret.to_owned()],
        written_at: Timestamp(0),
        expires_at: None,
        agent: None,
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
    house
        .store
        .commit(commit)
        .await
        .expect("the store takes it");
    write(&house, "note", &["b", "c", "d", "e"]).await;
    let run = write(&house, "note", &["f"]).await;
    let (output, _) = compacted(&house.log(&run).await).remove(0);
    assert_eq!(output.value, "it is [REDACTED:db]\nb");
    assert_eq!(output.tags[0], "[REDACTED:db]");
    let everything = MemoryView {
        tenant: tenant(),
        scope: MemoryOrigin::SHARED.to_owned(),
        start: u64::MAX,
        segments: Vec::new(),
    };
    let rows = house
        .store
        .memory_entries(&everything, &MemoryQuery::default())
        .await;
    for row in rows.expect("the store answers") {
        assert!(!row.body.expect("it is there").contains(secret));
    }
}

#[test(start_paused = true)]
async fn a_host_may_leave_notes_alone() {
    let mut off = plan();
    off.limits.compact_above = None;
    let house = house(off).await;
    write(&house, "note", &["a"; 12]).await;
    assert_eq!(now(&house).await.len(), 12);
}

#[test(start_paused = true)]
async fn a_turn_that_sees_memory_as_it_was_brings_nothing_back() {
    let house = house(plan()).await;
    house.register(wf("rest").noop("n")).await;
    let first = write(&house, "note", &["first"]).await;
    write(&house, "note", &["second", "third", "fourth"]).await;
    let id = known(&house, &first, None).await[0].id.clone();
    let note = |text: &str| json!({"action": "put", "value": text});
    let worker = json!([{"kind": "next-worker", "nextWorkerIds": ["rest"]}]);
    let lead = json!({"mockDispatchPlan": worker});
    // The turn deletes, writes, waits for its worker, and writes one note too many.
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
    house.register(flow).await;
    let run = house.create("conformance-loop", json!({"id": id})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let log = house.log(&run).await;
    let collapsed = log.iter().find_map(|recorded| match &recorded.event {
        Event::MemoryCompacted { output, .. } => Some(MemoryEntry::text_of(&output.value)),
        _ => None,
    });
    assert_eq!(collapsed.as_deref(), Some("second\nthird"));
    let left = now(&house).await.join("\n");
    assert!(!left.contains("first"), "{left}");
    assert!(left.contains("seventh"), "{left}");
}
