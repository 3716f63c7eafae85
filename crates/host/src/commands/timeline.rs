//! A run's events as lines of text, with times relative to the first event. Pure: the output
//! depends on the events and the style only.

use crate::output::{Colour, Style, sanitize};
use jiff::Timestamp;
use serde_json::Value;

pub(crate) struct Timeline {
    style: Style,
    began: Option<Timestamp>,
}

/// Node ids are padded to this; longer ones push the rest to the right.
const NODE_WIDTH: usize = 18;
/// Longer texts are cut here, so that an event stays one line.
const TEXT_CHARS: usize = 100;

impl Timeline {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, began: None }
    }

    /// The line of one event.
    pub(crate) fn line(&mut self, event: &Value) -> String {
        let at = event["timestamp"].as_str().and_then(|t| t.parse().ok());
        let began = *self
            .began
            .get_or_insert(at.unwrap_or(Timestamp::UNIX_EPOCH));
        let elapsed = at.map_or(0, |at: Timestamp| {
            at.as_millisecond() - began.as_millisecond()
        });
        let shown = describe(event);
        let subject = match event["nodeId"].as_str() {
            Some(node) if !shown.whole_run => format!("{:<NODE_WIDTH$}", sanitize(node)),
            _ => {
                let run = format!("{:<NODE_WIDTH$}", "run");
                self.style.paint(Colour::Bold, &run)
            }
        };
        let time = format!("{:>8}", format_duration(elapsed));
        format!(
            "{} {} {subject} {}",
            self.style.paint(Colour::Dim, &time),
            self.style.paint(shown.colour, shown.symbol),
            sanitize(&shown.text),
        )
        .trim_end()
        .to_owned()
    }
}

struct EventLine {
    symbol: &'static str,
    colour: Colour,
    text: String,
    whole_run: bool,
}

