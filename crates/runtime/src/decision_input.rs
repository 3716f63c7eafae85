//! The input of a decision, in a form that can be sent to another thread.

use crate::definitions::DecisionLookups;
use crate::offload::StopOnDrop;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use std::borrow::Cow;
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_engine::run::{
    self, Context, Decision, ForkSource, MAX_DECISION_WORK, Need, Run, TreePlaces, Undecided,
    WorkMeter,
};
use tandem_record::{
    Cause, Command, Event, ParentLink, Partition, RecordedEvent, RunId, RunRequest, TenantId,
    Timestamp,
};
use tandem_store::Fault;

/// Limit of lookups for one decision. A replay starts over after each child run.
const MAX_LOOKUPS: usize = 512;
/// Work that a decision may do on the threads that serve everybody: about two milliseconds.
const INLINE_WORK: u64 = 2_000_000;

pub(crate) enum DecisionInput<'a> {
    Command {
        run: Cow<'a, Run>,
        command: Cow<'a, Command>,
    },
    Creation {
        definition: Arc<Definition>,
        run_id: RunId,
        request: Cow<'a, RunRequest>,
        cause: Option<Cause>,
    },
    Fork {
        definition: Arc<Definition>,
        run_id: RunId,
        log: Arc<Vec<RecordedEvent>>,
        request: Cow<'a, RunRequest>,
    },
}

impl DecisionInput<'_> {
    fn decide(&self, runtime: &Runtime, cx: &Context<'_>) -> Result<Decision, Undecided> {
        match self {
            Self::Command { run, command } => run::decide(run, command, cx),
            Self::Creation {
                definition,
                run_id,
                request,
                cause,
            } => {
                let request = request.as_ref().clone();
                run::create(definition, run_id.clone(), request, cause.clone(), cx)
            }
            Self::Fork {
                definition,
                run_id,
                log,
                request,
            } => {
                let clean = |event: &Event| runtime.redacted_event(event);
                let source = ForkSource {
                    log,
                    request: request.as_ref().clone(),
                    redact: &clean,
                };
                run::fork(definition, run_id.clone(), &source, cx)
            }
        }
    }

    /// The run at the top of the tree that the decision may add runs to.
    fn tree_root(&self) -> RunId {
        match self {
            Self::Command { run, .. } => run.tree_root(),
            Self::Creation {
                run_id, request, ..
            }
            | Self::Fork {
                run_id, request, ..
            } => {
                let parent = request.parent.as_ref();
                parent.map_or(run_id, ParentLink::tree_root).clone()
            }
        }
    }

    /// Whether that tree has no other run yet.
    fn is_new_tree(&self) -> bool {
        match self {
            Self::Command { run, .. } => run.is_alone_in_tree(),
            Self::Creation { request, .. } | Self::Fork { request, .. } => request.parent.is_none(),
        }
    }

    /// What the decision may do where there is time for it. A replay repeats what its source did in many
    /// decisions.
    fn meter(&self) -> WorkMeter {
        match self {
            Self::Fork { request, .. } if request.is_replay() => WorkMeter::unlimited(),
            // The events it copies are charged too.
            Self::Fork { .. } => WorkMeter::with_hard_limit(4 * MAX_DECISION_WORK),
            Self::Command { .. } | Self::Creation { .. } => {
                WorkMeter::with_hard_limit(MAX_DECISION_WORK)
            }
        }
    }

    fn to_owned(&self) -> DecisionInput<'static> {
        match self {
            Self::Command { run, command } => DecisionInput::Command {
                run: Cow::Owned(run.as_ref().clone()),
                command: Cow::Owned(command.as_ref().clone()),
            },
            Self::Creation {
                definition,
                run_id,
                request,
                cause,
            } => DecisionInput::Creation {
                definition: Arc::clone(definition),
                run_id: run_id.clone(),
                request: Cow::Owned(request.as_ref().clone()),
                cause: cause.clone(),
            },
            Self::Fork {
                definition,
                run_id,
                log,
                request,
            } => DecisionInput::Fork {
                definition: Arc::clone(definition),
                run_id: run_id.clone(),
                log: Arc::clone(log),
                request: Cow::Owned(request.as_ref().clone()),
            },
        }
    }
}

