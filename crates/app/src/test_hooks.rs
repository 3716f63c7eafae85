//! Test hooks: the clock, named crash points, and the answers of the mock model. Entry points offer them only
//! where the operator enabled them.

use crate::app::App;
use crate::error::AppError;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_record::NodeId;
use tandem_runtime::{CrashPoints, MAX_PROGRAM, MockEntry, MockProgram};

const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_NODE_ID_CHARS: usize = 256;

impl App {
    /// Moves the clock and waits until all that was due is done. Returns whether it was done in time.
    pub async fn advance_clock(&self, caller: &Identity, ms: i64) -> Result<bool, AppError> {
        caller.require_scope(Scope::Test)?;
        self.runtime().advance_clock(ms).await?;
        Ok(self.runtime().wait_until_idle(SETTLE_TIMEOUT).await?)
    }

    /// The process dies when it reaches the point.
    pub fn arm_crash(&self, caller: &Identity, point: &str) -> Result<(), AppError> {
        caller.require_scope(Scope::Test)?;
        let points = self.runtime().crash_points();
        if !points.arm(point) {
            let message = format!("must be one of {}", CrashPoints::ALL.join(", "));
            return Err(AppError::invalid("/point", message));
        }
        points.reach("now");
        Ok(())
    }

    /// Programs the answers of the mock model for nodes with this id, one per call.
    pub async fn program_mock_model(
        &self,
        caller: &Identity,
        node: &str,
        program: Vec<MockEntry>,
    ) -> Result<(), AppError> {
        caller.require_scope(Scope::Test)?;
        if node.is_empty() || node.chars().count() > MAX_NODE_ID_CHARS {
            let message = format!("must have 1 to {MAX_NODE_ID_CHARS} characters");
            return Err(AppError::invalid("/nodeId", message));
        }
        if program.len() > MAX_PROGRAM {
            let message = format!("must have at most {MAX_PROGRAM} entries");
            return Err(AppError::invalid("/program", message));
        }
        let node = NodeId::new(node);
        let program = MockProgram::new(program);
        Ok(self.runtime().program_mock(&node, program).await?)
    }
}
