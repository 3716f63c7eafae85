//! Resolves an interrupt; all entry points use this path. The caller's roles and delegations are
//! looked up now; `access` checks them against the current state of the interrupt.

use crate::api::SharedState;
use crate::mutation::Ticket;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_access::{Decider, Identity, may_decide, may_decide_by_link};
use tandem_record::{Actor, InterruptId, NodeId, Partition, Principal, Reply, RunId};
use tandem_runtime::{AccessCheck, ProposedAnswer};
use tandem_wire::v1::time::rfc3339;

/// An answer as it was received.
pub(crate) struct SubmittedAnswer {
    pub(crate) node: NodeId,
    /// The id of the interrupt, if the route has it.
    pub(crate) interrupt: Option<InterruptId>,
    pub(crate) value: Value,
    /// Digest of what the caller saw.
    pub(crate) digest: Option<String>,
    /// In whose place the caller wants to act.
    pub(crate) acting_for: Option<Principal>,
}

/// Resolves for an authenticated caller.
pub(crate) async fn decide(
    api: &SharedState,
    ticket: Ticket,
    caller: &Identity,
    run: RunId,
    submitted: SubmittedAnswer,
) -> Result<Response, Problem> {
    let store = api.runtime.store();
    let acting_for = submitted.acting_for;
    let decider = Decider::look_up(&**store, &api.groups, caller, acting_for, api.now()).await?;
    let authorize: AccessCheck = Arc::new(move |policy| may_decide(policy, &decider));
    let proposal = ProposedAnswer {
        node: submitted.node,
        interrupt: submitted.interrupt,
        value: submitted.value,
        digest: submitted.digest,
        by: Some(caller.principal.clone()),
    };
    let (runtime, partition) = (api.runtime_of(caller), caller.partition());
    ticket
        .decide(api, runtime, partition, run, proposal, authorize)
        .await
}

/// Resolves for the holder of a signed link.
pub(crate) async fn decide_by_link(
    api: &SharedState,
    ticket: Ticket,
    of: Partition,
    run: RunId,
    submitted: SubmittedAnswer,
) -> Result<Response, Problem> {
    let authorize: AccessCheck = Arc::new(may_decide_by_link);
    let proposal = ProposedAnswer {
        node: submitted.node,
        interrupt: submitted.interrupt,
        value: submitted.value,
        digest: submitted.digest,
        by: None,
    };
    let runtime = api.runtime.acting_as(Actor::link());
    let answered = ticket.decide(api, runtime, of, run, proposal, authorize);
    answered
        .await
        .map_err(|problem| problem.for_link_holder(api.now()))
}

/// The response to an accepted answer.
pub(crate) fn render_resolved(run: &RunId, reply: &Reply) -> ApiResponse {
    let Reply::Resolved {
        interrupt,
        node,
        kind,
        outcome,
        votes,
        status,
    } = reply
    else {
        unreachable!("unexpected reply to an answer: {reply:?}");
    };
    let mut summary = json!({"interruptId": interrupt, "kind": kind, "nodeId": node});
    if let Some(outcome) = outcome {
        summary["outcome"] = json!(outcome);
    }
    if !votes.is_empty() {
        let votes = votes.iter().map(|vote| {
            let at = rfc3339(vote.at);
            let mut shown = json!({"voter": vote.voter, "action": vote.action, "at": at});
            if let Some(claimed_by) = &vote.claimed_by {
                shown["claimedBy"] = json!(claimed_by);
            }
            if vote.via_link {
                shown["viaLink"] = json!(true);
            }
            if let Some(delegate) = &vote.delegate {
                shown["delegate"] = json!(delegate);
            }
            shown
        });
        summary["votes"] = votes.collect();
    }
    ApiResponse::ok(json!({
        "runId": run,
        "nodeId": node,
        "status": status.as_str(),
        "interrupt": summary,
    }))
}
