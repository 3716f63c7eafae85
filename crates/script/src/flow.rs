//! One execution of a flow: a generator in a realm of its own, driven step by step (Z-208).
//!
//! The instance performs nothing and remembers nothing that the caller does not tell it again: the same
//! source set, start and answers give the same steps. `next` is called after an effect was performed,
//! `answer` after a host call was. When a limit is exceeded the instance is unusable.

use crate::failure::{ErrorData, FailureCode, ScriptFailure};
use crate::function_call::{Argument, Root, json_text};
use crate::generator::{Moved, find_flow, moved};
use crate::host_call::{CallId, HostCall};
use crate::limits::ScriptLimits;
use crate::realm::{LogLine, Realm, Scope, Stop, Surroundings};
use crate::source_set::SourceSet;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a flow does next.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowStep {
    /// The flow yielded an object. Functions in it are `{"$fn": true}`; the flow is parked.
    Effect(Value),
    /// The flow yielded something that cannot be an effect (Z-49). It is parked; the caller throws a
    /// `bad_effect` into it.
    NotAnEffect {
        problem: String,
    },
    /// The flow waits for these calls, in program order. All that have no answer yet are listed. An
    /// effect or an end that follows them is reported after the last answer.
    HostCalls(Vec<HostCall>),
    /// The function returned this.
    Ended(Value),
    /// The flow was closed. The effects that it still yielded are not to be performed (Z-63).
    Closed {
        ignored: Vec<Value>,
        failure: Option<ScriptFailure>,
    },
    Failed(ScriptFailure),
}

/// What a function of a parked effect does next.
#[derive(Debug, Clone, PartialEq)]
pub enum ParkedCallStep {
    HostCalls(Vec<HostCall>),
    Returned(Value),
    Failed(ScriptFailure),
}

/// How a flow run begins.
#[derive(Debug, Clone)]
pub struct FlowStart<'a> {
    pub flow_id: &'a str,
    /// Data members of `ctx`: `input`, `user`, `session`, `inbound` and so on.
    pub context: &'a Map<String, Value>,
    pub surroundings: &'a Surroundings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// At an effect, or before the first step.
    Parked,
    /// Between two effects: host calls wait for answers.
    Running,
    Closing,
    Finished,
}

pub struct FlowInstance {
    realm: Realm,
    phase: Phase,
    /// A step that is reported when all host calls made before it are answered.
    held: Option<FlowStep>,
    /// Effects yielded while closing.
    ignored: Vec<Value>,
    last_call: CallId,
}

impl FlowInstance {
    /// Evaluates the modules and calls the flow function. Its body begins with the first `next`.
    pub fn create(
        set: Arc<SourceSet>,
        limits: ScriptLimits,
        start: &FlowStart<'_>,
    ) -> Result<Self, ScriptFailure> {
        let mut realm = Realm::new(set, limits, start.surroundings)?;
        realm.renew_cpu(limits.load_cpu_ms);
        realm.enter(|scope| {
            let (run, registered) = find_flow(scope, start.flow_id)?;
            let context = json_text(start.context)?;
            let begun = scope
                .driver("start")?
                .call::<_, ()>((run, context, registered));
            Ok(begun?)
        })?;
        realm.renew_cpu(limits.cpu_ms);
        Ok(Self {
            realm,
            phase: Phase::Parked,
            held: None,
            ignored: Vec::new(),
            last_call: CallId::FLOW,
        })
    }

    /// Changes data members of `ctx`, for example `inbound` when another turn drives the run.
    pub fn update_context(&mut self, patch: &Map<String, Value>) -> Result<(), ScriptFailure> {
        self.realm.enter(|scope| {
            let patch = json_text(patch)?;
            Ok(scope.driver("update")?.call::<_, ()>((patch,))?)
        })
    }

    /// The time of the last journal record (Z-207).
    pub fn set_now(&mut self, now_ms: i64) {
        self.realm.set_now(now_ms);
    }

    /// Resumes the flow with the result of its effect. `None` is `undefined`, as for the first step.
    pub fn next(&mut self, result: Option<&Value>) -> FlowStep {
        let result = result.map(Value::to_string);
        if let Some(failure) = result.as_deref().and_then(|text| self.too_large(text)) {
            return self.fail(failure);
        }
        self.resume(|scope| Ok(scope.driver("next")?.call::<_, ()>((result,))?))
    }

    /// Resumes the flow with an error at its effect.
    pub fn throw(&mut self, error: &ErrorData) -> FlowStep {
        self.resume(|scope| {
            let error = json_text(error)?;
            Ok(scope.driver("throwInto")?.call::<_, ()>((error,))?)
        })
    }

    /// Answers one host call. Calls are answered in the order in which the caller records them.
    pub fn answer(&mut self, index: u64, answer: Result<&Value, &ErrorData>) -> FlowStep {
        if !self.is_waiting_for(CallId::FLOW, index) {
            return self.fail(not_waiting(index));
        }
        if let Ok(value) = answer
            && let Some(failure) = self.too_large(&value.to_string())
        {
            return self.fail(failure);
        }
        self.advance(|scope| scope.answer(index, answer))
    }