impl Runtime {
    /// What a decision may read.
    pub(crate) fn context<'a>(
        &'a self,
        now: Timestamp,
        lookups: &'a DecisionLookups,
        work: &'a WorkMeter,
    ) -> Context<'a> {
        Context {
            now,
            limits: self.limits(),
            agents: &self.inner.config.agents,
            notices: &self.inner.config.notices,
            conformance: self.inner.config.conformance,
            definitions: lookups,
            memory: lookups,
            providers: self.providers(),
            packs: self.packs(),
            model_answers: lookups,
            tools: self.tools(),
            places: lookups.places,
            work,
        }
    }

    /// Decides, loading each definition the engine turns out to need. A decision with much work is
    /// made off the threads that serve everybody.
    pub(crate) async fn decide_with_lookups(
        &self,
        owner: &Partition,
        input: &DecisionInput<'_>,
    ) -> Result<Decision, SubmitError> {
        let mut lookups = DecisionLookups::default();
        let now = self.clock().now();
        let mut reserved = self.inner.run_trees.reservation(input.tree_root());
        // A fork copies a log before it decides anything.
        let mut heavy = matches!(input, DecisionInput::Fork { .. });
        for _ in 0..MAX_LOOKUPS {
            let decided = if heavy {
                Box::pin(self.decide_offloaded(&owner.tenant, input, now, &mut lookups)).await?
            } else {
                let work = WorkMeter::with_limit(INLINE_WORK);
                input.decide(self, &self.context(now, &lookups, &work))
            };
            match decided {
                Ok(decision) => {
                    reserved.use_places(decision.children.len());
                    return Ok(decision);
                }
                Err(Undecided::Refused(refusal)) => return Err(refusal.into()),
                Err(Undecided::Needs(Need::MoreWork)) => heavy = true,
                Err(Undecided::Needs(Need::Workflow(workflow))) => {
                    // Boxed: a rare path must not enlarge a future that is created for every
                    // request.
                    let found = Box::pin(self.current_definition(owner, &workflow)).await?;
                    lookups.workflows.insert(workflow, found);
                }
                Err(Undecided::Needs(Need::Places(needed))) => {
                    // Some more: each time, the decision starts over.
                    let wanted = needed.saturating_mul(2);
                    let is_new = input.is_new_tree() && reserved.places() == 0;
                    let more = self.reserve_places(&owner.tenant, &mut reserved, wanted, is_new);
                    Box::pin(more).await?;
                    lookups.places = TreePlaces {
                        reserved: reserved.places(),
                        is_full: reserved.places() < needed,
                    };
                }
                Err(Undecided::Needs(Need::Memory(need))) => {
                    Box::pin(self.look_up_memory(&owner.tenant, *need, &mut lookups)).await?;
                }
                Err(Undecided::Needs(Need::Model(need))) => {
                    let answer = Box::pin(self.replay_model_answer(&need)).await?;
                    lookups.model_answers.insert(need.effect, answer);
                }
            }
        }
        let message = format!("a decision needs more than {MAX_LOOKUPS} lookups");
        Err(Fault::permanent("too_many_lookups", message).into())
    }

    async fn decide_offloaded(
        &self,
        tenant: &TenantId,
        input: &DecisionInput<'_>,
        now: Timestamp,
        lookups: &mut DecisionLookups,
    ) -> Result<Result<Decision, Undecided>, Fault> {
        let (runtime, input) = (self.clone(), input.to_owned());
        let looked_up = std::mem::take(lookups);
        let stop = StopOnDrop::default();
        let meter = input.meter().stopped_by(stop.flag());
        let work = move || {
            let work = meter;
            let decided = input.decide(&runtime, &runtime.context(now, &looked_up, &work));
            (decided, looked_up)
        };
        let offload = &self.inner.decision_work;
        let done = async { offload.acquire(Some(tenant)).await.run(work).await };
        let (decided, looked_up) = self.with_deadline(done).await?;
        *lookups = looked_up;
        Ok(decided)
    }
}
