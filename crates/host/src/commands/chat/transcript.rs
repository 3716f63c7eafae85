//! A conversation as text: who said what, and what the host reports. Does no I/O.
//!
//! A text that a model writes is shown piece by piece. The event with the whole text follows: when it is
//! the same, it completes the line; when it is another or there is none, that is said.

use crate::output::{Colour, Style, sanitize};
use serde_json::Value;
use std::collections::HashSet;

/// Messages of the history that are shown.
const SHOWN_HISTORY: usize = 20;

pub(super) struct Transcript {
    agent: String,
    user: String,
    style: Style,
    /// Ids of messages that are shown already.
    seen: HashSet<String>,
    /// Pieces of the answer that is being written.
    streamed: String,
}

impl Transcript {
    pub(super) fn new(agent: &str, user: &str, style: Style) -> Self {
        Self {
            agent: agent.to_owned(),
            user: user.to_owned(),
            style,
            seen: HashSet::new(),
            streamed: String::new(),
        }
    }

    /// A message that this chat sends: its user has seen it.
    pub(super) fn note_own(&mut self, id: &str) {
        self.seen.insert(id.to_owned());
    }

    /// The last messages of a session.
    pub(super) fn history(&mut self, messages: &[Value]) -> String {
        let ids = messages.iter().filter_map(|message| message["id"].as_str());
        self.seen.extend(ids.map(str::to_owned));
        let skipped = messages.len().saturating_sub(SHOWN_HISTORY);
        let mut shown = String::new();
        if skipped > 0 {
            shown.push_str(&self.note(&format!("{skipped} earlier messages")));
        }
        for message in &messages[skipped..] {
            let text = message["text"].as_str().unwrap_or_default();
            let speaker = match message["role"].as_str() {
                Some("user") => sanitize(&self.user),
                _ => self.speaker(&message["author"]),
            };
            shown.push_str(&self.speech_line(Colour::Dim, &speaker, text));
        }
        shown
    }

    /// A piece of an answer.
    pub(super) fn piece(&mut self, piece: &str) -> String {
        let mut shown = String::new();
        if self.streamed.is_empty() {
            shown.push_str(&self.label(Colour::Green, &sanitize(&self.agent)));
        }
        self.streamed.push_str(piece);
        shown + &indented(piece)
    }

    /// One event. Empty when there is nothing to show.
    pub(super) fn event(&mut self, event: &Value) -> String {
        let payload = &event["payload"];
        let text = |key: &str| sanitize(payload[key].as_str().unwrap_or_default());
        match event["type"].as_str().unwrap_or_default() {
            "transport:outbound" => self.outbound(payload),
            "transport:inbound" => self.inbound(payload),
            "response:canceled" | "response:suppressed" => {
                let why = text("reason");
                let note = match why.is_empty() {
                    true => "an answer was not sent".to_owned(),
                    false => format!("an answer was not sent: {why}"),
                };
                self.interrupted(&note)
            }
            "runtime:inbound:processed" | "runtime:inbound:failed" => {
                match self.streamed.is_empty() {
                    true => String::new(),
                    false => self.interrupted("this text was not sent"),
                }
            }
            "hitl.escalation.created" => {
                self.interrupted(&format!("a person has to decide: {}", text("reason")))
            }
            "hitl.escalation.resolved" => {
                let outcome = match payload["approved"].as_bool() {
                    Some(true) => "approved",
                    _ => "not approved",
                };
                self.interrupted(&format!("{outcome} by {}", text("resolvedBy")))
            }
            "hitl.escalation.timed_out" => self.interrupted("nobody decided in time"),
            "hitl.live_takeover.started" => self.interrupted("a person has taken over"),
            "hitl.live_takeover.ended" => self.interrupted("the agent is back"),
            "flow.failed" => {
                let message = sanitize(payload["error"]["message"].as_str().unwrap_or_default());
                self.interrupted(&format!("the flow failed: {message}"))
            }
            "flow.diverged" => self.interrupted("the flow was stopped: its code has changed"),
            "session:ended" => {
                self.interrupted(&format!("the session has ended ({})", text("reason")))
            }
            _ => String::new(),
        }
    }

    /// A line of the host.
    pub(super) fn note(&self, text: &str) -> String {
        format!("{}\n", self.style.paint(Colour::Dim, &format!("· {text}")))
    }

    /// A line of the host. A text that was being written before it is left as it is.
    fn interrupted(&mut self, note: &str) -> String {
        let ended = self.end_streamed();
        ended + &self.note(note)
    }

    fn end_streamed(&mut self) -> String {
        match std::mem::take(&mut self.streamed).is_empty() {
            true => String::new(),
            false => "\n".to_owned(),
        }
    }

    fn outbound(&mut self, payload: &Value) -> String {
        let id = payload["messageId"].as_str().unwrap_or_default();
        let is_ours = payload["to"].as_str() == Some(&self.user);
        if !is_ours || !self.seen.insert(id.to_owned()) {
            return String::new();
        }
        let text = payload["text"].as_str().unwrap_or_default();
        let streamed = self.streamed.clone();
        let mut shown = self.end_streamed();
        match text.strip_prefix(&streamed) {
            // The last pieces may come with the whole text.
            Some(rest) if !streamed.is_empty() => return indented(rest) + "\n",
            // Without the first pieces it is the same text all the same.
            _ if !text.contains(&streamed) => shown.push_str(&self.note("this text was replaced")),
            _ => {}
        }
        let is_host = payload["origin"].as_str() == Some("command");
        let said = match is_host && payload["author"].is_null() {
            true => self.speech_line(Colour::Blue, "system", text),
            false => {
                let speaker = self.speaker(&payload["author"]);
                self.speech_line(Colour::Green, &speaker, text)
            }
        };
        shown + &said
    }

