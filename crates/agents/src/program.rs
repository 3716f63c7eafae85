//! The code of one flow run in its sandbox, as the engine drives it.
//!
//! A run of the code is a function of its package, its start and what it was handed. So everything that the
//! code can see (time, message of the turn, results) is set here and nowhere else, for a live run as for one
//! that is rebuilt from its journal.

use crate::flow_package::FlowPackage;
use crate::tool_call::issue_texts;
use serde_json::{Value, json};
use std::cell::Cell;
use tandem_engine::flow::{FlowError, not_an_effect};
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::conversation::{FlowFailure, FlowRunStart};
use tandem_record::{Object, RunId, Timestamp};
use tandem_runtime::conversation::{FilterFailure, FlowProgram, ReadKeys};
use tandem_script::{
    Argument, ErrorData, FlowInstance, FlowStart, FlowStep, ParkedCallStep, ScriptFailure,
    ScriptLimits, Surroundings,
};

/// Resumptions after which the heap is measured again: that walks through all of it and takes longer than a step.
const RESUMED_BETWEEN_MEASURES: u32 = 32;

/// A flow that is closed may try so many calls of `ctx`.
const MAX_CALLS_WHILE_CLOSING: usize = 100;
/// A filter may read so many keys.
const MAX_CALLS_OF_FILTER: usize = 1_000;

pub(crate) struct ScriptProgram {
    run: RunId,
    instance: FlowInstance,
    /// The size of the heap when it was measured last, and resumptions since then.
    measured: Cell<Option<usize>>,
    resumed: u32,
    /// The host call whose answer the engine gives next.
    asked: Option<u64>,
    /// Lines of `console` are written to the log. A replay wrote them before.
    pub(crate) is_live: bool,
}

impl ScriptProgram {
    /// Runs the code up to its first step.
    pub(crate) fn start(
        package: &FlowPackage,
        limits: ScriptLimits,
        start: &FlowRunStart,
        now: Timestamp,
        is_live: bool,
    ) -> Result<(Self, ProgramStep), FlowFailure> {
        let surroundings = Surroundings {
            now_ms: now.0,
            seed: start.seed.to_be_bytes().to_vec(),
            time_zone: package.time_zone.clone(),
        };
        let context = context(package, start);
        let flow = FlowStart {
            flow_id: start.flow_id.as_str(),
            context: &context,
            surroundings: &surroundings,
        };
        let instance =
            FlowInstance::create(package.sources.clone(), limits, &flow).map_err(failure)?;
        let mut program = Self {
            run: start.run_id.clone(),
            instance,
            measured: Cell::new(None),
            resumed: 0,
            asked: None,
            is_live,
        };
        program.parse_input(start)?;
        let first = program.instance.next(None);
        let step = program.translate(first);
        Ok((program, step))
    }

    /// A schema that is code may change the input, for example fill in defaults. The code sees the result.
    fn parse_input(&mut self, start: &FlowRunStart) -> Result<(), FlowFailure> {
        let input = start.input.as_ref().unwrap_or(&Value::Null);
        let Some(step) = self.instance.validate_input(input) else {
            return Ok(());
        };
        self.log();
        let parsed = validated(step).map_err(|problems| FlowFailure {
            code: "invalid_input".to_owned(),
            message: problems.join("; "),
            details: None,
        })?;
        let patch = Object::from_iter([("input".to_owned(), parsed)]);
        self.instance.update_context(&patch).map_err(failure)
    }

    fn translate(&mut self, step: FlowStep) -> ProgramStep {
        self.log();
        match step {
            FlowStep::Effect(effect) => ProgramStep::Yielded(effect),
            FlowStep::NotAnEffect { problem } => ProgramStep::Yielded(not_an_effect(&problem)),
            FlowStep::HostCalls(calls) => {
                // The others are named again after this one is answered.
                let Some(call) = calls.into_iter().next() else {
                    return ProgramStep::Failed(misuse("waits for no call"));
                };
                self.asked = Some(call.index);
                ProgramStep::HostCall {
                    name: call.name,
                    args: call.args,
                }
            }
            FlowStep::Ended(value) => ProgramStep::Returned(value),
            FlowStep::Failed(why) => ProgramStep::Failed(failure(why)),
            FlowStep::Closed { .. } => ProgramStep::Failed(misuse("was closed")),
        }
    }

    fn log(&mut self) {
        for line in self.instance.take_logs() {
            if self.is_live {
                tracing::info!(run = %self.run, level = line.level, "{}", line.text);
            }
        }
    }
}

impl FlowProgram for ScriptProgram {
    fn resume(&mut self, with: Resume, context: &Object, now: Timestamp) -> ProgramStep {
        self.resumed += 1;
        if self.resumed.is_multiple_of(RESUMED_BETWEEN_MEASURES) {
            self.measured.set(None);
        }
        self.instance.set_now(now.0);
        if let Err(why) = self.instance.update_context(context) {
            return ProgramStep::Failed(failure(why));
        }
        let step = match with {
            Resume::Value(value) => self.instance.next(value.as_ref()),
            Resume::Throw(error) => self.instance.throw(&error_data(error)),
            Resume::Host(answer) => {
                let Some(index) = self.asked.take() else {
                    return ProgramStep::Failed(misuse("asked for nothing"));
                };
                match answer {
                    Ok(value) => {
                        let value = value.unwrap_or(Value::Null);
                        self.instance.answer(index, Ok(&value))
                    }
                    Err(error) => self.instance.answer(index, Err(&error_data(error))),
                }
            }
        };
        self.translate(step)
    }

