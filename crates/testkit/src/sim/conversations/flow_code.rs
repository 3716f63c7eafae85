//! The code of flows: a function of its start and of everything it is handed. Whatever it is handed goes into
//! the texts it yields, so that code that is rebuilt and handed something else diverges.

use super::agents::Step;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use tandem_engine::flow::FlowError;
use tandem_engine::session::{ProgramStep, Resume, SEGMENT_MEMBERS};
use tandem_record::conversation::{FlowFailure, FlowRecord, FlowRunStart};
use tandem_record::{Object, Recorded, Timestamp};
use tandem_runtime::conversation::{FilterFailure, FlowProgram, ReadKeys, RebuildError};

/// The key that [`Step::Count`] counts in.
pub(super) const COUNTED: &str = "counted";

/// How the failure of a flow begins whose journal the code cannot follow.
pub(super) const UNUSABLE: &str = "the journal";

pub(super) struct FlowCode {
    steps: Arc<[Step]>,
    /// The first part of every text.
    name: String,
    at: usize,
    /// What [`Step::Count`] read, once it has.
    counted: Option<u64>,
    /// `ctx` as the code sees it: a turn replaces members of it.
    context: Object,
    /// Of everything the code was handed.
    seen: DefaultHasher,
}

impl FlowCode {
    pub(super) fn start(
        steps: &Arc<[Step]>,
        start: &FlowRunStart,
        now: Timestamp,
    ) -> (Self, ProgramStep) {
        let mut code = Self {
            steps: Arc::clone(steps),
            name: format!("{} {}", start.owner.tenant, start.flow_id),
            at: 0,
            counted: None,
            context: start.context.clone(),
            seen: DefaultHasher::new(),
        };
        code.see(&json!([start.input, start.seed, start.context]), now);
        let first = code.step();
        (code, first)
    }

    /// Runs the code again from its journal, as the host of a real agent does.
    pub(super) fn rebuild(
        steps: &Arc<[Step]>,
        journal: &[Recorded<FlowRecord>],
    ) -> Result<Self, RebuildError> {
        let Some(FlowRecord::Started(start)) = journal.first().map(|first| &first.event) else {
            return Err(unusable("does not begin with a start"));
        };
        let (mut code, step) = Self::start(steps, start, journal[0].at);
        let mut next = Some(step);
        let members = SEGMENT_MEMBERS.iter();
        let mut context: Object = members
            .filter_map(|name| start.context.get_key_value(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        for record in &journal[1..] {
            let with = match (&record.event, next.take()) {
                (FlowRecord::Effect { effect, .. }, Some(ProgramStep::Yielded(actual)))
                    if *effect == actual =>
                {
                    continue;
                }
                (FlowRecord::Effect { step, effect, .. }, actual) => {
                    return Err(RebuildError::Diverged {
                        step: *step,
                        expected: effect.clone(),
                        actual: json!(format!("{actual:?}")),
                    });
                }
                (FlowRecord::Result { value, error, .. }, None) => match error {
                    Some(error) => Resume::Throw(thrown(error)?),
                    None => Resume::Value(value.clone()),
                },
                (FlowRecord::Host { value, error, .. }, Some(ProgramStep::HostCall { .. })) => {
                    Resume::Host(match error {
                        Some(error) => Err(thrown(error)?),
                        None => Ok(value.clone()),
                    })
                }
                (FlowRecord::Segment { context: turn, .. }, waits) => {
                    context.clone_from(turn);
                    next = waits;
                    continue;
                }
                (
                    FlowRecord::Paused { .. }
                    | FlowRecord::Resumed { .. }
                    | FlowRecord::Hook { .. },
                    waits,
                ) => {
                    next = waits;
                    continue;
                }
                (other, waits) => {
                    return Err(unusable(&format!("has {other:?} at {waits:?}")));
                }
            };
            next = Some(code.resume(with, &context, record.at));
        }
        match next {
            None => Ok(code),
            Some(extra) => Err(RebuildError::Diverged {
                step: u32::MAX,
                expected: Value::Null,
                actual: beyond(&extra),
            }),
        }
    }

    fn see(&mut self, what: &Value, now: Timestamp) {
        what.to_string().hash(&mut self.seen);
        now.0.hash(&mut self.seen);
    }

    fn text(&self) -> String {
        format!("{} {} {:08x}", self.name, self.at, self.seen.finish() >> 32)
    }

    fn step(&self) -> ProgramStep {
        let Some(step) = self.steps.get(self.at) else {
            return ProgramStep::Returned(Value::Null);
        };
        let text = self.text();
        let reminders = |reminds: bool| match reminds {
            true => json!([{"afterSeconds": 1, "text": text}, {"afterSeconds": 20, "text": text}]),
            false => json!([]),
        };
        ProgramStep::Yielded(match step {
            Step::Say => json!({"type": "say", "text": text}),
            Step::Ask { reminds } => json!({"type": "ask", "key": format!("k{}", self.at),
                "text": text, "reminders": reminders(*reminds)}),
            Step::Confirm { seconds, reminds } => json!({"type": "interrupt.confirm",
                "question": text, "timeoutSeconds": seconds, "reminders": reminders(*reminds)}),
            Step::Tool(name) => json!({"type": "tool", "name": name, "args": {"for": text},
                "onError": if self.at.is_multiple_of(2) { "return" } else { "throw" }}),
            Step::Sleep { seconds } => json!({"type": "interrupt.wait", "waitFor": "timeout",
                "timeoutSeconds": seconds}),
            Step::Escalate { seconds, approvals } => json!({"type": "interrupt.escalate",
                "mode": "async_resolution", "reason": text, "timeoutSeconds": seconds,
                "requiredApprovals": approvals}),
            Step::Takeover { seconds } => json!({"type": "interrupt.escalate",
                "mode": "live_takeover", "reason": text, "timeoutSeconds": seconds}),
            Step::AwaitHandback { seconds: None } => {
                json!({"type": "interrupt.wait", "waitFor": "live_handback"})
            }
            Step::AwaitHandback { seconds } => json!({"type": "interrupt.wait",
                "waitFor": "live_handback", "timeoutSeconds": seconds}),
            Step::Bridge(bridge) => json!({"type": "interrupt.proxy.start",
                "target": bridge.target, "mode": bridge.mode, "replace": bridge.replace,
                "timeoutSeconds": bridge.seconds}),
            Step::AwaitInput {
                seconds,
                behavior,
                filters,
            } => json!({"type": "interrupt.proxy.wait", "timeoutSeconds": seconds,
                "timeoutBehavior": behavior, "timeoutMessageToUser": text,
                "processBeforeForward": filters.then(|| json!({"$fn": true}))}),
            Step::StopBridge => json!({"type": "interrupt.proxy.stop"}),
            Step::AwaitAdmin { seconds: None } => {
                json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})
            }
            Step::AwaitAdmin { seconds } => json!({"type": "interrupt.wait",
                "waitFor": "admin_resolution", "timeoutSeconds": seconds}),
            Step::Workflow {
                id,
                waits,
                seconds,
                cancels,
            } => {
                let mut effect = json!({"type": "workflow.run", "workflowId": id, "wait": waits,
                    "input": {"v": text}, "cancelOnTimeout": cancels});
                if let Some(seconds) = seconds {
                    effect["timeoutSeconds"] = json!(seconds);
                }
                effect
            }
            Step::Count => {
                let (name, args) = match self.counted {
                    None => ("session.kv.get", vec![json!(COUNTED)]),
                    Some(count) => ("session.kv.set", vec![json!(COUNTED), json!(count + 1)]),
                };
                let name = name.to_owned();
                return ProgramStep::HostCall { name, args };
            }
            Step::ConsumeQueued => {
                let name = "consumeQueued".to_owned();
                return ProgramStep::HostCall { name, args: vec![] };
            }
            Step::EndSession => {
                let name = "endSession".to_owned();
                return ProgramStep::HostCall { name, args: vec![] };
            }
            Step::Nonsense => json!({"type": "nonsense", "text": text}),
            Step::Handoff(to) => json!({"type": "handoff", "to": to, "input": {"from": text}}),
            Step::End => json!({"type": "end", "reason": "enough"}),
            Step::Fail => {
                return ProgramStep::Failed(FlowFailure {
                    code: "exception".to_owned(),
                    message: text,
                    details: None,
                });
            }
        })
    }
}

