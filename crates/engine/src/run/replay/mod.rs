//! Forks: new runs that share the beginning of another run's log.
//!
//! Events below the fork point are copied from the source under the same sequence numbers. The
//! events after it come from execution. A branch continues for real from the state at that point. A
//! replay repeats what can be repeated and copies the recorded events of the rest. A replay is made
//! by one decision: it ends in the decision that creates it and performs no effects.
//!
//! Invariants:
//! - The source is only read.
//! - One decision, and so one commit, makes a fork; there is no partial fork.
//! - A replay has no effects and no timers; two replays of one point differ in nothing but ids.

mod branch;
mod copy;
mod draft;
mod lineage;
mod replayer;

use crate::definition::Definition;
use crate::node::Kind;
use crate::run::children::flow_results;
use crate::run::decide::{check_served, create};
use crate::run::draft::{Context, Decision, DecisionDraft};
use crate::run::lifecycle::{check_options, too_much_to_check};
use crate::run::refusal::{Refusal, Undecided};
use crate::run::state::Run;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{Event, ForkMode, NodeId, RecordedEvent, Reply, RunId, RunRequest, Seq};

pub(super) use draft::ReplayDraft;

/// The input of a fork.
pub struct ForkSource<'a> {
    /// The source's whole log, as it is stored.
    pub log: &'a [RecordedEvent],
    /// The request for the fork; its `forked_from` says where and how it forks.
    pub request: RunRequest,
    /// Redacts an event as the log stores it. The source's events passed through it, so a replay's
    /// events are redacted before they are compared with them.
    pub redact: &'a (dyn Fn(&Event) -> Event + Sync),
}

/// Decides a fork under the id `run_id`. The fork point must lie within the source's log.
pub fn fork(
    def: &Arc<Definition>,
    run_id: RunId,
    source: &ForkSource<'_>,
    cx: &Context<'_>,
) -> Result<Decision, Undecided> {
    cx.within_work_limit(
        |cx| decide_fork(def, run_id.clone(), source, cx),
        |_| Err(too_much_to_check().into()),
    )
}

fn decide_fork(
    def: &Arc<Definition>,
    run_id: RunId,
    source: &ForkSource<'_>,
    cx: &Context<'_>,
) -> Result<Decision, Undecided> {
    let own = with_flow_results(def, source);
    let source = own.as_ref().unwrap_or(source);
    let forked = source.request.forked_from.as_ref();
    let forked = forked.expect("a fork says where it comes from");
    let mut problems = check_options(&source.request.options);
    if forked.mode == ForkMode::Branch {
        check_served(def, &source.request, cx)?;
        problems.extend(cx.providers.check_options(&source.request.options));
    }
    problems.extend(def.check_configurable(&source.request.options, cx.work));
    if !problems.is_empty() {
        // The source's own options were valid.
        for problem in &mut problems {
            problem.path.insert_str(0, "/runOptionsOverlay");
        }
        return Err(Refusal::Invalid(problems).into());
    }
    let from = forked.from_seq;
    if forked.mode == ForkMode::Branch && from == Seq(0) {
        return create(def, run_id, source.request.clone(), None, cx);
    }
    let log = copy::copy_with_own_ids(def, &run_id, source);
    let draft = DecisionDraft::new(&Run::new(run_id, Arc::clone(def)), cx);
    match forked.mode {
        ForkMode::Branch => branch::branch(draft, log, from),
        ForkMode::Replay => replayer::replay(draft, &log, from, source.redact),
    }
    .into_decision(Reply::Accepted)
}

/// The source with what its flows gave, if it has nodes that start flows.
fn with_flow_results<'a>(def: &Definition, source: &ForkSource<'a>) -> Option<ForkSource<'a>> {
    let is_flow = |node: &NodeId| {
        let ix = def.index(node);
        ix.is_some_and(|ix| matches!(def.nodes[ix].kind, Kind::ChatFlow(_)))
    };
    if !def.nodes.iter().any(|node| is_flow(&node.id)) {
        return None;
    }
    let mut request = source.request.clone();
    if let Some(forked) = &mut request.forked_from {
        forked
            .flow_results
            .extend(flow_results(is_flow, source.log));
    }
    Some(ForkSource {
        log: source.log,
        request,
        redact: source.redact,
    })
}

impl DecisionDraft<'_> {
    /// Whether executing the node again gives the same result.
    pub(super) fn is_repeatable(&self, ix: usize) -> bool {
        let config = &self.run.def.doc_node(ix).config;
        let declared = config.get("nondeterministic") == Some(&Value::Bool(true));
        self.run.def.nodes[ix].kind.is_repeatable() && !declared
    }
}

/// A sequence number as an index into a log.
fn log_index(seq: Seq) -> usize {
    usize::try_from(seq.0).expect("a log in memory is indexed by its sequences")
}
