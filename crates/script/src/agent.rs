//! The functions of an agent's configuration, in one long-lived realm: prompt, hooks, handlers of tools
//! and commands, `adminAuth`, Standard Schemas (§10.4).
//!
//! Several calls may be under way at the same time: while one waits for a host call, others begin and go
//! on. Only code that uses the CPU holds up the rest, and it is stopped at the CPU limit. Wall time is the
//! caller's: it cancels a call whose deadline has passed.

use crate::copy::{copy, property_order};
use crate::failure::{ErrorData, FailureCode, ScriptFailure};
use crate::function_call::{Argument, Root};
use crate::host_call::{CallId, HostCall};
use crate::limits::ScriptLimits;
use crate::realm::{LogLine, Realm, Scope, Stop, Surroundings};
use crate::source_set::SourceSet;
use rquickjs::{Array, Ctx, Function, Object, Value as JsValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where the schema of a command's arguments has the order of its properties.
const PROPERTY_ORDER: &str = "propertyOrder";
const ASSEMBLE: &str = include_str!("js/assemble.js");

/// The code of an agent: its file and those of `tools/` and `commands/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCode {
    /// The entry is the agent's file.
    pub set: SourceSet,
    /// Paths in the set.
    pub tools: Vec<String>,
    pub commands: Vec<String>,
}

/// Something that happened to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEvent {
    pub call: CallId,
    pub kind: CallEventKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CallEventKind {
    /// The call waits for an answer to this.
    HostCall(HostCall),
    Finished(Result<Value, ScriptFailure>),
}

pub struct AgentRealm {
    realm: Realm,
    config: Value,
    /// Calls that have not finished.
    calls: BTreeSet<CallId>,
    last_call: CallId,
    /// Host calls below this index were reported.
    reported: u64,
    is_usable: bool,
}

impl AgentRealm {
    pub fn create(
        code: &AgentCode,
        limits: ScriptLimits,
        surroundings: &Surroundings,
    ) -> Result<Self, ScriptFailure> {
        let mut realm = Realm::new(Arc::new(code.set.clone()), limits, surroundings)?;
        realm.renew_cpu(limits.load_cpu_ms);
        let config = realm.enter(|scope| {
            let config = assemble(scope, code)?;
            let mut copied = copy(&scope.ctx, config.as_value(), limits.config_bytes);
            if let Ok(Some(copied)) = &mut copied {
                keep_argument_order(&scope.ctx, &config, copied);
            }
            scope.driver("setConfig")?.call::<_, ()>((config,))?;
            copied.map_err(|error| {
                let message = format!("the configuration cannot be read: {}", error.message());
                Stop::from(ScriptFailure::new(FailureCode::Exception, message))
            })
        })?;
        Ok(Self {
            realm,
            config: config.unwrap_or(Value::Null),
            calls: BTreeSet::new(),
            last_call: CallId::FLOW,
            reported: 0,
            is_usable: true,
        })
    }

    /// Functions are `{"$fn": true}`, Standard Schemas `{"$standard": true, …}`.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// Calls the function at a JSON pointer into the configuration, for example `/tools/0/handler`.
    pub fn call(
        &mut self,
        path: &str,
        args: &[Argument],
        context: &Map<String, Value>,
        now_ms: i64,
    ) -> (CallId, Vec<CallEvent>) {
        self.begin(now_ms, |scope, call| {
            scope.begin_call(call, (Root::Config, path), args, context)
        })
    }

    /// Validates with the Standard Schema at a JSON pointer. Gives `{value}` or `{issues}`.
    pub fn validate(&mut self, path: &str, value: &Value, now_ms: i64) -> (CallId, Vec<CallEvent>) {
        self.begin(now_ms, |scope, call| {
            scope.begin_validation(call, (Root::Config, path), value)
        })
    }

    /// Answers a host call. An answer to a call that is over is ignored.
    pub fn answer(
        &mut self,
        index: u64,
        answer: Result<&Value, &ErrorData>,
        now_ms: i64,
    ) -> Vec<CallEvent> {
        let waiting = self
            .realm
            .shared
            .state
            .lock()
            .calls
            .get(&index)
            .map(|waiting| waiting.call);
        let Some(call) = waiting else {
            return Vec::new();
        };
        self.realm.set_now(now_ms);
        self.advance(call, |scope| scope.answer(index, answer))
    }

    /// Gives a call up, because its deadline has passed. Its code does not run any more unless another
    /// call settles what it waits for.
    pub fn cancel(&mut self, call: CallId) {
        if self.calls.remove(&call) {
            self.forget(call);
        }
    }

    /// False after a limit was exceeded: its state may be incomplete. The caller finishes or cancels the
    /// calls under way and creates another realm.
    pub fn is_usable(&self) -> bool {
        self.is_usable
    }

    pub fn take_logs(&mut self) -> Vec<LogLine> {
        self.realm.take_logs()
    }

    pub fn heap_bytes(&self) -> u64 {
        self.realm.heap_bytes()
    }