impl FlowProgram for FlowCode {
    fn resume(&mut self, with: Resume, context: &Object, now: Timestamp) -> ProgramStep {
        let handed = match &with {
            Resume::Value(value) => json!({ "value": value }),
            Resume::Throw(error) => json!({ "thrown": error }),
            Resume::Host(answer) => json!({"host": format!("{answer:?}")}),
        };
        let turn = context.iter();
        let turn = turn.map(|(name, value)| (name.clone(), value.clone()));
        self.context.extend(turn);
        self.see(&json!([handed, self.context]), now);
        let counts = matches!(self.steps.get(self.at), Some(Step::Count));
        match (with, self.counted) {
            (Resume::Host(Ok(value)), None) if counts => {
                self.counted = Some(value.and_then(|v| v.as_u64()).unwrap_or(0));
            }
            _ => {
                self.counted = None;
                self.at += 1;
            }
        }
        self.step()
    }

    fn check_reply(&mut self, value: &Value, _: Timestamp) -> Result<Value, Vec<String>> {
        Ok(value.clone())
    }

    fn filter_input(
        &mut self,
        input: &Value,
        _: &ReadKeys,
        _: u64,
        _: Timestamp,
    ) -> Result<Value, FilterFailure> {
        let mut seen = DefaultHasher::new();
        input.to_string().hash(&mut seen);
        let roll = seen.finish() % 8;
        match roll {
            0 | 1 => Err(FilterFailure {
                message: "not this one".to_owned(),
                is_lost: roll == 0,
            }),
            2 => Ok(json!({"forwardToUser": false})),
            3 => Ok(json!({"forwardToUser": true, "text": format!("{} filtered", self.name)})),
            4 => Ok(json!({"endProxy": true, "reason": "filtered"})),
            _ => Ok(json!({})),
        }
    }

    fn close(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn memory_bytes(&self) -> usize {
        1_024
    }
}

fn thrown(error: &Value) -> Result<FlowError, RebuildError> {
    serde_json::from_value(error.clone())
        .map_err(|_| unusable("holds an error that cannot be thrown"))
}

/// What the code did at the end of its journal, as strict mode is told.
fn beyond(step: &ProgramStep) -> Value {
    match step {
        ProgramStep::Yielded(effect) => effect.clone(),
        ProgramStep::HostCall { name, .. } => json!({ "call": name }),
        ProgramStep::Returned(value) => json!({ "returned": value }),
        ProgramStep::Failed(failure) => json!({ "failed": failure }),
        ProgramStep::Diverged { actual, .. } => actual.clone(),
    }
}

fn unusable(what: &str) -> RebuildError {
    RebuildError::Failed(FlowFailure {
        code: "exception".to_owned(),
        message: format!("{UNUSABLE} {what}"),
        details: None,
    })
}