    /// A message of the user. One that this chat did not send came another way.
    fn inbound(&mut self, payload: &Value) -> String {
        let id = payload["messageId"].as_str().unwrap_or_default();
        if !self.seen.insert(id.to_owned()) {
            return String::new();
        }
        let from = sanitize(payload["from"].as_str().unwrap_or_default());
        let text = payload["text"].as_str().unwrap_or_default();
        let ended = self.end_streamed();
        ended + &self.speech_line(Colour::Dim, &from, text)
    }

    fn speaker(&self, author: &Value) -> String {
        match author["kind"].as_str() {
            Some("human") => {
                let who = sanitize(author["actorId"].as_str().unwrap_or("somebody"));
                format!("{who} (human)")
            }
            _ => sanitize(&self.agent),
        }
    }

    fn speech_line(&self, colour: Colour, speaker: &str, text: &str) -> String {
        format!("{}{}\n", self.label(colour, speaker), indented(text))
    }

    fn label(&self, colour: Colour, speaker: &str) -> String {
        self.style.paint(colour, &format!("{speaker}: "))
    }
}

/// Further lines stand below the first.
fn indented(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(sanitize).collect();
    lines.join("\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn transcript() -> Transcript {
        Transcript::new("desk", "ada", Style::PLAIN)
    }

    fn event(kind: &str, payload: Value) -> Value {
        json!({"type": kind, "turnId": "t", "payload": payload})
    }

    fn outbound(id: &str, text: &str) -> Value {
        let payload = json!({"messageId": id, "to": "ada", "text": text, "origin": "classic"});
        event("transport:outbound", payload)
    }

    #[test]
    fn speakers_are_told_apart() {
        let mut t = transcript();
        assert_eq!(t.event(&outbound("1", "one\ntwo")), "desk: one\n    two\n");
        let mut human = outbound("2", "hi");
        human["payload"]["author"] = json!({"kind": "human", "actorId": "eva"});
        assert_eq!(t.event(&human), "eva (human): hi\n");
        let mut host = outbound("3", "help");
        host["payload"]["origin"] = json!("command");
        assert_eq!(t.event(&host), "system: help\n");
        let mut other = outbound("4", "secret");
        other["payload"]["to"] = json!("finance-desk");
        assert_eq!(t.event(&other), "");
        let inbound = json!({"messageId": "m", "from": "ada", "text": "from my phone"});
        let shown = t.event(&event("transport:inbound", inbound.clone()));
        assert_eq!(shown, "ada: from my phone\n");
        assert_eq!(t.event(&event("transport:inbound", inbound)), "");
        t.note_own("n");
        let own = json!({"messageId": "n", "from": "ada", "text": "typed here"});
        assert_eq!(t.event(&event("transport:inbound", own)), "");
    }

    #[test]
    fn streamed_text_is_shown_once_and_replacement_is_said() {
        let mut t = transcript();
        assert_eq!(t.piece("Good "), "desk: Good ");
        assert_eq!(t.piece("day.\u{1b}[2J"), "day.\u{fffd}[2J");
        assert_eq!(t.event(&outbound("1", "Good day.\u{1b}[2J")), "\n");
        t.piece("In ");
        assert_eq!(t.event(&outbound("1a", "In two parts")), "two parts\n");
        t.piece("late");
        assert_eq!(
            t.event(&outbound("1b", "joined late")),
            "\ndesk: joined late\n"
        );
        t.piece("Half");
        assert_eq!(
            t.event(&outbound("2", "Whole.")),
            "\n· this text was replaced\ndesk: Whole.\n"
        );
        t.piece("Never");
        assert_eq!(
            t.event(&event(
                "response:suppressed",
                json!({"reason": "live_takeover"})
            )),
            "\n· an answer was not sent: live_takeover\n"
        );
        t.piece("Lost");
        assert_eq!(
            t.event(&event("runtime:inbound:failed", json!({}))),
            "\n· this text was not sent\n"
        );
        assert_eq!(t.event(&event("runtime:inbound:processed", json!({}))), "");
    }

    #[test]
    fn history_is_shortened_and_not_repeated() {
        let mut t = transcript();
        let message = |n: usize| {
            let role = if n.is_multiple_of(2) {
                "user"
            } else {
                "assistant"
            };
            json!({"id": format!("m{n}"), "role": role, "text": format!("text {n}")})
        };
        let messages: Vec<Value> = (0..23).map(message).collect();
        let shown = t.history(&messages);
        assert!(
            shown.starts_with("· 3 earlier messages\ndesk: text 3\nada: text 4\n"),
            "{shown}"
        );
        assert_eq!(t.event(&outbound("m21", "text 21")), "");
    }

    #[test]
    fn what_people_and_the_host_do_is_reported() {
        let mut t = transcript();
        let table = [
            (
                "hitl.escalation.created",
                json!({"reason": "too much"}),
                "· a person has to decide: too much\n",
            ),
            (
                "hitl.escalation.resolved",
                json!({"approved": true, "resolvedBy": "ana"}),
                "· approved by ana\n",
            ),
            (
                "hitl.escalation.resolved",
                json!({"approved": false, "resolvedBy": "ana"}),
                "· not approved by ana\n",
            ),
            (
                "flow.failed",
                json!({"error": {"message": "boom"}}),
                "· the flow failed: boom\n",
            ),
            (
                "session:ended",
                json!({"reason": "reset"}),
                "· the session has ended (reset)\n",
            ),
            ("flow.started", json!({}), ""),
        ];
        for (kind, payload, expected) in table {
            assert_eq!(t.event(&event(kind, payload)), expected, "{kind}");
        }
    }
}
