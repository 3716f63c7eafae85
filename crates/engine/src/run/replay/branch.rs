//! A branch: a new run that continues for real from the state at the fork point.
//!
//! A node that had started but not finished does its work again: a call is made under a new id, a
//! sleep starts again, a child is another child, an interrupt is opened in the fork. Events about
//! such a node that were copied are not emitted twice.

use super::log_index;
use crate::conformance::rebase_call;
use crate::ids::{child_run_id, logical_invocation_id, tool_call_id};
use crate::node::Kind;
use crate::run::agents::{WorkerState, WorkerStep};
use crate::run::calls::tool_effect;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::scheduling::{NodeEntry, NodeOutcome};
use crate::run::state::Run;
use std::sync::Arc;
use tandem_record::{
    AgentEventKind, Event, NodeId, NodeStatus, RecordedEvent, Seq, Timestamp, Work,
};

pub(super) fn branch<'a>(
    mut draft: DecisionDraft<'a>,
    mut log: Vec<RecordedEvent>,
    from: Seq,
) -> DecisionDraft<'a> {
    let rest = log.split_off(log_index(from));
    let mut then = Run::new(draft.run.id().clone(), Arc::clone(&draft.run.def));
    for recorded in &log {
        then.evolve(recorded);
    }
    let open = open_nodes(&then);
    for ix in &open {
        rebase_open_work(&mut log, &then, *ix, draft.now);
    }
    let partial = open.iter().find_map(|ix| partly_executed(&log, &then, *ix));
    let copied = partial
        .as_ref()
        .map_or(log.len(), |(_, seq)| log_index(*seq));
    let done_again = log.split_off(copied);
    for recorded in log {
        draft.append_recorded(recorded);
    }
    draft.reset_usage();
    draft.replay.first_own_seq = from;
    draft.now = draft.now.max(draft.run.last_at());
    if draft.run.phase() == Phase::Cancelling {
        // The children that delayed the cancel belong to the source.
        draft.finish_requested_cancel();
        return draft;
    }
    if let Some(end) = ending(&rest) {
        end_like_source(&mut draft, end);
        return draft;
    }
    if let Some((ix, _)) = partial {
        let entry = entry(&draft.run, &done_again[0].event);
        draft.replay.already_recorded = done_again.into();
        draft.start_node(ix, entry);
        // If the fork emits fewer events than the source did, the remaining copied events are
        // appended as they are.
        while let Some(rest) = draft.replay.already_recorded.pop_front() {
            draft.append_recorded(rest);
        }
    }
    for ix in open {
        // A node that was started again does all its work.
        if partial.is_none_or(|(again, _)| again != ix) {
            restart_open_node(&mut draft, ix);
        }
    }
    draft.advance();
    draft
}

/// How the source ended, if nothing else was left after the fork point. The ends of its nodes are
/// not the end of the run: a cancelled node may do its work in the fork, unless the run had
/// completed without it.
fn ending(rest: &[RecordedEvent]) -> Option<&Event> {
    let (end, before) = rest.split_last()?;
    let end = Some(&end.event).filter(|event| event.is_terminal())?;
    let completed = matches!(end, Event::RunCompleted { .. });
    let called_off = |r: &RecordedEvent| matches!(r.event, Event::NodeCancelled { .. });
    let alone = before.is_empty() || (completed && before.iter().all(called_off));
    alone.then_some(end)
}

fn end_like_source(draft: &mut DecisionDraft<'_>, end: &Event) {
    match end.clone() {
        Event::RunCompleted { .. } => draft.terminate_run(),
        Event::RunFailed {
            error, failed_node, ..
        } => {
            let failed = failed_node.and_then(|node| draft.run.def.index(&node));
            draft.fail_run(error, failed, draft.run.head());
        }
        Event::RunCancelled { reason, by, .. } => draft.end_cancelled(reason, by, None),
        _ => unreachable!("a run has no other end"),
    }
}

/// Nodes that had started and not ended.
fn open_nodes(run: &Run) -> Vec<usize> {
    let nodes = run.nodes().iter().enumerate();
    nodes
        .filter(|(_, n)| matches!(n.status, NodeStatus::Running | NodeStatus::Suspended))
        .map(|(ix, _)| ix)
        .collect()
}

fn last_start(log: &[RecordedEvent], node: &NodeId) -> Option<usize> {
    log.iter()
        .rposition(|r| matches!(&r.event, Event::NodeStarted { node: n, .. } if n == node))
}

