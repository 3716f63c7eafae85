//! Conversations. Turns are events of the run, numbered from 0 without gaps. An exchange leaves the
//! question open; only closing ends it. The number of turns and the size of a turn are limited.

use super::answer::{Answer, AnswerOutcome, Closing, close, invalid};
use crate::definition::Definition;
use crate::node::{ConversationGate, Kind};
use crate::run::draft::DecisionDraft;
use crate::run::refusal::Refusal;
use crate::run::scheduling::Done;
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use tandem_record::{Event, Object, Seq};

/// The channel that turns are written to, if the workflow declares it.
const CHANNEL: &str = "conversation";
const MAX_TURNS: usize = 200;
const MAX_CONTENT_BYTES: usize = 16 * 1024;

/// Handles a new turn or the end of the conversation.
pub(in crate::run) fn resume(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    gate: &ConversationGate,
    answer: &Answer,
) -> Result<AnswerOutcome, Refusal> {
    let given = answer.value.get("turn").filter(|turn| !turn.is_null());
    match answer.value.get("operation").and_then(Value::as_str) {
        Some("exchange") => {
            let Some(given) = given else {
                return invalid("/turn", "is required");
            };
            if turns(draft, ix).len() >= MAX_TURNS {
                return invalid("/operation", "has gone on too long; close the conversation");
            }
            let message = read_turn(draft, ix, gate, given)?;
            draft.exchange(ix, message);
            Ok(AnswerOutcome {
                outcome: None,
                votes: Vec::new(),
            })
        }
        Some("close") => {
            let last = match given {
                Some(given) => read_turn(draft, ix, gate, given)?,
                None => draft.next_turn(
                    ix,
                    "system",
                    "system",
                    json!("The conversation was closed."),
                ),
            };
            let outcome = answer.value.get("outcome").cloned();
            draft.end_conversation(ix, last, outcome, answer);
            Ok(AnswerOutcome {
                outcome: Some("closed".to_owned()),
                votes: Vec::new(),
            })
        }
        _ => invalid("/operation", "must be exchange or close"),
    }
}

/// After the end a further message is an invalid request, not a lost race.
pub(in crate::run) fn is_exchange(value: &Value) -> bool {
    value.get("operation").and_then(Value::as_str) == Some("exchange")
}

fn turns<'t>(draft: &'t DecisionDraft<'_>, ix: usize) -> &'t [Value] {
    let open = draft.run.open_interrupt(ix);
    open.map_or(&[], |open| &open.turns)
}

/// A turn as its sender gave it, with the fields the host adds.
fn read_turn(
    draft: &DecisionDraft<'_>,
    ix: usize,
    gate: &ConversationGate,
    given: &Value,
) -> Result<Value, Refusal> {
    let Some(content) = given.get("content") else {
        return invalid("/turn/content", "is required");
    };
    if content.to_string().len() > MAX_CONTENT_BYTES {
        return invalid(
            "/turn/content",
            format!("is larger than {MAX_CONTENT_BYTES} bytes"),
        );
    }
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    let role = text("role").unwrap_or("user");
    let from = match role {
        "user" => "user",
        "agent" => match text("speakerId").or_else(|| text("from")) {
            Some(speaker) if gate.is_participant(speaker) => speaker,
            Some(_) => return invalid("/turn/speakerId", "is not a participant"),
            None => return invalid("/turn/speakerId", "is required of an agent"),
        },
        _ => return invalid("/turn/role", "must be user or agent"),
    };
    let problems = gate.check_value(content, "/resumeValue/turn/content", draft.cx.work);
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    Ok(draft.next_turn(ix, role, from, content.clone()))
}

/// The rules of a conversation: the node's own, or none when a supervisor asks the user.
pub(in crate::run) enum Gate<'d> {
    Own(&'d ConversationGate),
    Plain(Box<ConversationGate>),
}

impl Deref for Gate<'_> {
    type Target = ConversationGate;

    fn deref(&self) -> &ConversationGate {
        match self {
            Self::Own(gate) => gate,
            Self::Plain(gate) => gate,
        }
    }
}

