//! Forks of a harness's run, each in a harness of its own.

use super::RunHarness;
use crate::run::{Decision, ForkSource, Need, Undecided, fork};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_record::{ForkMode, ForkedFrom, RunId, RunRequest, Seq};
use tandem_schema::Meter;

impl RunHarness {
    /// A fork of this run, in its own harness.
    pub(in crate::run::tests) fn fork(&self, mode: ForkMode, from: u64) -> Self {
        let (request, decided) = self.try_fork(mode, from);
        self.staged(request, decided.expect("it can be forked"))
    }

    /// What has to be looked up before this run can be forked.
    pub(in crate::run::tests) fn fork_needs(&self, mode: ForkMode, from: u64) -> Need {
        match self.try_fork(mode, from).1 {
            Err(Undecided::Needs(need)) => need,
            other => panic!("{other:?} needs nothing"),
        }
    }

    fn try_fork(&self, mode: ForkMode, from: u64) -> (RunRequest, Result<Decision, Undecided>) {
        let mut request = self.run().request().clone();
        request.parent = None;
        request.options = self.request.options.clone();
        request.forked_from = Some(Box::new(ForkedFrom {
            run_id: self.run().id().clone(),
            from_seq: Seq(from),
            mode,
            at: self.now,
            source_began_at: None,
            flow_results: BTreeMap::new(),
        }));
        let source = ForkSource {
            log: &self.log,
            request: request.clone(),
            redact: &Clone::clone,
        };
        let id = RunId::new("run-fork");
        let decided = fork(&self.def, id, &source, &self.context());
        (request, decided)
    }

    fn staged(&self, request: RunRequest, decision: Decision) -> Self {
        let mut forked = Self {
            def: Arc::clone(&self.def),
            workflows: self.workflows.clone(),
            limits: self.limits,
            agents: self.agents.clone(),
            notices: self.notices.clone(),
            conformance: self.conformance,
            now: self.now,
            providers: self.providers.clone(),
            tools: self.tools.clone(),
            packs: self.packs.clone(),
            replayed_answer: self.replayed_answer.clone(),
            work: Meter::unlimited(),
            request,
            run: None,
            log: Vec::new(),
            timers: BTreeMap::new(),
            outbox: BTreeMap::new(),
            created_children: BTreeMap::new(),
            unread: Vec::new(),
        };
        forked.take(decision);
        forked
    }
}