    /// Ends the flow where it is parked, so that its `finally` blocks run (Z-63).
    pub fn close(&mut self) -> FlowStep {
        let waiting: Vec<u64> = self
            .outstanding(CallId::FLOW)
            .iter()
            .map(|c| c.index)
            .collect();
        if self.phase == Phase::Finished {
            return self.closed(None);
        }
        self.phase = Phase::Closing;
        self.held = None;
        self.realm.renew_cpu(self.realm.limits().cpu_ms);
        let closed = ErrorData::new("FlowClosed", "closed", "the flow was closed");
        self.advance(|scope| {
            scope.driver("close")?.call::<_, ()>(())?;
            for index in waiting {
                scope.answer(index, Err(&closed))?;
            }
            Ok(())
        })
    }

    /// Calls a function inside the effect at which the flow is parked, for example
    /// `/processBeforeForward`. Its `ctx` reads and cannot act (Z-219).
    pub fn call_parked_fn(&mut self, path: &str, args: &[Argument]) -> ParkedCallStep {
        self.call_parked_fn_within(path, args, u64::MAX)
    }

    /// The same with less CPU time than the limits allow.
    pub fn call_parked_fn_within(
        &mut self,
        path: &str,
        args: &[Argument],
        cpu_ms: u64,
    ) -> ParkedCallStep {
        let data = Map::new();
        self.parked_call(cpu_ms, |scope, call| {
            scope.begin_call(call, (Root::Parked, path), args, &data)
        })
    }

    /// Validates with the Standard Schema inside the parked effect. Gives `{value}` or `{issues}`.
    pub fn validate_parked(&mut self, path: &str, value: &Value) -> ParkedCallStep {
        self.parked_call(u64::MAX, |scope, call| {
            scope.begin_validation(call, (Root::Parked, path), value)
        })
    }

    /// Validates the input of the flow with the Standard Schema it is registered with. Gives `{value}` or
    /// `{issues}`; `None` when its schema is not code.
    pub fn validate_input(&mut self, input: &Value) -> Option<ParkedCallStep> {
        let mut has_schema = true;
        let step = self.parked_call(u64::MAX, |scope, call| {
            has_schema = scope.validates(call, (Root::Registration, "/inputSchema"), input)?;
            match has_schema {
                true => Ok(()),
                false => Err(ScriptFailure::new(FailureCode::Exception, "no schema").into()),
            }
        });
        has_schema.then_some(step)
    }

    /// Answers a host call of the function that [`Self::call_parked_fn`] called.
    pub fn answer_parked(
        &mut self,
        index: u64,
        answer: Result<&Value, &ErrorData>,
    ) -> ParkedCallStep {
        if !self.is_waiting_for(self.last_call, index) {
            return ParkedCallStep::Failed(not_waiting(index));
        }
        self.advance_parked_call(|scope| scope.answer(index, answer))
    }

    /// False once the flow ended, failed or exceeded a limit.
    pub fn is_usable(&self) -> bool {
        self.phase != Phase::Finished
    }

    /// Lines of `console` since the last time. The caller drops those of a replay.
    pub fn take_logs(&mut self) -> Vec<LogLine> {
        self.realm.take_logs()
    }

    pub fn heap_bytes(&self) -> u64 {
        self.realm.heap_bytes()
    }

