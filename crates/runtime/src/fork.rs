//! Forking: reads the source's log once, lets the engine compute the whole fork, and writes it in
//! one commit. All refusals happen before anything is written.

use crate::audit_actions::AuditAction;
use crate::codec;
use crate::decision_input::DecisionInput;
use crate::fold_stream::FOLD_PAGE;
use crate::offload::{INLINE_BYTES, OffloadPermit, in_place};
use crate::runtime::Runtime;
use crate::start_run::RunStart;
use crate::submit::{IdempotencyRequest, SubmitError};
use std::borrow::Cow;
use std::sync::Arc;
use tandem_record::{
    Event, ForkMode, ForkedFrom, MemoryBase, MemoryOrigin, Object, Partition, RecordedEvent, RunId,
    RunOptions, RunRequest, Seq, StreamId, TraceContext,
};
use tandem_store::{Fault, StoredRun};

/// Size limit of a log that can be forked: a fork copies all of it in one commit.
const MAX_SOURCE_BYTES: usize = 64 * 1024 * 1024;

/// A request for a fork.
pub struct ForkRequest {
    pub mode: ForkMode,
    pub from_seq: Seq,
    /// Merged over the source's options. For branches only.
    pub overlay: RunOptions,
    pub trace: Option<TraceContext>,
    /// The caller has the role that permits conformance types in any workflow.
    pub conformance_role: bool,
}

/// Why a run cannot be forked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unforkable {
    #[error("the run has no event {from_seq}; its last one is {last}")]
    BeyondEnd { from_seq: Seq, last: Seq },
    #[error("the run's log has more than {MAX_SOURCE_BYTES} bytes, too many for a fork")]
    TooLarge,
    #[error("what the run remembered at event {from_seq} is not kept any more")]
    NotRetained {
        source_run: RunId,
        from_seq: Seq,
        /// `retention_expired` or `event_log_unavailable`.
        reason: &'static str,
    },
}

/// A log to fork.
struct SourceLog {
    events: Vec<RecordedEvent>,
    /// What started the run.
    request: Option<RunRequest>,
    /// Held until the fork of a large log is committed.
    permit: Option<OffloadPermit>,
}

impl Runtime {
    /// Forks a run the caller may see. The fork is durable and complete when this returns.
    pub async fn fork_run(
        &self,
        source: &StoredRun,
        fork_request: ForkRequest,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<RunId, SubmitError> {
        let source_run = &source.row.run_id;
        if source_run.is_flow_run() {
            let forked = self.fork_flow_run(source, fork_request, idempotency);
            return Box::pin(forked).await;
        }
        let from_seq = fork_request.from_seq;
        if from_seq > source.head {
            let last = source.head;
            return Err(Unforkable::BeyondEnd { from_seq, last }.into());
        }
        let not_retained = |reason: &'static str| Unforkable::NotRetained {
            source_run: source_run.clone(),
            from_seq,
            reason,
        };
        if self.is_past_retention(source) {
            return Err(not_retained("retention_expired").into());
        }
        let run_id = self.inner.config.ids.run_id();
        let SourceLog {
            events: log,
            request,
            permit,
        } = self.source_log(source).await?;
        let Some(request) = request.filter(|_| log.len() as u64 > source.head.0) else {
            return Err(not_retained("event_log_unavailable").into());
        };
        let request = self.request_of_fork(source, request, fork_request);
        // Build the memory view that the fork will read now, so that a failure refuses the fork.
        let origin = request.memory_origin();
        let owner = Partition::from(&request.owner);
        let tenant = &owner.tenant;
        match self.memory_view(tenant, &run_id, &origin, None, &[]).await {
            Ok(_) => {}
            Err(fault) if fault.code == "memory_lost" => {
                return Err(not_retained("event_log_unavailable").into());
            }
            Err(fault) => return Err(fault.into()),
        }
        let definition = self.pinned_definition(source).await?;
        let run_start = RunStart {
            run: &run_id,
            owner: &owner,
            audit_action: AuditAction::fork(&self.actor),
            idempotency,
            guard: None,
        };
        let input = DecisionInput::Fork {
            definition,
            run_id: run_id.clone(),
            log: Arc::new(log),
            request: Cow::Owned(request),
        };
        self.commit_new_run(run_start, &input).await?;
        drop(permit);
        Ok(run_id)
    }

