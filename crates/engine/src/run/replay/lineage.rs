//! What a run records about its source.

use crate::run::state::Run;
use tandem_record::Seq;

impl Run {
    /// The first of the run's own events; those below it were copied from the source.
    pub fn fork_point(&self) -> Seq {
        self.state.lifecycle.fork_point()
    }
}
