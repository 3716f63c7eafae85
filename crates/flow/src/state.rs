//! What a running flow shares with the task that polls it: the calls it awaits, their answers, and the data
//! members of `ctx`.

use crate::draws::Draws;
use crate::filter::Filter;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Poll;
use tandem_engine::flow::FlowError;
use tandem_record::{Object, RunId, Timestamp};

/// Calls that a flow may make while it is closed. A loop that ignores errors ends here.
const MAX_CLOSING_CALLS: usize = 100;

/// Replies by the key of their `ask`.
const ANSWERS: &str = "answers";

pub(crate) type SharedState = Arc<Mutex<RunState>>;

/// What the flow got for a call.
pub(crate) type Answer = Result<Option<Value>, FlowError>;

/// What a flow awaits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Effect {
        /// The method that made it, for messages.
        helper: &'static str,
        effect: Value,
    },
    Host {
        name: &'static str,
        args: Vec<Value>,
    },
}

/// Why the code cannot go on although it returned from its poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// An effect of this method was made and not awaited to its end.
    Forgotten(&'static str),
    /// It awaits something that `ctx` does not know.
    ForeignAwait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) run: RunId,
    pub(crate) now: Timestamp,
    pub(crate) data: Object,
    pub(crate) draws: Draws,
    /// Lines of the flow are written to the log. A replay wrote them before.
    pub(crate) is_live: bool,
    is_closing: bool,
    closing_calls: usize,
    /// Effects that were requested while closing.
    ignored: Vec<Value>,
    last_id: u64,
    /// In the order of their first poll.
    requests: VecDeque<(RequestId, Request)>,
    answers: BTreeMap<u64, Answer>,
    /// The filter of the effect with this request.
    filter: Option<(RequestId, Filter)>,
    forgotten: Option<&'static str>,
}

impl RunState {
    pub(crate) fn new(run: RunId, now: Timestamp, seed: u64, data: Object) -> Self {
        Self {
            run,
            now,
            data,
            draws: Draws::new(seed),
            is_live: true,
            is_closing: false,
            closing_calls: 0,
            ignored: Vec::new(),
            last_id: 0,
            requests: VecDeque::new(),
            answers: BTreeMap::new(),
            filter: None,
            forgotten: None,
        }
    }

    /// The flow awaits something for the first time. `Err` when it is being closed.
    pub(crate) fn request(&mut self, request: Request) -> Result<RequestId, Poll<()>> {
        if self.is_closing {
            return Err(self.request_while_closing(request));
        }
        self.last_id += 1;
        let id = RequestId(self.last_id);
        self.requests.push_back((id, request));
        Ok(id)
    }

    /// Ready to unwind, unless the flow does not stop.
    fn request_while_closing(&mut self, request: Request) -> Poll<()> {
        if self.closing_calls == MAX_CLOSING_CALLS {
            return Poll::Pending;
        }
        self.closing_calls += 1;
        if let Request::Effect { effect, .. } = request {
            self.ignored.push(effect);
        }
        Poll::Ready(())
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    pub(crate) fn take_answer(&mut self, id: RequestId) -> Option<Answer> {
        self.answers.remove(&id.0)
    }

    pub(crate) fn set_filter(&mut self, id: RequestId, filter: Filter) {
        self.filter = Some((id, filter));
    }

    pub(crate) fn filter_of(&self, id: RequestId) -> Option<Filter> {
        let (of, filter) = self.filter.as_ref()?;
        (*of == id).then(|| filter.clone())
    }

    pub(crate) fn answer(&mut self, id: RequestId, answer: Answer) {
        self.answers.insert(id.0, answer);
    }

    /// A made effect was dropped before it was awaited.
    pub(crate) fn forget(&mut self, helper: &'static str) {
        if !self.is_closing {
            self.forgotten.get_or_insert(helper);
        }
    }

    /// What was awaited is dropped before its answer was taken.
    pub(crate) fn withdraw(&mut self, id: RequestId) {
        self.answers.remove(&id.0);
        let position = self.requests.iter().position(|(known, _)| *known == id);
        if let Some((_, Request::Effect { helper, .. })) =
            position.and_then(|position| self.requests.remove(position))
        {
            self.forget(helper);
        }
    }

    /// The next request to hand out.
    pub(crate) fn next_request(&mut self) -> Result<(RequestId, Request), Stuck> {
        self.check_forgotten()?;
        let (id, request) = self.requests.pop_front().ok_or(Stuck::ForeignAwait)?;
        if let Request::Effect { .. } = request {
            // Effects are strictly one at a time (Z-211).
            let second = self.requests.iter().find_map(|(_, other)| match other {
                Request::Effect { helper, .. } => Some(*helper),
                Request::Host { .. } => None,
            });
            if let Some(helper) = second {
                return Err(Stuck::Forgotten(helper));
            }
        }
        Ok((id, request))
    }

    /// Z-116: an effect that is made and dropped would be an action without its confirmation.
    pub(crate) fn check_forgotten(&self) -> Result<(), Stuck> {
        self.forgotten
            .map_or(Ok(()), |helper| Err(Stuck::Forgotten(helper)))
    }

    /// From now on every await of `ctx` ends with an error that unwinds the flow.
    pub(crate) fn start_closing(&mut self) {
        self.is_closing = true;
        self.requests.clear();
        self.answers.clear();
    }

    pub(crate) fn take_ignored(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.ignored)
    }

    /// Changes data members of `ctx`. `null` removes one: JSON has no other way to say so. Replies are added
    /// to those that the flow got in this turn.
    pub(crate) fn update(&mut self, patch: &Object) {
        for (name, value) in patch {
            match value {
                Value::Null => drop(self.data.remove(name)),
                Value::Object(replies) if name == ANSWERS => {
                    for (key, reply) in replies {
                        self.note_reply(key, reply);
                    }
                }
                value => drop(self.data.insert(name.clone(), value.clone())),
            }
        }
    }

    /// The reply to an `ask`, as `ctx.answers` shows it.
    pub(crate) fn note_reply(&mut self, key: &str, reply: &Value) {
        let answers = self.data.entry(ANSWERS);
        let answers = answers.or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(answers) = answers {
            answers.insert(key.to_owned(), reply.clone());
        }
    }
}