/// Gives the work of an open node the fork's ids, and restarts its time from now.
fn rebase_open_work(log: &mut [RecordedEvent], run: &Run, ix: usize, now: Timestamp) {
    let node = &run.def.nodes[ix].id;
    let Some(start) = last_start(log, node) else {
        return;
    };
    let at = log[start].at;
    let returned = log[start..].iter().any(|r| is_tool_return(&r.event, node));
    let from_now = |then: Timestamp| now.plus_ms(then.ms_since(at));
    // Invalid options were refused together with the fork's options.
    let mock = run.mock().ok().flatten();
    if let Event::NodeStarted {
        work,
        deadline,
        execution,
        attempt,
        ..
    } = &mut log[start].event
    {
        *deadline = deadline.map(from_now);
        let tenant = &run.request().owner.tenant;
        let identity = |provider: &str| {
            logical_invocation_id(tenant, run.id(), node, u64::from(*execution), provider)
        };
        match work {
            Some(Work::Sleep { until, .. }) => *until = from_now(*until),
            Some(Work::Http { effect, .. }) => *effect = identity("tandem:http"),
            // Renamed when it was copied.
            Some(work @ Work::Model { .. }) => rebase_call(work, mock.as_ref(), now, from_now),
            Some(Work::Tool { effect, call, .. }) => {
                *effect = tool_effect(tenant, run.id(), node, *execution);
                // Otherwise it keeps its name, because the events about it were copied.
                if returned {
                    *call = tool_call_id(run.id(), node, *execution, *attempt as usize);
                }
            }
            Some(Work::SecretEcho { effect, .. }) => *effect = identity("tandem:secret"),
            Some(Work::Pack { effect, .. }) => *effect = identity("tandem:pack"),
            Some(Work::Child { child, .. }) => {
                *child = child_run_id(run.id(), node, *execution, *attempt);
            }
            // The flow is its source's: a fork starts none.
            Some(Work::Flow { .. }) | None => {}
        }
    }
    for recorded in &mut log[start..] {
        if let Event::ModelRetried(retry) = &mut recorded.event
            && retry.node == *node
        {
            rebase_call(&mut retry.work, mock.as_ref(), now, from_now);
        }
        if let Event::VerificationRequested(request) = &mut recorded.event
            && request.node == *node
        {
            match &mut request.work {
                Work::Http { effect, .. } => {
                    *effect = run.verifier_effect_id(ix, &request.verification_subject)
                }
                Work::Child { child, .. } => {
                    *child = run.verifier_run_id(ix, &request.verification_subject)
                }
                Work::Sleep { .. }
                | Work::SecretEcho { .. }
                | Work::Model { .. }
                | Work::Tool { .. }
                | Work::Flow { .. }
                | Work::Pack { .. } => {}
            }
        }
        restart_question(recorded, node, now);
    }
}

/// Restarts the time of a node's question, and of the level or reminder it has come to.
fn restart_question(recorded: &mut RecordedEvent, node: &NodeId, now: Timestamp) {
    let at = recorded.at;
    let from_now = |then: Timestamp| now.plus_ms(then.ms_since(at));
    match &mut recorded.event {
        Event::InterruptRequested { node: n, interrupt } if n == node => {
            interrupt.due = interrupt.due.map(from_now);
            interrupt.requested_at = now;
        }
        Event::InterruptEscalated {
            node: n, deadline, ..
        } if n == node => *deadline = from_now(*deadline),
        Event::InterruptReminded { node: n, next, .. } if n == node => {
            *next = next.map(from_now);
        }
        _ => {}
    }
}

/// A node cut off in the middle of work that is done in one decision, and where it started.
fn partly_executed(log: &[RecordedEvent], run: &Run, ix: usize) -> Option<(usize, Seq)> {
    let state = run.node(ix);
    let workers = run.dispatching(ix).into_iter().flat_map(|d| &d.workers);
    let handed_over = workers.into_iter().any(|w| w.step != WorkerStep::Pending);
    let asks = run.verifying(ix).is_some();
    let waits = state.work.is_some() || state.retry_at.is_some() || handed_over || asks;
    let running = state.status == NodeStatus::Running && !was_answered(log, run, ix);
    if waits || !(running || is_opening(log, run, ix)) {
        return None;
    }
    let start = last_start(log, &run.def.nodes[ix].id)?;
    Some((ix, log[start].seq))
}

