//! Streams grow at an expected position, without gaps, and a commit is atomic.

use super::sample::{NOW, append, body, commit, conflict, head, later, must, row, whole};
use crate::{
    Conflict, Error, MAX_BODY_BYTES, NewEvent, PageLimit, Store, StoredEvent, TimerChange,
};
use std::sync::Arc;
use tandem_record::{Seq, StreamId, TenantId, TimerName};

pub async fn begins_at_zero(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    let nothing = store.events(&stream, None, 10).await.unwrap();
    assert_eq!(nothing.head, None, "a new stream has no head");
    assert!(nothing.events.is_empty());

    must(&store, commit([append(&stream, None, 2)])).await;
    let slice = store.events(&stream, None, 10).await.unwrap();
    assert_eq!(slice.head, Some(Seq(1)));
    assert_eq!(slice.events[0].seq, Seq(0), "the first event is 0");
    assert_eq!(slice.events[1].at, later(1), "events keep their time");
}

pub async fn continues_without_gaps(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 1)])).await;
    must(&store, commit([append(&stream, Some(0), 3)])).await;
    must(&store, commit([append(&stream, Some(3), 1)])).await;
    assert_eq!(whole(&store, &stream).await.len(), 5);
}

pub async fn reads_in_pages(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 10)])).await;
    let page = store.events(&stream, Some(Seq(3)), 4).await.unwrap();
    let seqs: Vec<u64> = page.events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, [4, 5, 6, 7], "strictly after, at most the limit");
    assert_eq!(
        page.head,
        Some(Seq(9)),
        "the head does not depend on the page"
    );
    let end = store.events(&stream, Some(Seq(9)), 4).await.unwrap();
    assert!(end.events.is_empty(), "no events after the head");
    assert_eq!(end.head, Some(Seq(9)));
    let none = store.events(&stream, None, 0).await.unwrap();
    assert!(none.events.is_empty(), "a limit of nothing gives nothing");
    assert_eq!(none.head, Some(Seq(9)));
}

/// A page ends before its byte limit is exceeded, and every page has at least one event.
pub async fn reads_in_pages_of_bytes(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    let lengths = [10, 2_000, 10, 50_000, 4_000, 10, 10];
    let mut one = append(&stream, None, lengths.len() as u64);
    for (event, length) in one.events.iter_mut().zip(lengths) {
        event.body = format!("\"{}\"", "x".repeat(length - 2));
    }
    must(&store, commit([one])).await;
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let limit = PageLimit {
            events: 3,
            bytes: 5_000,
        };
        let page = store.event_page(&stream, after, limit).await.unwrap();
        assert_eq!(page.head, Some(Seq(6)), "the head is the stream's");
        let Some(last) = page.events.last() else {
            break;
        };
        after = Some(last.seq);
        let read: Vec<usize> = page.events.iter().map(|event| event.body.len()).collect();
        pages.push(read);
    }
    let expected: [&[usize]; 3] = [&[10, 2_000, 10], &[50_000], &[4_000, 10, 10]];
    assert_eq!(pages, expected, "one long event is a page of its own");
}

/// A body that never fits is refused permanently, and nothing of its commit is written.
pub async fn rejects_oversized_bodies(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 1)])).await;
    let mut long = append(&stream, Some(0), 1);
    long.events[0].body = format!("\"{}\"", "x".repeat(MAX_BODY_BYTES));
    match store.commit(commit([long])).await {
        Err(Error::Fault(fault)) => assert_eq!((fault.code, fault.retryable), ("too_large", false)),
        other => panic!("expected a fault, got {other:?}"),
    }
    assert_eq!(head(&store, &stream).await, Some(0), "nothing was written");
    must(&store, commit([append(&stream, Some(0), 1)])).await;
}

/// However a store lays out events, they are read one by one from any position: events of one
/// moment or of different moments, short and long.
pub async fn reads_from_any_position(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(
        &store,
        commit([append(&StreamId::new("run:before"), None, 3)]),
    )
    .await;
    let mut written: Vec<NewEvent> = Vec::new();
    for (count, moments, bytes) in [(5, 1, 1), (1, 1, 1), (4, 2, 900), (3, 1, 5_000), (2, 1, 1)] {
        let after = (written.len() as u64).checked_sub(1);
        let mut more = append(&stream, after, count);
        for (place, event) in (0_u64..).zip(&mut more.events) {
            event.at = later(place % moments);
            event.body = format!(r#"{{"n":{},"pad":"{}"}}"#, written.len(), "x".repeat(bytes));
            written.push(event.clone());
        }
        must(&store, commit([more])).await;
    }
    must(
        &store,
        commit([append(&StreamId::new("run:behind"), None, 3)]),
    )
    .await;
    let length = written.len();
    for from in 0..=length {
        for limit in [1, 2, 4, 100] {
            let after = (from as u64).checked_sub(1).map(Seq);
            let slice = store.events(&stream, after, limit).await.unwrap();
            let read: Vec<(u64, NewEvent)> = slice
                .events
                .into_iter()
                .map(|StoredEvent { seq, at, body }| (seq.0, NewEvent { at, body }))
                .collect();
            let wanted: Vec<(u64, NewEvent)> = (0..).zip(written.iter().cloned()).collect();
            let end = length.min(from + limit);
            assert_eq!(read, wanted[from..end], "{limit} from {from}");
        }
    }
}

/// Z-189 (half: a commit names the sequence it was decided on)
pub async fn refuses_a_stale_position(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 2)])).await;
    for wrong in [Some(0), Some(2)] {
        assert_eq!(
            conflict(&store, commit([append(&stream, wrong, 1)])).await,
            Conflict::Position {
                stream: stream.clone(),
                expected: wrong.map(Seq),
                actual: Some(Seq(1)),
            }
        );
    }
    assert_eq!(whole(&store, &stream).await.len(), 2, "nothing was written");

    let absent = StreamId::new("run:b");
    assert_eq!(
        conflict(&store, commit([append(&absent, Some(0), 1)])).await,
        Conflict::Position {
            stream: absent.clone(),
            expected: Some(Seq(0)),
            actual: None,
        }
    );
    assert_eq!(head(&store, &absent).await, None, "no stream appeared");
}

