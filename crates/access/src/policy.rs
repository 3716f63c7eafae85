//! Who may decide an interrupt. Every entry point uses this check: by node, by id, by link, the
//! console and the command line.
//!
//! A link names no principal, so it decides only where the policy requires none. A caller who may
//! not decide may act for a delegator who may. If the request names a delegator, only that
//! delegation counts.
//!
//! An answer may name its voter where people share a key or a link. The key or link of one person decides as
//! that person only.

use crate::identity::is_person;
use crate::roster::{Decider, Person};
use tandem_record::{DeciderSnapshot, DecisionAuthorization, DecisionPolicy, Denial, Principal};

/// For a caller whose only credential is a signed link. `voter` is the name the answer gives.
pub fn may_decide_by_link(
    policy: &DecisionPolicy,
    issued_to: Option<&Principal>,
    voter: Option<&str>,
) -> DecisionAuthorization {
    if policy.requires_identity() {
        return DecisionAuthorization::Denied(Denial::LinkTooWeak);
    }
    let person = issued_to.filter(|principal| is_person(principal));
    if person.is_some_and(|own| voter.is_some_and(|name| name != own.as_str())) {
        return DecisionAuthorization::Denied(Denial::OtherVoter);
    }
    DecisionAuthorization::Granted(DeciderSnapshot {
        link_of: person.cloned(),
        ..DeciderSnapshot::default()
    })
}

/// `voter` is the name the answer gives.
pub fn may_decide(
    policy: &DecisionPolicy,
    who: &Decider,
    voter: Option<&str>,
) -> DecisionAuthorization {
    let verdict = may_answer(policy, who);
    let own = &who.person.principal;
    match (&verdict, voter.filter(|_| is_person(own))) {
        (DecisionAuthorization::Granted(decider), Some(name))
            if decider.acting_for.as_ref().unwrap_or(own).as_str() != name =>
        {
            DecisionAuthorization::Denied(Denial::OtherVoter)
        }
        _ => verdict,
    }
}

fn may_answer(policy: &DecisionPolicy, who: &Decider) -> DecisionAuthorization {
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
        link_of: None,
    })
}
