//! A branch: the state of the fork point is where a new run begins, and from there it is real.
//!
//! A node that had started but not finished does its work again: a call is made under a new
//! identity, a sleep begins anew, a child is another child, a question is asked of the fork. What
//! the copied events tell of such a node is not told twice.

use super::place;
use crate::ids::{child_run_id, logical_invocation_id, tool_call_id};
use crate::node::Kind;
use crate::run::mock;
use crate::run::start::{Entry, Step};
use crate::run::state::{Phase, Run, WorkerState, WorkerStep};
use crate::run::tool::tool_effect;
use crate::run::turn::Turn;
use std::sync::Arc;
use tandem_record::{Event, NodeId, NodeStatus, Recorded, Said, Seq, Timestamp, Work};

pub(super) fn branch<'a>(mut turn: Turn<'a>, mut log: Vec<Recorded>, from: Seq) -> Turn<'a> {
    let rest = log.split_off(place(from));
    let mut then = Run::new(turn.run.id().clone(), Arc::clone(&turn.run.def));
    for recorded in &log {
        then.evolve(recorded);
    }
    let open = open_nodes(&then);
    for ix in &open {
        renew(&mut log, &then, *ix, turn.now);
    }
    let begun = open.iter().find_map(|ix| begun(&log, &then, *ix));
    let kept = begun.as_ref().map_or(log.len(), |(_, seq)| place(*seq));
    let done_again = log.split_off(kept);
    for recorded in log {
        turn.adopt(recorded);
    }
    turn.forget_copied();
    turn.floor = from;
    turn.now = turn.now.max(turn.run.state.last_at);
    if turn.run.state.phase == Phase::Cancelling {
        // Whoever held the cancel up was the source's.
        turn.cancelled_as_asked();
        return turn;
    }
    if let Some(end) = ending(&rest) {
        end_likewise(&mut turn, end);
        return turn;
    }
    if let Some((ix, _)) = begun {
        let entry = entry(&turn.run, &done_again[0].event);
        turn.already = done_again.into();
        turn.start_node(ix, entry);
        // A shorter course than the source's leaves facts that are told all the same.
        while let Some(rest) = turn.already.pop_front() {
            turn.adopt(rest);
        }
    }
    for ix in open {
        // What was started again does all it has to.
        if begun.is_none_or(|(again, _)| again != ix) {
            go_on(&mut turn, ix);
        }
    }
    turn.advance();
    turn
}

/// How the source ended, if nothing but that was left. Its nodes' own ends are not the run's: one
/// that was called off may do its work in the fork, unless the run had completed without it.
fn ending(rest: &[Recorded]) -> Option<&Event> {
    let (end, before) = rest.split_last()?;
    let end = Some(&end.event).filter(|event| event.is_terminal())?;
    let completed = matches!(end, Event::RunCompleted { .. });
    let called_off = |r: &Recorded| matches!(r.event, Event::NodeCancelled { .. });
    let alone = before.is_empty() || (completed && before.iter().all(called_off));
    alone.then_some(end)
}

fn end_likewise(turn: &mut Turn<'_>, end: &Event) {
    match end.clone() {
        Event::RunCompleted { .. } => turn.terminate_run(),
        Event::RunFailed {
            error, failed_node, ..
        } => {
            let failed = failed_node.and_then(|node| turn.run.def.index(&node));
            turn.fail_run(error, failed, turn.run.state.head);
        }
        Event::RunCancelled { reason, by, .. } => turn.end_cancelled(reason, by, None),
        _ => unreachable!("a run has no other end"),
    }
}

/// Nodes that had started and not ended.
fn open_nodes(run: &Run) -> Vec<usize> {
    let nodes = run.state.nodes.iter().enumerate();
    nodes
        .filter(|(_, n)| matches!(n.status, NodeStatus::Running | NodeStatus::Suspended))
        .map(|(ix, _)| ix)
        .collect()
}