/// Whether a conversation was being opened: it continues at once after its node was suspended, and
/// the protocol's test workflows run it to its end.
fn is_opening(log: &[RecordedEvent], run: &Run, ix: usize) -> bool {
    let node = &run.def.nodes[ix];
    let alone = matches!(&node.kind, Kind::ConversationGate(gate) if gate.scripted_turns.is_some());
    let open = run.open_interrupt(ix);
    let talks = open.is_some_and(|s| s.interrupt.kind == "conversation.exchange");
    let Some(start) = last_start(log, &node.id) else {
        return false;
    };
    let at_once = |r: &RecordedEvent| {
        let own = r.event.node().is_none_or(|n| *n == node.id);
        own && r.at == log[start].at
    };
    (alone || (talks && !was_answered(log, run, ix))) && log[start..].iter().all(at_once)
}

/// Whether the node's interrupt was already answered although the node had not ended.
fn was_answered(log: &[RecordedEvent], run: &Run, ix: usize) -> bool {
    let node = &run.def.nodes[ix].id;
    let since = last_start(log, node).unwrap_or(0);
    let answered = |r: &RecordedEvent| match &r.event {
        Event::InterruptResolved { node: n, .. } | Event::NodeResumed { node: n, .. } => n == node,
        _ => false,
    };
    log[since..].iter().any(answered)
}

pub(super) fn entry(run: &Run, started: &Event) -> NodeEntry {
    let Event::NodeStarted {
        attempt,
        resets,
        trigger,
        ..
    } = started
    else {
        unreachable!("a node's work begins with its start");
    };
    NodeEntry {
        resets: resets.iter().filter_map(|n| run.def.index(n)).collect(),
        trigger: trigger.clone(),
        retry: *attempt > 0,
    }
}

/// What a fork has to start again at an open node. Calls and sleeps follow from the state.
fn restart_open_node(draft: &mut DecisionDraft<'_>, ix: usize) {
    let state = draft.run.node(ix);
    let Some(cause) = state.last else {
        return;
    };
    if draft.run.verifying(ix).is_some() {
        // Advancing the run acts on an existing verdict.
        if draft.run.awaits_verdict(ix) {
            while draft.run.node(ix).status == NodeStatus::Suspended {
                draft.resume_mirror(ix, cause);
            }
            draft.start_verifier_run(ix, cause);
        }
        return;
    }
    if let Some(dispatching) = draft.run.dispatching(ix) {
        let decided = dispatching.decided;
        let workers = dispatching.workers.iter().enumerate();
        let live = workers.filter(|(_, w)| w.is_live());
        let live: Vec<(usize, WorkerState)> = live.map(|(i, w)| (i, w.clone())).collect();
        draft.restart_workers(ix, &live, decided);
        return;
    }
    if let Some((decision, decided)) = draft.run.recorded_decision(ix) {
        draft.complete_supervisor(ix, &decision, decided);
        return;
    }
    match (&state.work, state.status) {
        (Some(Work::Tool { .. }), NodeStatus::Running) if !is_tool_call_recorded(draft, cause) => {
            draft.emit_tool_called(ix, cause);
        }
        (
            Some(Work::Child {
                child, workflow_id, ..
            }),
            NodeStatus::Running | NodeStatus::Suspended,
        ) => {
            let (child, workflow_id) = (child.clone(), workflow_id.clone());
            draft.start_child_again(ix, child, workflow_id, cause);
        }
        (Some(Work::Flow { .. }), NodeStatus::Running | NodeStatus::Suspended) => {
            draft.settle_inherited_flow(ix);
        }
        (None, NodeStatus::Running | NodeStatus::Suspended) if has_no_open_question(draft, ix) => {
            let (limits, meter) = (draft.cx.limits, draft.cx.work);
            let inputs = draft.run.port_values(ix, limits, meter).unwrap_or_default();
            if let NodeOutcome::Ask(question) = draft.perform(ix, inputs, cause) {
                draft.ask(ix, *question, cause);
            }
        }
        _ => {}
    }
}

/// Whether an event is a tool's answer to a node.
fn is_tool_return(event: &Event, node: &NodeId) -> bool {
    matches!(event, Event::Agent(agent_event)
        if agent_event.node == *node && matches!(agent_event.kind, AgentEventKind::ToolReturned { .. }))
}

/// Whether the newest event of a node is its tool call.
fn is_tool_call_recorded(draft: &DecisionDraft<'_>, last: Seq) -> bool {
    let newest = draft.drafted().get(log_index(last)).map(|r| &r.event);
    matches!(newest, Some(Event::Agent(agent_event)) if matches!(agent_event.kind, AgentEventKind::ToolCalled { .. }))
}

/// Whether an open node has no open interrupt.
fn has_no_open_question(draft: &DecisionDraft<'_>, ix: usize) -> bool {
    draft.run.node(ix).retry_at.is_none()
        && draft
            .run
            .open_interrupt(ix)
            .is_none_or(|s| draft.run.closed_question(&s.interrupt.id).is_some())
}
