//! The programs of flow runs in this process: parked between turns, and resumed inside decisions.
//!
//! A parked program is a cache. It is valid for the effect at which it waits, which its run and the number of
//! effects so far identify. A decision takes it out; only the commit of the decision puts it back.

use super::agent_host::{AgentHost, FlowProgram};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use tandem_engine::session::{ProgramStep, Programs, Resume};
use tandem_record::conversation::FlowRunStart;
use tandem_record::{Object, RunId, Timestamp};

/// Programs that are parked at once, and their memory.
const MAX_PARKED: usize = 512;
const MAX_PARKED_BYTES: usize = 96 * 1024 * 1024;

/// Parked programs by run.
pub(crate) struct ProgramCache {
    parked: Mutex<Parked>,
    /// Programs are dropped after each turn, for tests.
    is_cold: bool,
}

#[derive(Default)]
struct Parked {
    programs: HashMap<RunId, ParkedProgram>,
    bytes: usize,
    uses: u64,
}

struct ParkedProgram {
    program: Box<dyn FlowProgram>,
    /// The number of effects it has produced.
    steps: u32,
    bytes: usize,
    used: u64,
}

impl ProgramCache {
    pub(crate) fn new(is_cold: bool) -> Self {
        Self {
            parked: Mutex::default(),
            is_cold,
        }
    }

    /// The program of a run that waits at this effect.
    fn take(&self, run: &RunId, steps: u32) -> Option<Box<dyn FlowProgram>> {
        let mut parked = self.parked.lock();
        let found = parked.programs.remove(run)?;
        parked.bytes -= found.bytes;
        (found.steps == steps).then_some(found.program)
    }

    fn put(&self, run: RunId, steps: u32, program: Box<dyn FlowProgram>) {
        if self.is_cold {
            return;
        }
        let bytes = program.memory_bytes();
        let mut parked = self.parked.lock();
        while parked.programs.len() >= MAX_PARKED || parked.bytes + bytes > MAX_PARKED_BYTES {
            let oldest = parked.programs.iter().min_by_key(|(_, p)| p.used);
            let Some(run) = oldest.map(|(run, _)| run.clone()) else {
                break;
            };
            if let Some(evicted) = parked.programs.remove(&run) {
                parked.bytes -= evicted.bytes;
            }
        }
        parked.uses += 1;
        let used = parked.uses;
        parked.bytes += bytes;
        let new = ParkedProgram {
            program,
            steps,
            bytes,
            used,
        };
        if let Some(replaced) = parked.programs.insert(run, new) {
            parked.bytes -= replaced.bytes;
        }
    }
}

/// The programs one decision uses.
pub(crate) struct DecisionPrograms {
    host: Arc<dyn AgentHost>,
    loaded: BTreeMap<RunId, Box<dyn FlowProgram>>,
}

impl DecisionPrograms {
    pub(crate) fn new(host: &Arc<dyn AgentHost>) -> Self {
        Self {
            host: Arc::clone(host),
            loaded: BTreeMap::new(),
        }
    }

    pub(crate) fn load(&mut self, run: RunId, program: Box<dyn FlowProgram>) {
        self.loaded.insert(run, program);
    }

    /// Takes the parked program of a run, if it waits at this effect.
    pub(crate) fn take_parked(&mut self, cache: &ProgramCache, run: &RunId, steps: u32) {
        if let Some(program) = cache.take(run, steps) {
            self.load(run.clone(), program);
        }
    }

    /// What is left after the decision, for the cache once it is committed.
    pub(crate) fn into_resumed(self) -> ResumedPrograms {
        ResumedPrograms(Arc::new(Mutex::new(self.loaded)))
    }
}

impl Programs for DecisionPrograms {
    fn start(&mut self, start: &FlowRunStart, now: Timestamp) -> ProgramStep {
        match self.host.start_program(start, now) {
            Ok((program, step)) => {
                self.loaded.insert(start.run_id.clone(), program);
                step
            }
            Err(failure) => ProgramStep::Failed(failure),
        }
    }

    fn resume(
        &mut self,
        run: &RunId,
        with: Resume,
        context: &Object,
        now: Timestamp,
    ) -> Option<ProgramStep> {
        let program = self.loaded.get_mut(run)?;
        Some(program.resume(with, context, now))
    }

    fn check_reply(
        &mut self,
        run: &RunId,
        value: &Value,
        now: Timestamp,
    ) -> Option<Result<Value, Vec<String>>> {
        let program = self.loaded.get_mut(run)?;
        Some(program.check_reply(value, now))
    }

    fn close(&mut self, run: &RunId) -> Vec<Value> {
        let closed = self.loaded.remove(run);
        closed.map_or_else(Vec::new, |mut program| program.close())
    }
}

/// Programs that a decision resumed. Dropped with the decision unless it is committed.
#[derive(Clone, Default)]
pub(crate) struct ResumedPrograms(Arc<Mutex<BTreeMap<RunId, Box<dyn FlowProgram>>>>);

impl ResumedPrograms {
    /// Parks the program of the active run; others have ended.
    pub(crate) fn park(&self, cache: &ProgramCache, active: Option<(&RunId, u32)>) {
        let mut programs = std::mem::take(&mut *self.0.lock());
        if let Some((run, steps)) = active
            && let Some(program) = programs.remove(run)
        {
            cache.put(run.clone(), steps, program);
        }
    }
}

impl fmt::Debug for ResumedPrograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.lock().keys()).finish()
    }
}

/// Stands for a program whose code no longer fits its journal: the flow diverges when it is resumed.
pub(crate) struct DivergedProgram(pub(crate) ProgramStep);

impl FlowProgram for DivergedProgram {
    fn resume(&mut self, _: Resume, _: &Object, _: Timestamp) -> ProgramStep {
        self.0.clone()
    }

    /// The reply is handed on as it is; the run is left when it is resumed.
    fn check_reply(&mut self, value: &Value, _: Timestamp) -> Result<Value, Vec<String>> {
        Ok(value.clone())
    }

    fn close(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
