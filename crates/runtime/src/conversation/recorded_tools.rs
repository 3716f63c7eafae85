//! What tools answered in a session, by what they were asked: to the model, and to the code of flows.

use crate::runtime::Runtime;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use tandem_record::conversation::{
    CodeError, CodeOutcome, FlowRecord, SessionEvent, SessionEventBody as Body, SessionWork,
    WorkPurpose,
};
use tandem_record::{Recorded, RunId};
use tandem_store::Fault;

/// Flow runs whose journals are read for the answers their tools got: the last ones.
const MAX_RUNS: usize = 20;

/// A tool's name and its arguments.
type Asked = (String, String);

#[derive(Default)]
pub(super) struct RecordedTools {
    /// The call under way: tools of one turn are called one after the other.
    asked: Option<Asked>,
    /// The last answer to each call.
    answers: HashMap<Asked, Value>,
    /// Calls of flows by run, each with the step of the effect. The journal of the run has the answer.
    of_flows: Vec<(RunId, BTreeMap<u32, Asked>)>,
    /// The last effect of the active flow.
    step: u32,
}

impl RecordedTools {
    pub(super) fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        match &recorded.event.body {
            Body::FlowEffectStarted { step, .. } => self.step = *step,
            Body::WorkRequested(requested) => {
                let SessionWork::Tool { name, args } = &requested.work else {
                    return;
                };
                let asked = (name.clone(), args.to_string());
                match (&requested.purpose, &recorded.event.flow) {
                    (WorkPurpose::FlowTool, Some(flow)) => {
                        self.ask_in_flow(&flow.flow_run_id, asked);
                    }
                    _ => self.asked = Some(asked),
                }
            }
            Body::ToolAnswered {
                name,
                content,
                failed: false,
                ..
            } => {
                let asked = self.asked.take_if(|(asked, _)| asked == name);
                if let Some(asked) = asked {
                    let value = serde_json::from_str(content);
                    let value = value.unwrap_or_else(|_| Value::from(content.as_str()));
                    self.answers.insert(asked, value);
                }
            }
            _ => {}
        }
    }

    fn ask_in_flow(&mut self, run: &RunId, asked: Asked) {
        let calls = match self.of_flows.iter().position(|(of, _)| of == run) {
            Some(at) => &mut self.of_flows[at].1,
            None => {
                if self.of_flows.len() == MAX_RUNS {
                    self.of_flows.remove(0);
                }
                self.of_flows.push((run.clone(), BTreeMap::new()));
                let last = self.of_flows.last_mut();
                &mut last.expect("one was added").1
            }
        };
        calls.insert(self.step, asked);
    }

    /// Reads what the tools of flows answered.
    pub(super) async fn read_flows(&mut self, runtime: &Runtime) -> Result<(), Fault> {
        for (run, mut calls) in std::mem::take(&mut self.of_flows) {
            for record in runtime.flow_journal(&run).await? {
                let FlowRecord::Result {
                    step,
                    value: Some(value),
                    error: None,
                } = record.event
                else {
                    continue;
                };
                if let Some(asked) = calls.remove(&step).filter(|_| !is_failure(&value)) {
                    self.answers.insert(asked, value);
                }
            }
        }
        Ok(())
    }

    pub(super) fn answer(&self, name: &str, args: &Value) -> CodeOutcome {
        match self.answers.get(&(name.to_owned(), args.to_string())) {
            Some(value) => CodeOutcome {
                value: Some(value.clone()),
                ..CodeOutcome::default()
            },
            None => CodeOutcome {
                error: Some(CodeError {
                    code: "not_recorded".to_owned(),
                    message: format!("no answer of {name} to this was recorded"),
                }),
                ..CodeOutcome::default()
            },
        }
    }
}

/// What a flow gets of a tool that failed, where its author asked for a value.
fn is_failure(value: &Value) -> bool {
    value["ok"] == false && value["code"].is_string() && value["message"].is_string()
}