fn last_start(log: &[Recorded], node: &NodeId) -> Option<usize> {
    log.iter()
        .rposition(|r| matches!(&r.event, Event::NodeStarted { node: n, .. } if n == node))
}

/// Gives what an open node waits for the fork's identity, and its time from now.
fn renew(log: &mut [Recorded], run: &Run, ix: usize, now: Timestamp) {
    let node = &run.def.nodes[ix].id;
    let Some(start) = last_start(log, node) else {
        return;
    };
    let at = log[start].at;
    let returned = log[start..].iter().any(|r| returns(&r.event, node));
    let from_now = |then: Timestamp| now.plus_ms(then.ms_since(at));
    // What cannot be read was refused with the fork's options.
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
            Some(work @ Work::Model { .. }) => mock::renew(work, mock.as_ref(), now, from_now),
            Some(Work::Tool { effect, call, .. }) => {
                *effect = tool_effect(tenant, run.id(), node, *execution);
                // Otherwise it keeps its name: what was told of it was copied.
                if returned {
                    *call = tool_call_id(run.id(), node, *execution, *attempt as usize);
                }
            }
            Some(Work::SecretEcho { effect, .. }) => *effect = identity("tandem:secret"),
            Some(Work::Pack { effect, .. }) => *effect = identity("tandem:pack"),
            Some(Work::Child { child, .. }) => {
                *child = child_run_id(run.id(), node, *execution, *attempt);
            }
            None => {}
        }
    }
    for recorded in &mut log[start..] {
        if let Event::ModelAskedAgain(retry) = &mut recorded.event
            && retry.node == *node
        {
            mock::renew(&mut retry.work, mock.as_ref(), now, from_now);
        }
        if let Event::VerificationAsked(asked) = &mut recorded.event
            && asked.node == *node
        {
            match &mut asked.work {
                Work::Http { effect, .. } => *effect = run.critic_effect(ix, &asked.judged),
                Work::Child { child, .. } => *child = run.critic_run(ix, &asked.judged),
                Work::Sleep { .. }
                | Work::SecretEcho { .. }
                | Work::Model { .. }
                | Work::Tool { .. }
                | Work::Pack { .. } => {}
            }
        }
        if let Event::InterruptRequested { node: n, interrupt } = &mut recorded.event
            && n == node
        {
            interrupt.requested_at = now;
        }
    }
}

/// A node cut off in the middle of what it does at once, and where it started.
fn begun(log: &[Recorded], run: &Run, ix: usize) -> Option<(usize, Seq)> {
    let state = &run.state.nodes[ix];
    let workers = state.dispatching.iter().flat_map(|d| &d.workers);
    let handed_over = workers.into_iter().any(|w| w.step != WorkerStep::Pending);
    let asks = state.verifying.is_some();
    let waits = state.work.is_some() || state.retry_at.is_some() || handed_over || asks;
    let running = state.status == NodeStatus::Running && !was_answered(log, run, ix);
    if waits || !(running || is_opening(log, run, ix)) {
        return None;
    }
    let start = last_start(log, &run.def.nodes[ix].id)?;
    Some((ix, log[start].seq))
}

/// A conversation goes on at once after its node was suspended: it is opened, and the protocol's
/// test workflows have it out alone.
fn is_opening(log: &[Recorded], run: &Run, ix: usize) -> bool {
    let node = &run.def.nodes[ix];
    let alone = matches!(&node.kind, Kind::ConversationGate(gate) if gate.mock_turns.is_some());
    let asked = run.state.nodes[ix].suspended.as_ref();
    let talks = asked.is_some_and(|s| s.interrupt.kind == "conversation.exchange");
    let Some(start) = last_start(log, &node.id) else {
        return false;
    };
    let at_once = |r: &Recorded| {
        let own = r.event.node().is_none_or(|n| *n == node.id);
        own && r.at == log[start].at
    };
    (alone || (talks && !was_answered(log, run, ix))) && log[start..].iter().all(at_once)
}

