//! Who may decide an interrupt. Every entry point uses this check: by node, by id, by link, the
//! console and the command line.
//!
//! A link names no principal, so it decides only where the policy requires none. A caller who may
//! not decide may act for a delegator who may. If the request names a delegator, only that
//! delegation counts.

use crate::roster::{Decider, Person};
use tandem_record::{DeciderSnapshot, DecisionAuthorization, DecisionPolicy, Denial};

/// For a caller whose only credential is a signed link.
pub fn may_decide_by_link(policy: &DecisionPolicy) -> DecisionAuthorization {
    if policy.requires_identity() {
        DecisionAuthorization::Denied(Denial::LinkTooWeak)
    } else {
        DecisionAuthorization::Granted(DeciderSnapshot::default())
    }
}

pub fn may_decide(policy: &DecisionPolicy, who: &Decider) -> DecisionAuthorization {
    let own = &who.person;
    match who
        .acting_for
        .as_ref()
        .filter(|name| **name != own.principal)
    {
        Some(name) => match who.delegators.iter().find(|d| d.principal == *name) {
            Some(delegator) => evaluate(policy, who, delegator),
            None => DecisionAuthorization::Denied(Denial::NotDelegated),
        },
        None => {
            let first = evaluate(policy, who, own);
            // The request names a delegator, or the caller may decide: no other delegation is
            // tried.
            if who.acting_for.is_some() || matches!(first, DecisionAuthorization::Granted(_)) {
                return first;
            }
            let others = who.delegators.iter();
            let mut verdicts = others.map(|delegator| evaluate(policy, who, delegator));
            verdicts
                .find(|verdict| matches!(verdict, DecisionAuthorization::Granted(_)))
                .unwrap_or(first)
        }
    }
}

/// Whether `who` may decide with the authority of `person`.
fn evaluate(policy: &DecisionPolicy, who: &Decider, person: &Person) -> DecisionAuthorization {
    let started_it = |p: &Person| policy.initiators.contains(&p.principal);
    if policy.no_self_approval && (started_it(person) || started_it(&who.person)) {
        return DecisionAuthorization::Denied(Denial::SelfApproval);
    }
    let named = policy
        .approvers
        .iter()
        .any(|name| name == person.principal.as_str());
    let role = policy.roles.iter().any(|role| person.roles.contains(role));
    let through: Vec<String> = policy
        .groups
        .iter()
        .filter(|group| who.groups.contains(group, person))
        .cloned()
        .collect();
    if policy.names_deciders() && !named && !role && through.is_empty() {
        return DecisionAuthorization::Denied(Denial::NotEligible);
    }
    let acting = person.principal != who.person.principal;
    DecisionAuthorization::Granted(DeciderSnapshot {
        acting_for: acting.then(|| person.principal.clone()),
        groups: through,
        roles: person.roles.clone(),
    })
}
