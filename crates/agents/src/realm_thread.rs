//! A thread that owns the realm of one version of an agent and makes its calls, one step at a time.
//!
//! Several calls may be under way: while one waits for an HTTP response the thread goes on with others. A
//! thread of its own means that code which uses up its CPU time holds up only its own agent. The thread ends
//! when nobody holds its [`RealmThread`] any more.

use crate::call_session::CallSession;
use crate::http_access::HttpAccess;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use tandem_record::Object;
use tandem_script::{
    AgentCode, AgentRealm, Argument, CallEvent, CallEventKind, CallId, ErrorData, HostCall,
    ScriptFailure, ScriptLimits, Surroundings,
};
use tokio::sync::oneshot;

/// The interpreter needs 1 MB; parsers of long modules need more.
const STACK_BYTES: usize = 4 << 20;
const FETCH: &str = "http.fetch";

pub(crate) struct RealmThread {
    commands: Sender<Command>,
    condition: Arc<Condition>,
    last_number: AtomicU64,
}

/// What others know of the thread.
struct Condition {
    is_usable: AtomicBool,
    /// It runs code of the author.
    is_busy: AtomicBool,
}

/// Names a call of this thread, before the realm has a name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallNumber(u64);

/// What to call.
pub(crate) enum Target {
    /// The function at a JSON pointer.
    Function {
        path: String,
        args: Vec<Argument>,
        context: Object,
    },
    /// The Standard Schema at a JSON pointer, with a value to validate.
    Schema { path: String, value: Value },
}

/// How a call ended, and what it did.
pub(crate) type Finished = (Result<Value, ScriptFailure>, CallSession);

struct NewCall {
    number: CallNumber,
    target: Target,
    session: CallSession,
    http: HttpAccess,
    /// For answers that come later. It also keeps the thread alive while the call is under way.
    commands: Sender<Command>,
    reply: oneshot::Sender<Finished>,
}

enum Command {
    Begin(Box<NewCall>),
    /// The answer to a host call that waited for the outside.
    Answer {
        index: u64,
        answer: Result<Value, ErrorData>,
        now_ms: i64,
    },
    Cancel(CallNumber),
}

impl RealmThread {
    pub(crate) fn start(
        agent: &str,
        code: AgentCode,
        limits: ScriptLimits,
        surroundings: Surroundings,
    ) -> std::io::Result<Self> {
        let (commands, received) = mpsc::channel();
        let condition = Arc::new(Condition {
            is_usable: AtomicBool::new(true),
            is_busy: AtomicBool::new(false),
        });
        let worker = Worker {
            agent: agent.to_owned(),
            condition: condition.clone(),
            calls: BTreeMap::new(),
        };
        std::thread::Builder::new()
            .name(format!("agent-{agent}"))
            .stack_size(STACK_BYTES)
            .spawn(move || worker.run(&code, limits, &surroundings, &received))?;
        Ok(Self {
            commands,
            condition,
            last_number: AtomicU64::new(0),
        })
    }

    /// False after a limit was exceeded, or when the code could not be loaded.
    pub(crate) fn is_usable(&self) -> bool {
        self.condition.is_usable.load(Ordering::Acquire)
    }

    /// After a deadline has passed: code that still runs would hold up the next calls, too.
    pub(crate) fn retire_if_busy(&self) {
        if self.condition.is_busy.load(Ordering::Acquire) {
            self.condition.is_usable.store(false, Ordering::Release);
        }
    }

    /// Makes a call. Dropping the future gives the call up, with everything it did.
    pub(crate) async fn call(
        &self,
        target: Target,
        session: CallSession,
        http: HttpAccess,
    ) -> Option<Finished> {
        let number = CallNumber(self.last_number.fetch_add(1, Ordering::Relaxed));
        let (reply, finished) = oneshot::channel();
        let call = NewCall {
            number,
            target,
            session,
            http,
            commands: self.commands.clone(),
            reply,
        };
        // A thread that is gone drops the call, and with it the reply.
        let _ = self.commands.send(Command::Begin(Box::new(call)));
        let _cancel = CancelOnDrop {
            commands: &self.commands,
            number,
        };
        finished.await.ok()
    }
}