fn describe(event: &Value) -> EventLine {
    let payload = &event["payload"];
    let kind = event["type"].as_str().unwrap_or("event");
    let text = |key: &str| payload[key].as_str().unwrap_or_default();
    let show = |symbol, colour, text: String| EventLine {
        symbol,
        colour,
        text,
        whole_run: false,
    };
    let mut shown = match kind {
        "run.started" => show("▶", Colour::Blue, format!("started {}", text("workflowId"))),
        "run.completed" => show(
            "✓",
            Colour::Green,
            format!("completed{}", duration_suffix(payload)),
        ),
        "run.failed" => show(
            "✗",
            Colour::Red,
            format!("failed: {}", format_error(&payload["error"])),
        ),
        "run.cancelled" => show(
            "⊘",
            Colour::Yellow,
            with_reason("cancelled", text("reason")),
        ),
        "run.paused" => show("‖", Colour::Yellow, with_reason("paused", text("reason"))),
        "run.resumed" => show("▶", Colour::Blue, with_reason("resumed", text("reason"))),
        "node.started" => {
            let again = match payload["attempt"].as_u64() {
                Some(attempt) if attempt > 0 => format!(", attempt {}", attempt + 1),
                _ => String::new(),
            };
            show("●", Colour::Blue, format!("{}{again}", text("typeId")))
        }
        "node.completed" => show(
            "✓",
            Colour::Green,
            format!("completed{}", duration_suffix(payload)),
        ),
        "node.failed" => show(
            "✗",
            Colour::Red,
            format!("failed: {}", format_error(&payload["error"])),
        ),
        "node.retried" => {
            let wait = format_duration(payload["delayMs"].as_i64().unwrap_or(0));
            let why = format_error(&payload["lastError"]);
            show("↻", Colour::Yellow, format!("tried again in {wait}: {why}"))
        }
        "node.skipped" => show("○", Colour::Dim, with_reason("skipped", text("reason"))),
        "node.cancelled" => show(
            "⊘",
            Colour::Yellow,
            with_reason("cancelled", text("reason")),
        ),
        "node.suspended" => show("?", Colour::Yellow, format!("waits: {}", text("kind"))),
        "node.resumed" => show("▶", Colour::Blue, "resumed".to_owned()),
        "node.dispatched" => {
            let child = format!("{} as {}", text("childWorkflowId"), text("childRunId"));
            show("↳", Colour::Blue, child)
        }
        "variable.changed" => {
            let change = format!("{} = {}", text("name"), brief(&payload["next"]));
            show("=", Colour::Dim, change)
        }
        "channel.written" => {
            let change = format!("{} ← {}", text("channel"), brief(&payload["value"]));
            show("=", Colour::Dim, change)
        }
        "artifact.created" => {
            let artifact = format!("artifact {} ({})", text("artifactId"), text("artifactType"));
            show("◆", Colour::Blue, artifact)
        }
        "cap.breached" => {
            let (limit, observed) = (&payload["limit"], &payload["observed"]);
            let breach = format!("limit {} of {limit} passed: {observed}", text("kind"));
            show("!", Colour::Red, breach)
        }
        "output.chunk" => show(
            "·",
            Colour::Dim,
            format!("says {}", brief(&payload["chunk"])),
        ),
        "provider.usage" => {
            let (input, output) = (&payload["inputTokens"], &payload["outputTokens"]);
            let who = format!("{}/{}", text("provider"), text("model"));
            show(
                "·",
                Colour::Dim,
                format!("{who}: {input} tokens in, {output} out"),
            )
        }
        "envelope.retry.attempted" => {
            let again = format!("asks again, attempt {}", payload["attempt"]);
            show("↻", Colour::Yellow, with_reason(&again, text("reason")))
        }
        "envelope.refusal" => show(
            "✗",
            Colour::Red,
            with_reason("the model refused", text("refusalText")),
        ),
        "log.appended" => {
            let message = format!("{}: {}", text("level"), text("message"));
            show("·", Colour::Dim, message)
        }
        "tandem.pause.requested" => {
            let text = with_reason("pauses after the nodes under way", text("reason"));
            show("‖", Colour::Yellow, text)
        }
        "tandem.cancel.requested" => {
            let text = with_reason("cancels its children first", text("reason"));
            show("⊘", Colour::Yellow, text)
        }
        other => show("·", Colour::Dim, format!("{other} {}", brief(payload))),
    };
    shown.whole_run = event["nodeId"].is_null() || kind.starts_with("run.");
    shown
}

fn duration_suffix(payload: &Value) -> String {
    let ms = payload["durationMs"].as_i64();
    ms.map_or(String::new(), |ms| format!(" in {}", format_duration(ms)))
}

pub(crate) fn format_error(error: &Value) -> String {
    let part = |key: &str| error[key].as_str().unwrap_or("unknown");
    format!("[{}] {}", part("code"), part("message"))
}

fn with_reason(what: &str, reason: &str) -> String {
    match reason {
        "" => what.to_owned(),
        reason => format!("{what}: {reason}"),
    }
}