    async fn source_log(&self, source: &StoredRun) -> Result<SourceLog, SubmitError> {
        let stream = StreamId::of_run(&source.row.run_id);
        let mut log: Vec<RecordedEvent> = Vec::new();
        let (mut request, mut bytes) = (None, 0);
        let mut permit = None;
        loop {
            let after = log.last().map(|recorded| recorded.seq);
            let page = self.store().event_page(&stream, after, FOLD_PAGE).await?;
            let last = page.events.last().map(|event| event.seq);
            bytes += page.events.iter().map(|e| e.body.len()).sum::<usize>();
            if bytes > MAX_SOURCE_BYTES {
                return Err(Unforkable::TooLarge.into());
            }
            // Whoever forks many large runs waits for themselves, and tenants take turns.
            if bytes > INLINE_BYTES && permit.is_none() {
                let turn = self.inner.large_forks.acquire(Some(&source.row.tenant));
                permit = Some(self.with_deadline(turn).await?);
            }
            in_place(bytes, || {
                // Events appended in the meantime are not part of the fork.
                for event in page.events.iter().filter(|e| e.seq <= source.head) {
                    let recorded = codec::decode(event)?;
                    if log.is_empty()
                        && let Event::RunStarted { request: first, .. } = &recorded.event
                    {
                        request = Some((**first).clone());
                    }
                    log.push(recorded);
                }
                Ok::<_, Fault>(())
            })?;
            if last.is_none() || last >= page.head {
                return Ok(SourceLog {
                    events: log,
                    request,
                    permit,
                });
            }
        }
    }

    fn request_of_fork(
        &self,
        source: &StoredRun,
        first: RunRequest,
        fork_request: ForkRequest,
    ) -> RunRequest {
        // A branch continues with the memory at the fork point. A replay writes nothing of its own
        // and reads what the source wrote, event by event.
        let below = match fork_request.mode {
            ForkMode::Branch => fork_request.from_seq,
            ForkMode::Replay => source.head.next(),
        };
        let source = &source.row.run_id;
        let origin = first.memory_origin();
        // Those of its own log are added by the engine.
        let earlier_flows = first.forked_from.map(|from| from.flow_results);
        let earlier_flows = earlier_flows.unwrap_or_default();
        let mut forked_by = first.forked_by;
        if let Some(by) = &self.actor.principal
            && first.owner.principal.as_ref() != Some(by)
            && !forked_by.contains(by)
        {
            forked_by.push(by.clone());
        }
        RunRequest {
            // A replay performs nothing. A branch acts for the caller.
            conformance_role: match fork_request.mode {
                ForkMode::Branch => fork_request.conformance_role,
                ForkMode::Replay => first.conformance_role,
            },
            options: overlaid(first.options, fork_request.overlay),
            // A fork has no parent, and no run waits for it.
            parent: None,
            waiting_session: None,
            callback_url: None,
            callback_may_answer: false,
            trace: fork_request.trace,
            memory: Some(MemoryOrigin {
                base: Some(MemoryBase {
                    run: source.clone(),
                    below,
                    fork: true,
                }),
                ..origin
            }),
            forked_from: Some(Box::new(ForkedFrom {
                run_id: source.clone(),
                from_seq: fork_request.from_seq,
                mode: fork_request.mode,
                at: self.clock().now(),
                source_began_at: None,
                flow_results: earlier_flows,
            })),
            forked_by,
            ..first
        }
    }
}

/// Keys of `configurable` and `metadata` override the source's; tags are added to the source's.
fn overlaid(below: RunOptions, above: RunOptions) -> RunOptions {
    let merged = |below: Option<Object>, above: Option<Object>| match (below, above) {
        (Some(mut below), Some(above)) => {
            below.extend(above);
            Some(below)
        }
        (below, above) => above.or(below),
    };
    let tags = match (below.tags, above.tags) {
        (Some(mut below), Some(above)) => {
            let new: Vec<String> = above.into_iter().filter(|t| !below.contains(t)).collect();
            below.extend(new);
            Some(below)
        }
        (below, above) => above.or(below),
    };
    RunOptions {
        configurable: merged(below.configurable, above.configurable),
        tags,
        metadata: merged(below.metadata, above.metadata),
    }
}