/// Whether the node's question had its answer already, though the node had not ended.
fn was_answered(log: &[Recorded], run: &Run, ix: usize) -> bool {
    let node = &run.def.nodes[ix].id;
    let since = last_start(log, node).unwrap_or(0);
    let answered = |r: &Recorded| match &r.event {
        Event::InterruptResolved { node: n, .. } | Event::NodeResumed { node: n, .. } => n == node,
        _ => false,
    };
    log[since..].iter().any(answered)
}

pub(super) fn entry(run: &Run, started: &Event) -> Entry {
    let Event::NodeStarted {
        attempt,
        resets,
        trigger,
        ..
    } = started
    else {
        unreachable!("a node's work begins with its start");
    };
    Entry {
        resets: resets.iter().filter_map(|n| run.def.index(n)).collect(),
        trigger: trigger.clone(),
        retry: *attempt > 0,
    }
}

/// What a fork has to set going again at an open node. Calls and sleeps follow from the state.
fn go_on(turn: &mut Turn<'_>, ix: usize) {
    let state = &turn.run.state.nodes[ix];
    let Some(cause) = state.last else {
        return;
    };
    if state.verifying.is_some() {
        // A verdict that was given is heeded by advancing.
        if turn.run.awaits_verdict(ix) {
            while turn.run.state.nodes[ix].status == NodeStatus::Suspended {
                turn.resume_mirror(ix, cause);
            }
            turn.start_critic(ix, cause);
        }
        return;
    }
    if let Some(dispatching) = &state.dispatching {
        let decided = dispatching.decided;
        let workers = dispatching.workers.iter().enumerate();
        let live = workers.filter(|(_, w)| w.is_live());
        let live: Vec<(usize, WorkerState)> = live.map(|(i, w)| (i, w.clone())).collect();
        turn.hand_over_again(ix, &live, decided);
        return;
    }
    if let Some((decision, decided)) = turn.run.recorded_decision(ix) {
        turn.complete_supervisor(ix, &decision, decided);
        return;
    }
    match (&state.work, state.status) {
        (Some(Work::Tool { .. }), NodeStatus::Running) if !is_called(turn, cause) => {
            turn.tell_call(ix, cause);
        }
        (
            Some(Work::Child {
                child, workflow_id, ..
            }),
            NodeStatus::Running | NodeStatus::Suspended,
        ) => {
            let (child, workflow_id) = (child.clone(), workflow_id.clone());
            turn.start_child_again(ix, child, workflow_id, cause);
        }
        (None, NodeStatus::Running | NodeStatus::Suspended) if asks_no_more(turn, ix) => {
            let (limits, meter) = (turn.cx.limits, turn.cx.schema_work);
            let inputs = turn.run.port_values(ix, limits, meter).unwrap_or_default();
            if let Step::Ask(question) = turn.perform(ix, inputs, cause) {
                turn.ask(ix, *question, cause);
            }
        }
        _ => {}
    }
}

/// Whether an event tells of a tool's answer to a node.
fn returns(event: &Event, node: &NodeId) -> bool {
    matches!(event, Event::Agent(fact)
        if fact.node == *node && matches!(fact.said, Said::ToolReturned { .. }))
}

/// Whether what was told last of a node is the call it makes.
fn is_called(turn: &Turn<'_>, last: Seq) -> bool {
    let told = turn.drafted().get(place(last)).map(|r| &r.event);
    matches!(told, Some(Event::Agent(fact)) if matches!(fact.said, Said::ToolCalled { .. }))
}

/// Whether an open node has no open question any more.
fn asks_no_more(turn: &Turn<'_>, ix: usize) -> bool {
    let state = &turn.run.state.nodes[ix];
    state.retry_at.is_none()
        && state
            .suspended
            .as_ref()
            .is_none_or(|s| turn.run.closed_question(&s.interrupt.id).is_some())
}