/// A short text for a value.
fn brief(value: &Value) -> String {
    if value.is_null() {
        return String::new();
    }
    let text = value.to_string();
    match text.char_indices().nth(TEXT_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// A duration for people: `12 ms`, `3.4 s`, `2 m 05 s`, `3 h 20 m`.
pub(crate) fn format_duration(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} m {:02} s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{} h {:02} m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn timeline_renders_each_event_type() {
        // R-0039-29 (half: event types): includes an unknown event type.
        let event = |ms: u64, kind: &str, node: Option<&str>, payload: Value| {
            let mut event = json!({
                "type": kind,
                "timestamp": format!("2026-01-01T00:{:02}:{:02}.{:03}Z", ms / 60_000, ms / 1000 % 60, ms % 1000),
                "payload": payload,
            });
            if let Some(node) = node {
                event["nodeId"] = json!(node);
            }
            event
        };
        let charge = Some("charge");
        let error = json!({"code": "http_error", "message": "503 from upstream"});
        let events = [
            event(0, "run.started", None, json!({"workflowId": "order"})),
            event(
                4,
                "node.started",
                charge,
                json!({"typeId": "vendor.tandem.http", "attempt": 0}),
            ),
            event(
                900,
                "node.retried",
                charge,
                json!({"delayMs": 1500, "lastError": error}),
            ),
            event(
                2400,
                "node.started",
                charge,
                json!({"typeId": "vendor.tandem.http", "attempt": 1}),
            ),
            event(
                3000,
                "variable.changed",
                charge,
                json!({"name": "paid", "next": true}),
            ),
            event(3000, "node.completed", charge, json!({"durationMs": 600})),
            event(
                3001,
                "node.skipped",
                Some("refund"),
                json!({"reason": "condition"}),
            ),
            event(
                3002,
                "node.dispatched",
                Some("ship"),
                json!({"childWorkflowId": "parcel", "childRunId": "run-2"}),
            ),
            event(
                3002,
                "output.chunk",
                Some("judge"),
                json!({"chunk": "Well, ", "isLast": false}),
            ),
            event(
                3003,
                "provider.usage",
                Some("judge"),
                json!({"provider": "acme", "model": "m", "inputTokens": 7, "outputTokens": 2}),
            ),
            event(
                3003,
                "envelope.retry.attempted",
                Some("judge"),
                json!({"attempt": 2, "reason": "parse-error"}),
            ),
            event(
                3004,
                "envelope.refusal",
                Some("judge"),
                json!({"refusalText": "no"}),
            ),
            event(
                61_002,
                "node.suspended",
                Some("a-node-with-a-long-name"),
                json!({"kind": "approval"}),
            ),
            event(
                65_000,
                "tandem.pause.requested",
                None,
                json!({"reason": "lunch"}),
            ),
            event(65_001, "some.day", None, json!({"new": 1})),
            event(
                125_000,
                "run.failed",
                charge,
                json!({"error": error, "durationMs": 125_000}),
            ),
        ];
        let mut timeline = Timeline::new(Style::PLAIN);
        let text: Vec<String> = events.iter().map(|e| timeline.line(e)).collect();
        let expected = "\
\u{20}   0 ms ▶ run                started order
\u{20}   4 ms ● charge             vendor.tandem.http
\u{20} 900 ms ↻ charge             tried again in 1.5 s: [http_error] 503 from upstream
\u{20}  2.4 s ● charge             vendor.tandem.http, attempt 2
\u{20}  3.0 s = charge             paid = true
\u{20}  3.0 s ✓ charge             completed in 600 ms
\u{20}  3.0 s ○ refund             skipped: condition
\u{20}  3.0 s ↳ ship               parcel as run-2
\u{20}  3.0 s · judge              says \"Well, \"
\u{20}  3.0 s · judge              acme/m: 7 tokens in, 2 out
\u{20}  3.0 s ↻ judge              asks again, attempt 2: parse-error
\u{20}  3.0 s ✗ judge              the model refused: no
1 m 01 s ? a-node-with-a-long-name waits: approval
1 m 05 s ‖ run                pauses after the nodes under way: lunch
1 m 05 s · run                some.day {\"new\":1}
2 m 05 s ✗ run                failed: [http_error] 503 from upstream";
        assert_eq!(text.join("\n"), expected);
    }

    #[test]
    fn timeline_replaces_control_characters() {
        let event =
            json!({"type": "log.appended", "payload": {"level": "info", "message": "\u{1b}[2J"}});
        assert!(!Timeline::new(Style::PLAIN).line(&event).contains('\u{1b}'));
    }

    #[test]
    fn durations_are_formatted_for_people() {
        let table = [
            (0, "0 ms"),
            (59_999, "59.9 s"),
            (60_000, "1 m 00 s"),
            (7_380_000, "2 h 03 m"),
        ];
        for (ms, text) in table {
            assert_eq!(format_duration(ms), text);
        }
    }
}