    fn begin(
        &mut self,
        now_ms: i64,
        begin: impl for<'js> FnOnce(&Scope<'js>, CallId) -> Result<(), Stop>,
    ) -> (CallId, Vec<CallEvent>) {
        self.last_call = CallId(self.last_call.0 + 1);
        let call = self.last_call;
        self.calls.insert(call);
        self.realm.set_now(now_ms);
        let events = self.advance(call, |scope| begin(scope, call));
        (call, events)
    }

    fn advance(
        &mut self,
        active: CallId,
        begin: impl for<'js> FnOnce(&Scope<'js>) -> Result<(), Stop>,
    ) -> Vec<CallEvent> {
        self.realm.renew_cpu(self.realm.limits().cpu_ms);
        let calls = self.calls.clone();
        let settled = self.realm.enter(|scope| {
            begin(scope)?;
            scope.run_jobs()?;
            let mut settled = Vec::new();
            for call in calls {
                match scope.outcome_of(call) {
                    Ok(None) => {}
                    Ok(Some(value)) => settled.push((call, Ok(value))),
                    Err(stop) => settled.push((call, Err(scope.failure_of_stop(stop)))),
                }
            }
            Ok(settled)
        });
        let mut settled = settled.unwrap_or_else(|failure| vec![(active, Err(failure))]);
        let mut events = self.new_host_calls();
        if self.realm.shared.state.lock().calls.is_empty() {
            // Nothing can wake the calls that still wait.
            let finished: BTreeSet<CallId> = settled.iter().map(|(call, _)| *call).collect();
            let stuck = self.calls.difference(&finished).copied();
            settled.extend(
                stuck
                    .map(|call| (call, Err(never_settled())))
                    .collect::<Vec<_>>(),
            );
        }
        for (call, outcome) in settled {
            if !self.calls.remove(&call) {
                continue;
            }
            if let Err(failure) = &outcome
                && failure.code == FailureCode::FlowLimit
            {
                self.is_usable = false;
            }
            self.forget(call);
            events.push(CallEvent {
                call,
                kind: CallEventKind::Finished(outcome),
            });
        }
        events
    }

    fn new_host_calls(&mut self) -> Vec<CallEvent> {
        let mut state = self.realm.shared.state.lock();
        let known = &self.calls;
        // A call that was cancelled may still run code when another one wakes it.
        state
            .calls
            .retain(|_, waiting| known.contains(&waiting.call));
        let new = state.calls.range(self.reported..);
        let events = new.map(|(_, waiting)| CallEvent {
            call: waiting.call,
            kind: CallEventKind::HostCall(waiting.clone()),
        });
        let events = events.collect();
        self.reported = state.next_index;
        events
    }

    fn forget(&mut self, call: CallId) {
        let mut state = self.realm.shared.state.lock();
        state.calls.retain(|_, waiting| waiting.call != call);
        drop(state);
        // Only frees memory; a realm that cannot even do that is not used again.
        self.realm.renew_cpu(self.realm.limits().cpu_ms);
        let forgotten = self
            .realm
            .enter(|scope| Ok(scope.driver("forget")?.call::<_, ()>((call.0 as f64,))?));
        self.is_usable &= forgotten.is_ok();
    }
}

/// The scripts that read exports while an agent is loaded.
pub(crate) fn reader<'js>(scope: &Scope<'js>) -> Result<Object<'js>, Stop> {
    let script: Function = scope.ctx.eval(ASSEMBLE)?;
    Ok(script.call((scope.driver_object(),))?)
}

pub(crate) fn assemble<'js>(scope: &Scope<'js>, code: &AgentCode) -> Result<Object<'js>, Stop> {
    let agent = scope.import(&code.set.entry)?;
    let modules = |paths: &[String]| -> Result<Array<'js>, Stop> {
        let list = Array::new(scope.ctx.clone())?;
        for (index, path) in paths.iter().enumerate() {
            let pair = Array::new(scope.ctx.clone())?;
            pair.set(0, crate::load::stem(path))?;
            pair.set(1, scope.import(path)?)?;
            list.set(index, pair)?;
        }
        Ok(list)
    };
    let (tools, commands) = (modules(&code.tools)?, modules(&code.commands)?);
    let assemble: Function = reader(scope)?.get("assemble")?;
    Ok(assemble.call((agent, tools, commands))?)
}

/// Adds to the schemas of commands in which order their properties were written: words are given to them in this
/// order (Z-25).
fn keep_argument_order<'js>(ctx: &Ctx<'js>, config: &Object<'js>, copied: &mut Value) {
    let Some(Value::Object(commands)) = copied.get_mut("commands") else {
        return;
    };
    for (name, command) in commands {
        let Some(args) = command.get_mut("args").and_then(Value::as_object_mut) else {
            continue;
        };
        let written = config.get::<_, Object>("commands");
        let written = written.and_then(|commands| commands.get::<_, Object>(name.as_str()));
        let Ok(schema) = written.and_then(|command| command.get::<_, JsValue>("args")) else {
            ctx.catch();
            continue;
        };
        let Some(order) = property_order(ctx, &schema) else {
            continue;
        };
        let shape = match args.get_mut("jsonSchema") {
            Some(Value::Object(shape)) => shape,
            _ => args,
        };
        shape.entry(PROPERTY_ORDER).or_insert_with(|| order.into());
    }
}

fn never_settled() -> ScriptFailure {
    ScriptFailure::new(
        FailureCode::ForeignAwait,
        "the function waits for a promise that nobody settles",
    )
}
