//! Replaces the source's own id in values that the engine wrote: keys and names derived from the
//! id, and the HTTP requests to a supervisor or a verifier, which a branch may send again.

use crate::definition::Definition;
use crate::node::Kind;
use serde_json::Value;
use tandem_record::{Event, NodeId, RunId, Work};

/// The source's id and the fork's id.
#[derive(Clone, Copy)]
pub(super) struct OwnId<'a> {
    pub(super) source: &'a RunId,
    pub(super) fork: &'a RunId,
}

impl OwnId<'_> {
    /// Maps a name that begins with the run's id and a colon.
    pub(super) fn map_name(self, name: &mut String) {
        let rest = name.strip_prefix(self.source.as_str());
        if let Some(rest) = rest.filter(|rest| rest.starts_with(':')) {
            *name = format!("{}{rest}", self.fork);
        }
    }

    /// Maps the public id of an event of the run.
    pub(super) fn map_event_id(self, id: &mut String) {
        let rest = id.strip_prefix("evt-");
        let rest = rest.and_then(|rest| rest.strip_prefix(self.source.as_str()));
        let seq = rest.and_then(|rest| rest.strip_prefix('-'));
        if let Some(seq) = seq.filter(|seq| seq.bytes().all(|b| b.is_ascii_digit())) {
            *id = format!("evt-{}-{seq}", self.fork);
        }
    }

    /// Maps the default name of what a node asks about, used when its author gave none.
    pub(super) fn map_artifact(self, node: &NodeId, id: &mut String) {
        let made = format!("{}:{node}", self.source);
        let kind = id.strip_prefix(&made);
        if kind.is_some_and(|kind| ["", ":decision", ":escalation"].contains(&kind)) {
            self.map_name(id);
        }
    }

    pub(super) fn map_question(self, node: &NodeId, data: &mut Value) {
        if let Some(Value::String(id)) = data.get_mut("artifactId") {
            self.map_artifact(node, id);
        }
    }

    /// Maps the run id in the request to a supervisor or a verifier.
    pub(super) fn map_request_body(self, def: &Definition, event: &mut Event) {
        let work = match event {
            Event::NodeStarted {
                node,
                work: Some(work),
                ..
            } => {
                let kind = def.index(node).map(|ix| &def.nodes[ix].kind);
                Some(work).filter(|_| matches!(kind, Some(Kind::Supervisor(_))))
            }
            Event::VerificationRequested(request) => Some(&mut request.work),
            _ => None,
        };
        let Some(Work::Http { request, .. }) = work else {
            return;
        };
        let Some(body) = &mut request.body else {
            return;
        };
        if let Some(Value::String(run)) = body.get_mut("runId")
            && run == self.source.as_str()
        {
            *run = self.fork.to_string();
        }
        for judged in ["/target", "/lastVerdict/target"] {
            if let Some(Value::String(target)) = body.pointer_mut(judged) {
                self.map_event_id(target);
            }
        }
    }
}

/// Maps the id of a message in a conversation, which begins with the conversation's id.
pub(super) fn map_message(turn: &mut Value, before: &str, now: &str) {
    if let Some(Value::String(id)) = turn.get_mut("messageId") {
        let rest = id.strip_prefix(before);
        if let Some(rest) = rest.filter(|rest| rest.starts_with(':')) {
            *id = format!("{now}{rest}");
        }
    }
}
