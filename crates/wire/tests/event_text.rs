//! Events written as text are the same as events as values.

use serde_json::{Value, json};
use std::path::Path;
use tandem_record::{Cause, Event, RecordedEvent, RunId, Sensitivity, Seq, Timestamp};
use tandem_wire::project::{self, Reader};

/// The events of all recorded histories.
fn recorded() -> Vec<RecordedEvent> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/histories");
    let files = std::fs::read_dir(folder).expect("the histories are part of the checkout");
    let mut recorded = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a history");
        let history: Value = serde_json::from_str(&text).expect("JSON");
        let events = history["events"].as_array().expect("a log");
        recorded.extend((0..).zip(events).map(|(seq, stored)| RecordedEvent {
            seq: Seq(seq),
            at: Timestamp(stored["at"].as_i64().expect("a time")),
            cause: serde_json::from_value(stored["body"]["c"].clone()).expect("a cause"),
            event: serde_json::from_value(stored["body"]["e"].clone()).expect("an event"),
        }));
    }
    recorded
}

#[track_caller]
fn assert_same(recorded: &RecordedEvent) {
    let (run, mask) = (RunId::new("run-1"), Sensitivity::default());
    let reader = Reader::v1(&mask);
    let value = project::event(&run, recorded, reader);
    let text = project::event_text(&run, recorded, reader);
    let parsed: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(parsed, value);
    // A key that is written twice makes the text longer.
    assert_eq!(text.len(), value.to_string().len(), "{text}");
    let message: Value =
        serde_json::from_str(&project::message(&run, recorded, reader)).expect("JSON");
    let mut payload = value["payload"].clone();
    if let Some(payload) = payload.as_object_mut() {
        payload.remove("causationHostId");
    }
    assert_eq!(message, payload);
    let name = project::event_type(&recorded.event, reader.major);
    assert_eq!(value["type"], name);
}

#[test]
fn recorded_events_are_the_same_as_text() {
    let recorded = recorded();
    assert!(recorded.len() > 100, "{}", recorded.len());
    recorded.iter().for_each(assert_same);
}

#[test]
fn causes_and_special_characters_are_the_same_as_text() {
    let named = |cause| {
        assert_same(&RecordedEvent {
            seq: Seq(7),
            at: Timestamp(1),
            cause,
            event: Event::LogAppended {
                level: "info".to_owned(),
                message: "\u{1e}\"\\ Łódź \u{1f600}\n".to_owned(),
                node: None,
                fields: json!({"a\"b": [1, null, 2.5]}).as_object().cloned(),
            },
        });
    };
    named(None);
    named(Some(Cause::Event(Seq(3))));
    named(Some(Cause::External("evt-\"x\"".to_owned())));
    named(Some(Cause::Foreign {
        event: "evt-y".to_owned(),
        host: "other".to_owned(),
    }));
    for mut recorded in recorded() {
        recorded.cause = Some(Cause::Foreign {
            event: "evt-y".to_owned(),
            host: "other".to_owned(),
        });
        assert_same(&recorded);
    }
}
