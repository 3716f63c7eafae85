use super::*;

fn stream() -> StreamId {
    StreamId::new("conv:s1")
}

fn taken(reader: &mut AnswerReader, work: &EffectId) -> Option<String> {
    reader.take(work).map(|piece| piece.text)
}

#[test]
fn slow_and_late_readers_get_the_whole_text_in_order() {
    let pieces: Arc<AnswerPieces> = Arc::default();
    let (stream, work) = (stream(), EffectId::from("w1"));
    let mut slow = pieces.listen(&stream, false);
    let writer = pieces.open(&stream, &work);
    for n in 0..1_000 {
        writer.publish(&format!("{n} "));
    }
    let expected: String = (0..1_000).map(|n| format!("{n} ")).collect();
    let mut late = pieces.listen(&stream, false);
    assert_eq!(late.open_answer(), Some(work.clone()));
    writer.publish("end");
    drop(writer);
    for reader in [&mut slow, &mut late] {
        assert!(reader.has_more(&work));
        assert_eq!(taken(reader, &work), Some(format!("{expected}end")));
        assert_eq!(taken(reader, &work), None);
        assert_eq!(reader.open_answer(), None);
    }
}

#[test]
fn one_answer_after_the_other_is_read_from_its_beginning() {
    let pieces: Arc<AnswerPieces> = Arc::default();
    let (stream, first, second) = (stream(), EffectId::from("w1"), EffectId::from("w2"));
    let mut reader = pieces.listen(&stream, false);
    pieces.open(&stream, &first).publish("one");
    let writer = pieces.open(&stream, &second);
    writer.publish("two");
    assert_eq!(taken(&mut reader, &first).as_deref(), Some("one"));
    assert_eq!(taken(&mut reader, &second).as_deref(), Some("two"));
    writer.publish("!");
    assert_eq!(taken(&mut reader, &second).as_deref(), Some("!"));
}

#[test]
fn text_is_held_while_it_is_written_or_read_and_bounded() {
    let pieces: Arc<AnswerPieces> = Arc::default();
    let (stream, work) = (stream(), EffectId::from("w1"));
    pieces.open(&stream, &work).publish("unread");
    assert_eq!(taken(&mut pieces.listen(&stream, false), &work), None);
    let mut from_start = pieces.listen(&stream, true);
    assert_eq!(taken(&mut from_start, &work).as_deref(), Some("unread"));
    drop(from_start);
    let others = 0..RECENT_SESSIONS;
    others.for_each(|n| {
        pieces
            .open(&StreamId::new(format!("conv:{n}")), &work)
            .publish("x")
    });
    assert_eq!(taken(&mut pieces.listen(&stream, true), &work), None);
    assert!(pieces.held.lock().streams.len() <= RECENT_SESSIONS + 1);

    let mut reader = pieces.listen(&stream, false);
    let half = "x".repeat(MAX_ANSWER_BYTES / 2);
    let writer = pieces.open(&stream, &work);
    for _ in 0..5 {
        writer.publish(&half);
    }
    let read = taken(&mut reader, &work).expect("its beginning");
    assert_eq!(read.len(), MAX_ANSWER_BYTES);
    drop((writer, reader));
    assert!(pieces.held.lock().streams.len() <= RECENT_SESSIONS);
}

/// Z-241 (half: nothing more is streamed once the agent is silenced)
#[test]
fn silenced_session_streams_no_more_of_the_answer_under_way() {
    let pieces: Arc<AnswerPieces> = Arc::default();
    let (stream, first, second) = (stream(), EffectId::from("w1"), EffectId::from("w2"));
    let mut reader = pieces.listen(&stream, false);
    let writer = pieces.open(&stream, &first);
    writer.publish("Hel");
    pieces.silence(&stream);
    writer.publish("lo");
    drop(writer);
    assert_eq!(taken(&mut reader, &first).as_deref(), Some("Hel"));
    pieces.open(&stream, &second).publish("later");
    assert_eq!(taken(&mut reader, &second).as_deref(), Some("later"));
}

#[test]
fn repeated_call_does_not_continue_the_text_of_the_first() {
    let pieces: Arc<AnswerPieces> = Arc::default();
    let (stream, work) = (stream(), EffectId::from("w1"));
    let mut reader = pieces.listen(&stream, false);
    pieces.open(&stream, &work).publish("Hel");
    pieces.open(&stream, &work).publish("Hello");
    assert_eq!(taken(&mut reader, &work).as_deref(), Some("Hel"));
    assert_eq!(taken(&mut reader, &work), None);
}