pub async fn refuses_to_begin_twice(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 1)])).await;
    assert_eq!(
        conflict(&store, commit([append(&stream, None, 1)])).await,
        Conflict::Position {
            stream: stream.clone(),
            expected: None,
            actual: Some(Seq(0)),
        }
    );
}

pub async fn several_streams_advance_together(store: Arc<dyn Store>) {
    let (a, b) = (StreamId::new("run:a"), StreamId::new("run:b"));
    must(&store, commit([append(&a, None, 2), append(&b, None, 3)])).await;
    must(
        &store,
        commit([append(&b, Some(2), 1), append(&a, Some(1), 1)]),
    )
    .await;
    assert_eq!(whole(&store, &a).await.len(), 3);
    assert_eq!(whole(&store, &b).await.len(), 4);
}

/// Z-188 (half: if a part cannot be written, none is)
pub async fn one_conflict_rejects_the_whole_commit(store: Arc<dyn Store>) {
    let (a, b, c) = (
        StreamId::new("run:a"),
        StreamId::new("run:b"),
        StreamId::new("run:c"),
    );
    must(&store, commit([append(&a, None, 1), append(&b, None, 1)])).await;
    // The conflict is in the last append: everything before it must be rolled back.
    let mut begin_c = append(&c, None, 1);
    begin_c.run = Some(row("t1", "c"));
    let mut bad = commit([append(&a, Some(0), 2), begin_c, append(&b, Some(7), 1)]);
    bad.timers.push(TimerChange::Set {
        stream: a.clone(),
        name: TimerName::new("deadline"),
        due: NOW,
        tenant: TenantId::new("t1"),
    });
    conflict(&store, bad).await;
    assert_eq!(
        head(&store, &a).await,
        Some(0),
        "the good append was undone"
    );
    assert_eq!(head(&store, &c).await, None, "no new stream is left");
    assert_eq!(store.next_timer().await.unwrap(), None, "no timer is left");
    let run = store.run_of_any_tenant(&"c".into()).await.unwrap();
    assert_eq!(run, None, "no run is left");
    // The streams continue as if the commit had not been tried.
    must(
        &store,
        commit([append(&a, Some(0), 1), append(&c, None, 1)]),
    )
    .await;
    whole(&store, &a).await;
    whole(&store, &c).await;
}

pub async fn appends_of_one_commit_build_on_each_other(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    let twice = commit([append(&stream, None, 2), append(&stream, Some(1), 1)]);
    must(&store, twice).await;
    assert_eq!(whole(&store, &stream).await.len(), 3);
    let stale = commit([append(&stream, Some(2), 1), append(&stream, Some(2), 1)]);
    conflict(&store, stale).await;
    assert_eq!(whole(&store, &stream).await.len(), 3);
}

pub async fn refuses_malformed_commits(store: Arc<dyn Store>) {
    let empty = append(&StreamId::new("run:a"), None, 0);
    let mut of_another_run = append(&StreamId::new("run:a"), None, 1);
    of_another_run.run = Some(row("t1", "b"));
    for malformed in [empty, of_another_run] {
        match store.commit(commit([malformed])).await {
            Err(Error::Fault(fault)) => {
                assert_eq!(fault.code, "invalid");
                assert!(!fault.retryable, "a retry does not help");
            }
            other => panic!("expected a fault, got {other:?}"),
        }
    }
    assert_eq!(head(&store, &StreamId::new("run:a")).await, None);
}

pub async fn stores_bodies_byte_for_byte(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    // Key order, number format, escapes and size are the caller's.
    let bodies = [
        String::new(),
        r#"{"b":1.0,"a":"\u00e9 é 🦀","c":[1e3,  null]}"#.to_owned(),
        format!(r#"{{"long":"{}"}}"#, "x".repeat(300_000)),
        body(&stream, 3),
    ];
    let mut one = append(&stream, None, 0);
    one.events = bodies
        .iter()
        .map(|body| NewEvent {
            at: NOW,
            body: body.clone(),
        })
        .collect();
    must(&store, commit([one])).await;
    let read = store.events(&stream, None, 10).await.unwrap().events;
    assert_eq!(read.len(), bodies.len(), "none is lost");
    for (stored, given) in read.iter().zip(&bodies) {
        assert!(stored.body == *given, "a body changed on its way");
    }
}

pub async fn closed_store_returns_closed_fault(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 1)])).await;
    store.close().await;
    match store.commit(commit([append(&stream, Some(0), 1)])).await {
        Err(Error::Fault(fault)) => assert_eq!(fault.code, "closed"),
        other => panic!("expected a fault, got {other:?}"),
    }
    let read = store.events(&stream, None, 1).await;
    assert_eq!(read.unwrap_err().code, "closed");
    let ping = store.ping().await;
    assert_eq!(ping.unwrap_err().code, "closed");
    store.close().await;
}
