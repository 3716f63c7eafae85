//! The log of an agent: every event of its streams once, in the order of the commits.

use super::sample::{append, body, commit, conflict, must};
use crate::{Append, Commit, ConversationChange, Error, PageLimit, Store};
use std::sync::Arc;
use tandem_record::StreamId;

/// Appends that are logged for the agent.
pub(super) fn logged(agent: &str, appends: impl IntoIterator<Item = Append>) -> Commit {
    let mut commit = commit(appends);
    let mut streams: Vec<_> = commit.appends.iter().map(|a| a.stream.clone()).collect();
    streams.dedup();
    commit.conversations = streams
        .into_iter()
        .map(|stream| ConversationChange::LogEvents {
            tenant: "t1".into(),
            agent: agent.into(),
            stream,
        })
        .collect();
    commit
}

/// Positions, streams and sequences after a position, in pages with this limit; checks the bodies.
pub(super) async fn read(
    store: &Arc<dyn Store>,
    agent: &str,
    mut after: u64,
    limit: PageLimit,
) -> Vec<(u64, String, u64)> {
    let (tenant, agent) = ("t1".into(), agent.into());
    let mut found = Vec::new();
    loop {
        let page = store.agent_log(&tenant, &agent, after, limit).await;
        let page = page.unwrap();
        assert!(page.events.len() <= limit.events);
        let Some(last) = page.events.last() else {
            return found;
        };
        after = last.position;
        assert!(page.head >= after);
        for logged in page.events {
            assert_eq!(logged.event.body, body(&logged.stream, logged.event.seq.0));
            found.push((
                logged.position,
                logged.stream.to_string(),
                logged.event.seq.0,
            ));
        }
    }
}

fn numbered(events: &[(&str, u64)]) -> Vec<(u64, String, u64)> {
    let events = (1..).zip(events);
    events
        .map(|(position, (stream, seq))| (position, (*stream).to_owned(), *seq))
        .collect()
}

pub async fn events_are_listed_in_the_order_of_their_commits(store: Arc<dyn Store>) {
    let (one, two) = (StreamId::new("conv:s1"), StreamId::new("conv:s2"));
    must(&store, logged("desk", [append(&one, None, 2)])).await;
    must(&store, logged("desk", [append(&two, None, 1)])).await;
    // Not logged.
    must(&store, commit([append(&one, Some(1), 1)])).await;
    must(&store, logged("other", [append(&two, Some(0), 1)])).await;
    // Two appends to one stream, and one to another, in one commit.
    let several = [
        append(&one, Some(2), 2),
        append(&one, Some(4), 1),
        append(&two, Some(1), 1),
    ];
    must(&store, logged("desk", several)).await;
    let expected = numbered(&[
        ("conv:s1", 0),
        ("conv:s1", 1),
        ("conv:s2", 0),
        ("conv:s1", 3),
        ("conv:s1", 4),
        ("conv:s1", 5),
        ("conv:s2", 2),
    ]);
    for limit in [1, 2, 3, 100] {
        let limit = PageLimit::of_events(limit);
        assert_eq!(read(&store, "desk", 0, limit).await, expected, "{limit:?}");
        for after in 0..expected.len() {
            let rest = read(&store, "desk", after as u64, limit).await;
            assert_eq!(rest, expected[after..], "{limit:?} after {after}");
        }
    }
    let all = PageLimit::of_events(100);
    assert_eq!(
        read(&store, "other", 0, all).await,
        numbered(&[("conv:s2", 1)])
    );
    assert_eq!(read(&store, "desk", u64::MAX, all).await, []);
    let end = store
        .agent_log(&"t1".into(), &"desk".into(), 7, all)
        .await
        .unwrap();
    assert_eq!((end.events.len(), end.head), (0, 7));
    let elsewhere = store
        .agent_log(&"t2".into(), &"desk".into(), 0, all)
        .await
        .unwrap();
    assert_eq!(
        (elsewhere.events.len(), elsewhere.head),
        (0, 0),
        "of another tenant"
    );
}

pub async fn pages_of_an_agent_log_are_bounded_in_bytes(store: Arc<dyn Store>) {
    let stream = StreamId::new("conv:s1");
    must(&store, logged("desk", [append(&stream, None, 5)])).await;
    let length = body(&stream, 0).len();
    for (bytes, count) in [(1, 1), (2 * length, 2), (usize::MAX, 5)] {
        let limit = PageLimit { events: 10, bytes };
        let page = store
            .agent_log(&"t1".into(), &"desk".into(), 0, limit)
            .await
            .unwrap();
        assert_eq!(page.events.len(), count, "{bytes}");
        assert_eq!(
            read(&store, "desk", 0, limit).await.len(),
            5,
            "all in the end"
        );
    }
}

pub async fn rejected_commit_logs_nothing(store: Arc<dyn Store>) {
    let stream = StreamId::new("conv:s1");
    conflict(&store, logged("desk", [append(&stream, Some(4), 1)])).await;
    let mut without_events = logged("desk", [append(&stream, None, 1)]);
    without_events.appends.clear();
    match store.commit(without_events).await {
        Err(Error::Fault(fault)) => assert_eq!(fault.code, "invalid"),
        other => panic!("expected a fault, got {other:?}"),
    }
    let all = PageLimit::of_events(10);
    let page = store
        .agent_log(&"t1".into(), &"desk".into(), 0, all)
        .await
        .unwrap();
    assert_eq!((page.events.len(), page.head), (0, 0));
    must(&store, logged("desk", [append(&stream, None, 1)])).await;
    assert_eq!(
        read(&store, "desk", 0, all).await,
        numbered(&[("conv:s1", 0)])
    );
}

/// A reader that goes on from its last position, while others commit, gets every event.
pub async fn follower_of_an_agent_log_skips_nothing(store: Arc<dyn Store>) {
    const WRITERS: u64 = 8;
    const COMMITS: u64 = 20;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let stream = StreamId::new(format!("conv:s{writer}"));
                let mut after = None;
                for number in 0..COMMITS {
                    let count = number % 3 + 1;
                    must(&store, logged("desk", [append(&stream, after, count)])).await;
                    after = Some(after.map_or(0, |seq| seq + 1) + count - 1);
                }
                after.expect("it wrote events") + 1
            })
        })
        .collect();
    let mut followed = Vec::new();
    let limit = PageLimit::of_events(7);
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let after = followed.last().map_or(0, |(position, _, _)| *position);
        followed.extend(read(&store, "desk", after, limit).await);
        tokio::task::yield_now().await;
    }
    let after = followed.last().map_or(0, |(position, _, _)| *position);
    followed.extend(read(&store, "desk", after, limit).await);
    let mut written = 0;
    for writer in writers {
        written += writer.await.expect("the writer ends");
    }
    let positions: Vec<u64> = followed.iter().map(|(position, _, _)| *position).collect();
    assert_eq!(positions, (1..=written).collect::<Vec<_>>());
    for writer in 0..WRITERS {
        let stream = format!("conv:s{writer}");
        let of_stream = followed.iter().filter(|(_, name, _)| *name == stream);
        let seqs: Vec<u64> = of_stream.map(|(_, _, seq)| *seq).collect();
        assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>(), "{stream}");
    }
}