/// Cancelling a call that is over does nothing.
struct CancelOnDrop<'a> {
    commands: &'a Sender<Command>,
    number: CallNumber,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Cancel(self.number));
    }
}

/// The thread's side.
struct Worker {
    agent: String,
    condition: Arc<Condition>,
    calls: BTreeMap<CallId, RunningCall>,
}

struct RunningCall {
    number: CallNumber,
    session: CallSession,
    http: HttpAccess,
    commands: Sender<Command>,
    reply: oneshot::Sender<Finished>,
}

impl Worker {
    fn run(
        mut self,
        code: &AgentCode,
        limits: ScriptLimits,
        surroundings: &Surroundings,
        received: &Receiver<Command>,
    ) {
        let mut realm = match AgentRealm::create(code, limits, surroundings) {
            Ok(realm) => realm,
            Err(failure) => return self.refuse_all(&failure, received),
        };
        while let Ok(command) = received.recv() {
            self.condition.is_busy.store(true, Ordering::Release);
            let events = match command {
                Command::Begin(call) => self.begin(&mut realm, *call),
                Command::Answer {
                    index,
                    answer,
                    now_ms,
                } => realm.answer(index, answer.as_ref(), now_ms),
                Command::Cancel(number) => {
                    self.cancel(&mut realm, number);
                    Vec::new()
                }
            };
            self.handle(&mut realm, events);
            self.condition.is_busy.store(false, Ordering::Release);
            for line in realm.take_logs() {
                tracing::info!(agent = self.agent, level = line.level, "{}", line.text);
            }
        }
    }

    /// The code was good when it was loaded and fails now.
    fn refuse_all(&self, failure: &ScriptFailure, received: &Receiver<Command>) {
        self.condition.is_usable.store(false, Ordering::Release);
        while let Ok(command) = received.recv() {
            if let Command::Begin(call) = command {
                let NewCall { session, reply, .. } = *call;
                let _ = reply.send((Err(failure.clone()), session));
            }
        }
    }

    fn begin(&mut self, realm: &mut AgentRealm, call: NewCall) -> Vec<CallEvent> {
        let now_ms = call.session.now.0;
        let (id, events) = match &call.target {
            Target::Function {
                path,
                args,
                context,
            } => realm.call(path, args, context, now_ms),
            Target::Schema { path, value } => realm.validate(path, value, now_ms),
        };
        let running = RunningCall {
            number: call.number,
            session: call.session,
            http: call.http,
            commands: call.commands,
            reply: call.reply,
        };
        self.calls.insert(id, running);
        events
    }

    fn cancel(&mut self, realm: &mut AgentRealm, number: CallNumber) {
        let found = self.calls.iter().find(|(_, call)| call.number == number);
        if let Some(id) = found.map(|(id, _)| *id) {
            realm.cancel(id);
            self.calls.remove(&id);
        }
    }

    fn handle(&mut self, realm: &mut AgentRealm, events: Vec<CallEvent>) {
        let mut events = VecDeque::from(events);
        while let Some(event) = events.pop_front() {
            match event.kind {
                CallEventKind::HostCall(asked) => {
                    events.extend(self.answer(realm, event.call, asked));
                }
                CallEventKind::Finished(result) => {
                    // Before the caller knows: its next call gets another realm.
                    if !realm.is_usable() {
                        self.condition.is_usable.store(false, Ordering::Release);
                    }
                    if let Some(call) = self.calls.remove(&event.call) {
                        // Nobody may wait for it any more.
                        let _ = call.reply.send((result, call.session));
                    }
                }
            }
        }
    }

    fn answer(&mut self, realm: &mut AgentRealm, id: CallId, asked: HostCall) -> Vec<CallEvent> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Vec::new();
        };
        let now_ms = call.session.now.0;
        if asked.name == FETCH {
            let (commands, index) = (call.commands.clone(), asked.index);
            let key = call.session.key.clone();
            call.http.fetch(asked.args, key, move |answer| {
                let _ = commands.send(Command::Answer {
                    index,
                    answer,
                    now_ms,
                });
            });
            return Vec::new();
        }
        let answer = call.session.answer(&asked.name, &asked.args);
        realm.answer(asked.index, answer.as_ref(), now_ms)
    }
}
