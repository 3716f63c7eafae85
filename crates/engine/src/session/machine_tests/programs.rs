//! Code of flows and functions of the agent, written as Rust closures.

use crate::session::{ProgramStep, Programs, ReadKeys, Resume};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;
use tandem_record::conversation::{CodeCall, CodeError, CodeOutcome, FlowRunStart};
use tandem_record::{Object, RunId, Timestamp};

/// One step of a flow's code: from what it is handed to what it does next.
pub(super) type Code = Rc<dyn Fn(usize, &Resume, &Value) -> ProgramStep>;

/// A function of the agent.
pub(super) type Function = Box<dyn Fn(&CodeCall) -> CodeOutcome>;

/// `processBeforeForward` of the effects of a flow.
pub(super) type Filter = Rc<dyn Fn(&Value) -> Result<Value, String>>;

#[derive(Default)]
pub(super) struct TestPrograms {
    pub(super) code: BTreeMap<String, Code>,
    running: BTreeMap<RunId, (Code, usize, Value)>,
    /// What the code was told with each result.
    pub(super) contexts: Vec<Object>,
    /// The filter of bridges, and what it was asked with which keys.
    pub(super) filter: Option<Filter>,
    pub(super) filtered: Vec<(Value, ReadKeys)>,
    /// Runs whose code was changed.
    pub(super) diverges: BTreeMap<RunId, ProgramStep>,
}

impl Programs for TestPrograms {
    fn start(&mut self, start: &FlowRunStart, _now: Timestamp) -> ProgramStep {
        let code = self.code[start.flow_id.as_str()].clone();
        let input = start.input.clone().unwrap_or_default();
        let step = code(0, &Resume::Value(None), &input);
        self.running.insert(start.run_id.clone(), (code, 0, input));
        step
    }

    fn resume(
        &mut self,
        run: &RunId,
        with: Resume,
        context: &Object,
        _now: Timestamp,
    ) -> Option<ProgramStep> {
        self.contexts.push(context.clone());
        if let Some(step) = self.diverges.get(run) {
            return Some(step.clone());
        }
        let (code, at, input) = self.running.get_mut(run)?;
        *at += 1;
        Some(code(*at, &with, input))
    }

    /// A schema in code that takes numbers only.
    fn check_reply(
        &mut self,
        _run: &RunId,
        value: &Value,
        _now: Timestamp,
    ) -> Option<Result<Value, Vec<String>>> {
        Some(match value.is_number() {
            true => Ok(json!({ "parsed": value })),
            false => Err(vec!["not a number".to_owned()]),
        })
    }

    fn filter_input(
        &mut self,
        run: &RunId,
        input: &Value,
        keys: &ReadKeys,
        _timeout_ms: u64,
        _now: Timestamp,
    ) -> Option<Result<Value, String>> {
        if self.diverges.contains_key(run) {
            return Some(Ok(json!({})));
        }
        self.filtered.push((input.clone(), keys.clone()));
        let filter = self.filter.as_ref();
        Some(filter.map_or_else(|| Ok(json!({})), |filter| filter(input)))
    }

    fn close(&mut self, run: &RunId) -> Option<Vec<Value>> {
        if !self.diverges.contains_key(run) {
            self.running.remove(run);
        }
        Some(Vec::new())
    }
}

/// Code that returned a value.
pub(super) fn value(value: Value) -> CodeOutcome {
    CodeOutcome {
        value: Some(value),
        ..CodeOutcome::default()
    }
}

/// Code that failed.
pub(super) fn failed(code: &str, message: &str) -> CodeOutcome {
    CodeOutcome {
        error: Some(CodeError {
            code: code.to_owned(),
            message: message.to_owned(),
        }),
        ..CodeOutcome::default()
    }
}

pub(super) fn code(step: impl Fn(usize, &Resume, &Value) -> ProgramStep + 'static) -> Code {
    Rc::new(step)
}

pub(super) fn effect(effect: Value) -> ProgramStep {
    ProgramStep::Yielded(effect)
}

pub(super) fn done() -> ProgramStep {
    ProgramStep::Returned(Value::Null)
}

/// The text a program was handed.
pub(super) fn text_of(with: &Resume) -> String {
    match with {
        Resume::Value(Some(Value::String(text))) => text.clone(),
        Resume::Value(Some(other)) => other.to_string(),
        Resume::Throw(error) => error.code.clone(),
        other => format!("{other:?}"),
    }
}
