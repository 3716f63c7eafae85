//! Deciding a question: the one path of every door. Who the caller is and may act for is looked up
//! now; whether that is enough is weighed by `access` on the state the answer meets.

use crate::api::Shared;
use crate::mutation::Ticket;
use crate::problem::Problem;
use crate::said::Said;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_access::{Decider, Identity, may_decide, may_decide_by_link};
use tandem_record::{Actor, InterruptId, NodeId, Partition, Principal, Reply, RunId};
use tandem_runtime::{Judge, Proposal};
use tandem_wire::v1::time::rfc3339;

/// An answer as it came in.
pub(crate) struct Given {
    pub(crate) node: NodeId,
    /// The very question meant, where the door knows it.
    pub(crate) interrupt: Option<InterruptId>,
    pub(crate) value: Value,
    /// In whose place the caller wants to act.
    pub(crate) acting_for: Option<Principal>,
}

/// Decides for an authenticated caller.
pub(crate) async fn decide(
    doors: &Shared,
    ticket: Ticket,
    caller: &Identity,
    run: RunId,
    given: Given,
) -> Result<Response, Problem> {
    let store = doors.runtime.store();
    let acting_for = given.acting_for;
    let decider =
        Decider::look_up(&**store, &doors.groups, caller, acting_for, doors.now()).await?;
    let judge: Judge = Arc::new(move |policy| may_decide(policy, &decider));
    let proposal = Proposal {
        node: given.node,
        interrupt: given.interrupt,
        value: given.value,
        by: Some(caller.principal.clone()),
    };
    let (runtime, partition) = (doors.runtime_of(caller), caller.partition());
    ticket
        .decide(doors, runtime, partition, run, proposal, judge)
        .await
}

/// Decides for whoever holds a signed link.
pub(crate) async fn decide_by_link(
    doors: &Shared,
    ticket: Ticket,
    of: Partition,
    run: RunId,
    given: Given,
) -> Result<Response, Problem> {
    let judge: Judge = Arc::new(may_decide_by_link);
    let proposal = Proposal {
        node: given.node,
        interrupt: given.interrupt,
        value: given.value,
        by: None,
    };
    let runtime = doors.runtime.acting_as(Actor::link());
    let answered = ticket.decide(doors, runtime, of, run, proposal, judge);
    answered
        .await
        .map_err(|problem| problem.by_link(doors.now()))
}

/// An answer that was taken.
pub(crate) fn say(run: &RunId, reply: &Reply) -> Said {
    let Reply::Resolved {
        interrupt,
        node,
        kind,
        outcome,
        votes,
        status,
    } = reply
    else {
        unreachable!("an answer is answered as one, not with {reply:?}");
    };
    let mut summary = json!({"interruptId": interrupt, "kind": kind, "nodeId": node});
    if let Some(outcome) = outcome {
        summary["outcome"] = json!(outcome);
    }
    if !votes.is_empty() {
        let votes = votes.iter().map(|vote| {
            let at = rfc3339(vote.at);
            let mut shown = json!({"voter": vote.voter, "action": vote.action, "at": at});
            if let Some(delegate) = &vote.delegate {
                shown["delegate"] = json!(delegate);
            }
            shown
        });
        summary["votes"] = votes.collect();
    }
    Said::ok(json!({
        "runId": run,
        "nodeId": node,
        "status": status.as_str(),
        "interrupt": summary,
    }))
}
