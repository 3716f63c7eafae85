//! The code of flows as the machine sees it: a function from recorded results to the next effect.

use crate::flow::FlowError;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::conversation::{FlowFailure, FlowRunStart};
use tandem_record::{Object, RunId, Timestamp};

/// What the code is handed to go on with.
#[derive(Debug, Clone, PartialEq)]
pub enum Resume {
    /// The result of the last effect; `None` is undefined.
    Value(Option<Value>),
    /// An error is thrown where the code waits.
    Throw(FlowError),
    /// The result of a context call.
    Host(Result<Option<Value>, FlowError>),
}

/// What the code does next.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramStep {
    /// It yielded a value, which should be an effect.
    Yielded(Value),
    /// It awaits a context call that is not an effect.
    HostCall {
        name: String,
        args: Vec<Value>,
    },
    Returned(Value),
    Failed(FlowFailure),
    /// The code does something else than its journal says.
    Diverged {
        step: u32,
        expected: Value,
        actual: Value,
    },
}

/// The keys of a session, for a function that reads them and may not change anything.
pub type ReadKeys = BTreeMap<String, Value>;

/// The programs of flow runs. An implementation keeps them parked between decisions; a decision
/// that is not committed must drop every program it resumed.
pub trait Programs {
    /// Starts the code of a new run up to its first step.
    fn start(&mut self, start: &FlowRunStart, now: Timestamp) -> ProgramStep;

    /// Goes on with a parked program; `None` when it is not loaded. `context` has the members of
    /// `ctx` that the turn changes, as in the last [`FlowRecord::Segment`] of the journal.
    ///
    /// [`FlowRecord::Segment`]: tandem_record::conversation::FlowRecord::Segment
    fn resume(
        &mut self,
        run: &RunId,
        with: Resume,
        context: &Object,
        now: Timestamp,
    ) -> Option<ProgramStep>;

    /// Validates a reply with the `responseSchema` of the effect at which the program is parked,
    /// where that schema is code. Gives the parsed value or what is wrong; `None` when the program
    /// is not loaded.
    fn check_reply(
        &mut self,
        run: &RunId,
        value: &Value,
        now: Timestamp,
    ) -> Option<Result<Value, Vec<String>>>;

    /// Calls `processBeforeForward` of the effect at which the program is parked. `Err` when it threw, gave no data or
    /// took longer than the timeout; the program is then not kept. `None` when the program is not loaded.
    fn filter_input(
        &mut self,
        run: &RunId,
        input: &Value,
        keys: &ReadKeys,
        timeout_ms: u64,
        now: Timestamp,
    ) -> Option<Result<Value, String>>;

    /// Ends a program so that its `finally` blocks run. Returns what it yielded meanwhile, which
    /// nobody performs; `None` when the program is not loaded.
    fn close(&mut self, run: &RunId) -> Option<Vec<Value>>;
}
