//! The input of a decision, in a form that can be sent to another thread.

use crate::definitions::DecisionLookups;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use std::borrow::Cow;
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_engine::run::{self, Context, Decision, ForkSource, Need, Run, SchemaMeter, Undecided};
use tandem_record::{
    Cause, Command, Event, Partition, RecordedEvent, RunId, RunRequest, Timestamp,
};
use tandem_store::Fault;

/// Limit of lookups for one decision. A replay starts over after each child run.
const MAX_LOOKUPS: usize = 512;
/// Schema work that a decision may do on the threads that serve all requests: about two
/// milliseconds.
const INLINE_SCHEMA_WORK: u64 = 2_000_000;

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
            Self::Command { run, command } => run::decide(run, command.as_ref().clone(), cx),
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
        schema_work: &'a SchemaMeter,
    ) -> Context<'a> {
        Context {
            now,
            limits: self.limits(),
            agents: &self.inner.config.agents,
            conformance: self.inner.config.conformance,
            definitions: lookups,
            memory: lookups,
            providers: self.providers(),
            packs: self.packs(),
            model_answers: lookups,
            tools: self.tools(),
            schema_work,
        }
    }

    /// Decides, and loads each definition the engine needs. A decision with much schema work runs
    /// outside the threads that serve all requests.
    pub(crate) async fn decide_with_lookups(
        &self,
        owner: &Partition,
        input: &DecisionInput<'_>,
    ) -> Result<Decision, SubmitError> {
        let mut lookups = DecisionLookups::default();
        let now = self.clock().now();
        let mut heavy = false;
        for _ in 0..MAX_LOOKUPS {
            let decided = if heavy {
                Box::pin(self.decide_offloaded(input, now, &mut lookups)).await?
            } else {
                let work = SchemaMeter::with_limit(INLINE_SCHEMA_WORK);
                input.decide(self, &self.context(now, &lookups, &work))
            };
            match decided {
                Ok(decision) => return Ok(decision),
                Err(Undecided::Refused(refusal)) => return Err(refusal.into()),
                Err(Undecided::Needs(Need::SchemaWork)) => heavy = true,
                Err(Undecided::Needs(Need::Workflow(workflow))) => {
                    let store = &**self.store();
                    let definitions = &self.inner.definitions;
                    // Boxed: a rare path must not enlarge a future that is created for every
                    // request.
                    let found = Box::pin(definitions.current(store, owner, &workflow)).await?;
                    lookups.workflows.insert(workflow, found);
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
        input: &DecisionInput<'_>,
        now: Timestamp,
        lookups: &mut DecisionLookups,
    ) -> Result<Result<Decision, Undecided>, Fault> {
        let (runtime, input) = (self.clone(), input.to_owned());
        let looked_up = std::mem::take(lookups);
        let work = move || {
            let work = SchemaMeter::unlimited();
            let decided = input.decide(&runtime, &runtime.context(now, &looked_up, &work));
            (decided, looked_up)
        };
        let offload = &self.inner.schema_work;
        let done = async { offload.acquire().await.run(work).await };
        let (decided, looked_up) = self.with_deadline(done).await?;
        *lookups = looked_up;
        Ok(decided)
    }
}