    fn resume(&mut self, begin: impl for<'js> FnOnce(&Scope<'js>) -> Result<(), Stop>) -> FlowStep {
        if self.phase != Phase::Parked {
            let message = "the flow is not parked at an effect";
            return self.fail(ScriptFailure::new(FailureCode::Exception, message));
        }
        self.phase = Phase::Running;
        self.realm.renew_cpu(self.realm.limits().cpu_ms);
        self.advance(begin)
    }

    fn advance(
        &mut self,
        begin: impl for<'js> FnOnce(&Scope<'js>) -> Result<(), Stop>,
    ) -> FlowStep {
        let has_held = self.held.is_some();
        let is_closing = self.phase == Phase::Closing;
        let room = self.realm.limits().closing_effects;
        let ignored = &mut self.ignored;
        let moved = self.realm.enter(|scope| {
            begin(scope)?;
            loop {
                scope.run_jobs()?;
                if has_held {
                    return Ok(Moved::Waits);
                }
                let moved = moved(scope, is_closing)?;
                // While closing, an effect is noted and the generator goes on to its end.
                let Moved::Did(FlowStep::Effect(effect)) = moved else {
                    return Ok(moved);
                };
                if !is_closing {
                    return Ok(Moved::Did(FlowStep::Effect(effect)));
                }
                if ignored.len() == room {
                    let message =
                        format!("the flow yielded more than {room} effects while closing");
                    return Err(ScriptFailure::new(FailureCode::FlowLimit, message).into());
                }
                ignored.push(effect);
                scope.driver("next")?.call::<_, ()>(())?;
            }
        });
        match moved {
            Err(failure) => self.failed(failure),
            Ok(Moved::Did(step)) => self.report(step),
            Ok(Moved::Waits) => self.wait(),
        }
    }

    fn wait(&mut self) -> FlowStep {
        let outstanding = self.outstanding(CallId::FLOW);
        if !outstanding.is_empty() {
            return FlowStep::HostCalls(outstanding);
        }
        match self.held.take() {
            Some(step) => self.report(step),
            None => self.failed(foreign_await()),
        }
    }

    fn report(&mut self, step: FlowStep) -> FlowStep {
        let outstanding = self.outstanding(CallId::FLOW);
        if !outstanding.is_empty() {
            self.held = Some(step);
            return FlowStep::HostCalls(outstanding);
        }
        match step {
            FlowStep::Effect(_) | FlowStep::NotAnEffect { .. } => self.phase = Phase::Parked,
            FlowStep::Failed(failure) => return self.failed(failure),
            FlowStep::Ended(_) if self.phase == Phase::Closing => return self.closed(None),
            FlowStep::Ended(_) | FlowStep::Closed { .. } => self.phase = Phase::Finished,
            FlowStep::HostCalls(_) => {}
        }
        step
    }

    fn failed(&mut self, failure: ScriptFailure) -> FlowStep {
        if self.phase == Phase::Closing {
            return self.closed(Some(failure));
        }
        self.fail(failure)
    }

    fn fail(&mut self, failure: ScriptFailure) -> FlowStep {
        self.phase = Phase::Finished;
        self.held = None;
        FlowStep::Failed(failure)
    }

    fn closed(&mut self, failure: Option<ScriptFailure>) -> FlowStep {
        self.phase = Phase::Finished;
        FlowStep::Closed {
            ignored: std::mem::take(&mut self.ignored),
            failure,
        }
    }

    fn parked_call(
        &mut self,
        cpu_ms: u64,
        begin: impl for<'js> FnOnce(&Scope<'js>, CallId) -> Result<(), Stop>,
    ) -> ParkedCallStep {
        if self.phase != Phase::Parked {
            let message = "the flow is not parked at an effect";
            return ParkedCallStep::Failed(ScriptFailure::new(FailureCode::Exception, message));
        }
        self.forget_parked_call();
        self.last_call = CallId(self.last_call.0 + 1);
        let call = self.last_call;
        self.realm.renew_cpu(self.realm.limits().cpu_ms.min(cpu_ms));
        self.advance_parked_call(|scope| begin(scope, call))
    }

    fn advance_parked_call(
        &mut self,
        begin: impl for<'js> FnOnce(&Scope<'js>) -> Result<(), Stop>,
    ) -> ParkedCallStep {
        let call = self.last_call;
        let outcome = self.realm.enter(|scope| {
            begin(scope)?;
            scope.run_jobs()?;
            scope.outcome_of(call)
        });
        let step = match outcome {
            Ok(Some(value)) => ParkedCallStep::Returned(value),
            Ok(None) => {
                let outstanding = self.outstanding(call);
                if !outstanding.is_empty() {
                    return ParkedCallStep::HostCalls(outstanding);
                }
                ParkedCallStep::Failed(foreign_await())
            }
            Err(failure) => {
                if failure.code == FailureCode::FlowLimit {
                    self.phase = Phase::Finished;
                }
                ParkedCallStep::Failed(failure)
            }
        };
        self.forget_parked_call();
        step
    }

    fn forget_parked_call(&mut self) {
        let call = self.last_call;
        if call != CallId::FLOW {
            let mut state = self.realm.shared.state.lock();
            state.calls.retain(|_, waiting| waiting.call != call);
        }
    }

    fn too_large(&self, result: &str) -> Option<ScriptFailure> {
        let limit = self.realm.limits().value_bytes;
        (result.len() > limit).then(|| {
            let message = format!("a result is larger than {limit} bytes");
            ScriptFailure::new(FailureCode::FlowLimit, message)
        })
    }

    fn outstanding(&self, call: CallId) -> Vec<HostCall> {
        let state = self.realm.shared.state.lock();
        let calls = state.calls.values().filter(|waiting| waiting.call == call);
        calls.cloned().collect()
    }

    fn is_waiting_for(&self, call: CallId, index: u64) -> bool {
        let state = self.realm.shared.state.lock();
        state
            .calls
            .get(&index)
            .is_some_and(|waiting| waiting.call == call)
    }
}

fn foreign_await() -> ScriptFailure {
    ScriptFailure::new(
        FailureCode::ForeignAwait,
        "the code waits for a promise that nobody settles; await only calls of ctx, and yield effects",
    )
}

fn not_waiting(index: u64) -> ScriptFailure {
    let message = format!("no host call {index} waits for an answer");
    ScriptFailure::new(FailureCode::Exception, message)
}
