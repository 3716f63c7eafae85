//! The code of a flow run in Rust, as the runtime drives it.

use serde_json::{Value, json};
use tandem_engine::session::{ProgramStep, Resume};
use tandem_flow::{FlowTask, RustFlow};
use tandem_record::conversation::{FlowFailure, FlowRunStart};
use tandem_record::{Object, Timestamp};
use tandem_runtime::conversation::FlowProgram;

pub(crate) struct RustProgram(FlowTask);

impl RustProgram {
    /// Runs the code up to its first step.
    pub(crate) fn start(
        flow: &RustFlow,
        start: &FlowRunStart,
        now: Timestamp,
        is_live: bool,
    ) -> Result<(Self, ProgramStep), FlowFailure> {
        let (task, step) = FlowTask::start(flow, start, now, is_live)?;
        Ok((Self(task), step))
    }

    /// The replay is over: lines of the flow are written to the log.
    pub(crate) fn go_live(&mut self) {
        self.0.go_live();
    }
}

impl FlowProgram for RustProgram {
    fn resume(&mut self, with: Resume, inbound: Option<&Value>, now: Timestamp) -> ProgramStep {
        let patch = Object::from_iter([("inbound".to_owned(), json!(inbound))]);
        self.0.resume(with, &patch, now)
    }

    fn close(&mut self) -> Vec<Value> {
        self.0.close()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