    fn check_reply(&mut self, value: &Value, now: Timestamp) -> Result<Value, Vec<String>> {
        self.instance.set_now(now.0);
        let step = self.instance.validate_parked("/responseSchema", value);
        self.log();
        validated(step)
    }

    fn filter_input(
        &mut self,
        input: &Value,
        keys: &ReadKeys,
        timeout_ms: u64,
        now: Timestamp,
    ) -> Result<Value, FilterFailure> {
        self.instance.set_now(now.0);
        let args = [Argument::Data(input.clone()), Argument::Context];
        let mut step =
            self.instance
                .call_parked_fn_within("/processBeforeForward", &args, timeout_ms);
        for _ in 0..MAX_CALLS_OF_FILTER {
            self.log();
            let call = match step {
                ParkedCallStep::Returned(decision) => return Ok(decision),
                ParkedCallStep::Failed(why) => return Err(self.filter_failure(why.message)),
                ParkedCallStep::HostCalls(calls) => calls.into_iter().next(),
            };
            let Some(call) = call else { break };
            let answer = match call.name.as_str() {
                "session.kv.get" => {
                    let key = call.args.first().and_then(Value::as_str);
                    key.and_then(|key| keys.get(key)).cloned()
                }
                "session.kv.all" => Some(json!(keys)),
                _ => None,
            };
            let answer = answer.unwrap_or_default();
            step = self.instance.answer_parked(call.index, Ok(&answer));
        }
        let why = format!("the filter made more than {MAX_CALLS_OF_FILTER} calls of ctx");
        Err(self.filter_failure(why))
    }

    /// Calls of `ctx` are not made, as effects are not performed. The code goes on to its end with `null`.
    fn close(&mut self) -> Vec<Value> {
        let mut step = self.instance.close();
        let mut calls = Vec::new();
        loop {
            self.log();
            let call = match step {
                FlowStep::HostCalls(waiting) if calls.len() < MAX_CALLS_WHILE_CLOSING => {
                    waiting.into_iter().next()
                }
                FlowStep::Closed { ignored, failure } => {
                    if let Some(failure) = failure {
                        tracing::debug!(run = %self.run, %failure, "a flow failed while it was closed");
                    }
                    calls.extend(ignored);
                    return calls;
                }
                _ => None,
            };
            let Some(call) = call else {
                return calls;
            };
            calls.push(json!({"type": "call", "name": call.name, "args": call.args}));
            step = self.instance.answer(call.index, Ok(&Value::Null));
        }
    }

    fn memory_bytes(&self) -> usize {
        if let Some(bytes) = self.measured.get() {
            return bytes;
        }
        let bytes = usize::try_from(self.instance.heap_bytes()).unwrap_or(usize::MAX);
        self.measured.set(Some(bytes));
        bytes
    }
}

impl ScriptProgram {
    fn filter_failure(&self, message: String) -> FilterFailure {
        FilterFailure {
            message,
            is_lost: !self.instance.is_usable(),
        }
    }
}

/// What a Standard Schema made of a value: the parsed value, or what is wrong with it.
fn validated(step: ParkedCallStep) -> Result<Value, Vec<String>> {
    match step {
        ParkedCallStep::Returned(mut checked) => match checked.get("issues") {
            Some(issues) => Err(vec![issue_texts(issues)]),
            None => Ok(checked["value"].take()),
        },
        ParkedCallStep::HostCalls(_) => Err(vec!["a schema cannot call the context".to_owned()]),
        ParkedCallStep::Failed(why) => Err(vec![why.message]),
    }
}

/// The data members of `ctx`. All of them are in the journal or in the package.
fn context(package: &FlowPackage, start: &FlowRunStart) -> Object {
    let mut context = start.context.clone();
    let mut put = |name: &str, value: Value| context.insert(name.to_owned(), value);
    put("agentId", json!(start.agent_id));
    put("flowId", json!(start.flow_id));
    put("flowRunId", json!(start.run_id));
    put("language", json!(package.language));
    if let Some(config) = &package.config {
        put("config", (**config).clone());
    }
    if let Some(input) = &start.input {
        put("input", input.clone());
    }
    context
}

pub(crate) fn error_data(error: FlowError) -> ErrorData {
    ErrorData {
        name: error.name.as_str().to_owned(),
        code: Some(error.code),
        message: error.message,
        fields: error.extra,
    }
}

fn failure(why: ScriptFailure) -> FlowFailure {
    let position = why.position;
    FlowFailure {
        code: why.code.as_str().to_owned(),
        message: why.message,
        details: position.map(|position| json!(position)),
    }
}

/// The program is driven in a way it cannot follow.
fn misuse(what: &str) -> FlowFailure {
    FlowFailure {
        code: "exception".to_owned(),
        message: format!("the flow {what}"),
        details: None,
    }
}
