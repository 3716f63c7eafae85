//! The code of a flow run in Rust, as the runtime drives it.

use serde_json::Value;
use std::time::{Duration, Instant};
use tandem_engine::session::{ProgramStep, Resume};
use tandem_flow::{FlowTask, RustFlow};
use tandem_record::conversation::{FlowFailure, FlowRunStart};
use tandem_record::{Object, Timestamp};
use tandem_runtime::conversation::{FilterFailure, FlowProgram, ReadKeys};

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
    fn resume(&mut self, with: Resume, context: &Object, now: Timestamp) -> ProgramStep {
        self.0.resume(with, context, now)
    }

    /// A schema of a flow in Rust is JSON Schema, which the engine validates itself.
    fn check_reply(&mut self, value: &Value, _: Timestamp) -> Result<Value, Vec<String>> {
        Ok(value.clone())
    }

    /// Nothing stops code that is trusted: whatever took too long is not used.
    fn filter_input(
        &mut self,
        input: &Value,
        keys: &ReadKeys,
        timeout_ms: u64,
        _: Timestamp,
    ) -> Result<Value, FilterFailure> {
        let began = Instant::now();
        let answer = self.0.filter_input(input, keys);
        let took_too_long = began.elapsed() > Duration::from_millis(timeout_ms);
        let answer = match took_too_long {
            true => Err(format!("the filter took longer than {timeout_ms} ms")),
            false => answer,
        };
        answer.map_err(|message| FilterFailure {
            message,
            is_lost: false,
        })
    }

    fn close(&mut self) -> Vec<Value> {
        self.0.close()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
