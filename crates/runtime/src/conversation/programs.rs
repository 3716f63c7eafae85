//! The programs of flow runs in this process: parked between turns, and resumed inside decisions.
//!
//! A parked program is a cache. It is valid for the effect at which it waits, which its run and the number of
//! effects so far identify. A decision takes it out; only the commit of the decision puts it back.

use super::agent_host::{AgentHost, FilterFailure, FlowProgram};
use super::settings::SessionSettings;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::session::{ProgramStep, Programs, ReadKeys, Resume};
use tandem_record::conversation::FlowRunStart;
use tandem_record::{Object, RunId, Timestamp};
use tokio::time::Instant;

/// Programs that are parked at once, and their memory. Enough for those who talk now: a program that is not
/// parked is rebuilt from its journal within milliseconds.
const MAX_PARKED: usize = 512;
const MAX_PARKED_BYTES: usize = 32 * 1024 * 1024;
/// A user who has not answered by then may take hours. The program is dropped.
const MAX_IDLE: Duration = Duration::from_secs(60);
/// How often idle programs are looked for.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

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
}

struct ParkedProgram {
    program: Box<dyn FlowProgram>,
    /// The number of effects it has produced.
    steps: u32,
    bytes: usize,
    since: Instant,
}

impl Parked {
    fn remove(&mut self, run: &RunId) -> Option<ParkedProgram> {
        let found = self.programs.remove(run)?;
        self.bytes -= found.bytes;
        Some(found)
    }

    fn remove_oldest(&mut self) -> Option<ParkedProgram> {
        let oldest = self.programs.iter().min_by_key(|(_, parked)| parked.since);
        let run = oldest.map(|(run, _)| run.clone())?;
        self.remove(&run)
    }
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
        let found = self.parked.lock().remove(run)?;
        (found.steps == steps).then_some(found.program)
    }

    fn put(&self, run: RunId, steps: u32, program: Box<dyn FlowProgram>) {
        if self.is_cold {
            return;
        }
        let new = ParkedProgram {
            bytes: program.memory_bytes(),
            program,
            steps,
            since: Instant::now(),
        };
        // An interpreter takes long to free: not while others wait.
        let mut dropped = Vec::new();
        let mut parked = self.parked.lock();
        dropped.extend(parked.remove(&run));
        while parked.programs.len() >= MAX_PARKED || parked.bytes + new.bytes > MAX_PARKED_BYTES {
            match parked.remove_oldest() {
                Some(oldest) => dropped.push(oldest),
                None => break,
            }
        }
        parked.bytes += new.bytes;
        parked.programs.insert(run, new);
        drop(parked);
    }

    fn drop_idle(&self, now: Instant) {
        let is_idle = |parked: &ParkedProgram| now.duration_since(parked.since) >= MAX_IDLE;
        let mut dropped = Vec::new();
        let mut parked = self.parked.lock();
        let idle = parked.programs.iter().filter(|(_, parked)| is_idle(parked));
        let idle: Vec<RunId> = idle.map(|(run, _)| run.clone()).collect();
        dropped.extend(idle.iter().filter_map(|run| parked.remove(run)));
        drop(parked);
    }
}

impl Runtime {
    /// Sessions that are paused for long hold no program.
    pub(crate) async fn drop_idle_programs(self) {
        let Some(conversations) = self.conversations() else {
            return;
        };
        let programs = Arc::clone(&conversations.sessions.settings.programs);
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = tokio::time::sleep(IDLE_CHECK_INTERVAL) => programs.drop_idle(Instant::now()),
            }
        }
    }
}

/// The programs one decision uses. A parked program is taken when its code is to run.
pub(crate) struct DecisionPrograms {
    host: Arc<dyn AgentHost>,
    cache: Arc<ProgramCache>,
    /// The run whose program may be parked, and the effect at which it waits.
    parked: Option<(RunId, u32)>,
    loaded: BTreeMap<RunId, Box<dyn FlowProgram>>,
    /// Programs that a filter left unable to go on.
    lost: BTreeSet<RunId>,
    has_filtered: bool,
}

impl DecisionPrograms {
    pub(crate) fn new(settings: &SessionSettings, parked: Option<(&RunId, u32)>) -> Self {
        Self {
            host: Arc::clone(&settings.agents),
            cache: Arc::clone(&settings.programs),
            parked: parked.map(|(run, steps)| (run.clone(), steps)),
            loaded: BTreeMap::new(),
            lost: BTreeSet::new(),
            has_filtered: false,
        }
    }

    pub(crate) fn load(&mut self, run: RunId, program: Box<dyn FlowProgram>) {
        self.loaded.insert(run, program);
    }

    fn take_parked(&mut self, run: &RunId) {
        if let Some((run, steps)) = self.parked.take_if(|(of, _)| of == run)
            && let Some(program) = self.cache.take(&run, steps)
        {
            self.loaded.insert(run, program);
        }
    }

    fn program(&mut self, run: &RunId) -> Option<&mut Box<dyn FlowProgram>> {
        self.take_parked(run);
        self.loaded.get_mut(run)
    }

    /// Whether a filter of a bridge was asked.
    pub(crate) fn has_filtered(&self) -> bool {
        self.has_filtered
    }

    /// What is left after the decision, for the cache once it is committed.
    pub(crate) fn into_resumed(mut self) -> ResumedPrograms {
        self.loaded.retain(|run, _| !self.lost.contains(run));
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
        Some(self.program(run)?.resume(with, context, now))
    }

    fn check_reply(
        &mut self,
        run: &RunId,
        value: &Value,
        now: Timestamp,
    ) -> Option<Result<Value, Vec<String>>> {
        Some(self.program(run)?.check_reply(value, now))
    }

    fn filter_input(
        &mut self,
        run: &RunId,
        input: &Value,
        keys: &ReadKeys,
        timeout_ms: u64,
        now: Timestamp,
    ) -> Option<Result<Value, String>> {
        if self.lost.contains(run) {
            return Some(Err("the filter could not be called again".to_owned()));
        }
        let answer = self
            .program(run)?
            .filter_input(input, keys, timeout_ms, now);
        self.has_filtered = true;
        Some(answer.map_err(|FilterFailure { message, is_lost }| {
            if is_lost {
                self.lost.insert(run.clone());
            }
            message
        }))
    }

    fn close(&mut self, run: &RunId) -> Option<Vec<Value>> {
        self.take_parked(run);
        let mut program = self.loaded.remove(run)?;
        Some(program.close())
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

    /// The run is left when it is resumed; until then nothing passes.
    fn filter_input(
        &mut self,
        _: &Value,
        _: &ReadKeys,
        _: u64,
        _: Timestamp,
    ) -> Result<Value, FilterFailure> {
        Ok(serde_json::json!({ "forwardToUser": false }))
    }

    fn close(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