impl DecisionDraft<'_> {
    /// The gate of a node that holds a conversation.
    pub(in crate::run) fn gate<'d>(&self, def: &'d Definition, ix: usize) -> Option<Gate<'d>> {
        let open = self.run.open_interrupt(ix)?;
        match &def.nodes[ix].kind {
            Kind::ConversationGate(gate) => Some(Gate::Own(gate)),
            Kind::Dispatch(_) if open.interrupt.kind == "conversation.exchange" => {
                let prompt = open.interrupt.data["prompt"].as_str().unwrap_or_default();
                Some(Gate::Plain(Box::new(ConversationGate::plain(prompt))))
            }
            _ => None,
        }
    }

    fn conversation(&self, ix: usize) -> String {
        let open = self.run.open_interrupt(ix);
        let open = open.expect("a conversation is held while its question is open");
        open.interrupt.key.clone()
    }

    fn next_turn(&self, ix: usize, role: &str, from: &str, content: Value) -> Value {
        let index = turns(self, ix).len();
        let conversation = self.conversation(ix);
        let mut message = json!({
            "messageId": format!("{conversation}:{index}:{role}"),
            "from": from,
            "content": content,
            "ts": self.now.0.max(0),
            "role": role,
            "turnIndex": index,
        });
        if role == "agent" {
            message["speakerId"] = json!(from);
        }
        message
    }

    /// Opens the conversation of a node that has just been suspended. A test conversation runs to
    /// its end at once.
    pub(in crate::run) fn open_conversation(&mut self, ix: usize, suspended: Seq) {
        let def = Arc::clone(&self.run.def);
        let Some(gate) = self.gate(&def, ix) else {
            return;
        };
        let agent = def.doc_node(ix).agent.as_ref();
        let agent = agent.and_then(|a| a.get("agentId")?.as_str());
        let prompt = json!(gate.prompt());
        let first = match agent {
            Some(agent) => self.next_turn(ix, "agent", agent, prompt),
            None => self.next_turn(ix, "system", "system", prompt),
        };
        let event = Event::ConversationOpened {
            node: def.nodes[ix].id.clone(),
            conversation: self.conversation(ix),
            turn: first.clone(),
            agent: agent.map(str::to_owned),
            participants: gate.participants.clone(),
            schema: gate.schema_document.clone(),
        };
        let opened = self.emit(event, Some(suspended));
        self.write_turn(ix, first, opened);
        if let Some(count) = gate.scripted_turns {
            for n in 1..=count {
                let message = self.next_turn(ix, "user", "user", json!(format!("turn {n}")));
                self.exchange(ix, message);
            }
            let last = self.next_turn(ix, "system", "system", json!("done"));
            let answer = Answer::of(json!({"operation": "close"}), None);
            self.end_conversation(ix, last, Some(json!("done")), &answer);
        }
    }

    fn exchange(&mut self, ix: usize, message: Value) {
        let event = Event::ConversationExchanged {
            node: self.run.def.nodes[ix].id.clone(),
            conversation: self.conversation(ix),
            turn: message.clone(),
        };
        let cause = self.emit(event, self.run.node(ix).last);
        self.write_turn(ix, message, cause);
    }

    /// Records the last turn. The caller closes the question itself.
    pub(in crate::run) fn close_conversation(
        &mut self,
        ix: usize,
        last: Value,
        outcome: Option<Value>,
    ) -> Seq {
        let event = Event::ConversationClosed {
            node: self.run.def.nodes[ix].id.clone(),
            conversation: self.conversation(ix),
            turn: last.clone(),
            outcome,
        };
        let closed = self.emit(event, self.run.node(ix).last);
        self.write_turn(ix, last, closed);
        closed
    }

    /// Ends a conversation whose time is up.
    pub(in crate::run) fn time_out_conversation(&mut self, ix: usize) {
        let text = json!("The conversation timed out.");
        let last = self.next_turn(ix, "system", "system", text);
        self.close_conversation(ix, last, Some(Value::Null));
    }

    fn end_conversation(
        &mut self,
        ix: usize,
        last: Value,
        outcome: Option<Value>,
        answer: &Answer,
    ) {
        self.close_conversation(ix, last.clone(), outcome.clone());
        let conversation = self.conversation(ix);
        let held = turns(self, ix).to_vec();
        let mut value = json!({"operation": "close", "turn": last});
        let mut outputs = Object::from_iter([
            ("conversationId".to_owned(), json!(conversation)),
            ("turns".to_owned(), Value::Array(held)),
        ]);
        if let Some(outcome) = outcome {
            value["outcome"] = outcome.clone();
            outputs.insert("outcome".to_owned(), outcome);
        }
        let closing = Closing {
            value,
            ..answer.closing("closed")
        };
        let resumed = close(self, ix, closing);
        // The decision of a supervisor causes the end of the question to the user.
        let decided = self.run.newest_decision().map(|d| d.seq);
        let dispatched = matches!(self.run.def.nodes[ix].kind, Kind::Dispatch(_));
        let cause = decided.filter(|_| dispatched).unwrap_or(resumed);
        self.complete_node(ix, Done::with(outputs), cause);
    }

    /// Writes a turn to the channel, under a key that a fork of the run uses too.
    fn write_turn(&mut self, ix: usize, mut message: Value, cause: Seq) {
        let def = Arc::clone(&self.run.def);
        let declared = def.channels.get(CHANNEL);
        if declared.is_none_or(|c| c.declared.reducer != "message") {
            return;
        }
        let node = &def.nodes[ix];
        let round = self.run.node(ix).execution;
        let (index, role) = (message["turnIndex"].clone(), message["role"].clone());
        let role = role.as_str().unwrap_or_default();
        message["messageId"] = json!(format!("{}:{round}:{index}:{role}", node.id));
        let scripted =
            matches!(&node.kind, Kind::ConversationGate(g) if g.scripted_turns.is_some());
        if scripted {
            message["ts"] = index;
        }
        // A channel that refuses the turn (by its schema or its writers) does not end the
        // conversation.
        if let Err(error) = self.write_channel(ix, CHANNEL, message, None, cause) {
            let event = Event::LogAppended {
                level: "warn".to_owned(),
                message: format!("a turn did not match its channel: {}", error.message),
                node: Some(node.id.clone()),
                fields: None,
            };
            self.emit(event, Some(cause));
        }
    }
}
