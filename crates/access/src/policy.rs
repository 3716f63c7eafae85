//! Who may decide a question. The one place that weighs it, for every way in: by node, by id, by
//! link, from the console and the command line.
//!
//! A link carries no name, so it decides only where no name is asked for. Somebody who may not
//! decide themselves may still act for somebody who may and who let them; an explicit wish to act
//! for a person is honoured or denied, never replaced by another.

use crate::roster::{Decider, Person};
use tandem_record::{DecisionPolicy, Denial, Standing, Verdict};

/// A signed link is all there is.
pub fn may_decide_by_link(policy: &DecisionPolicy) -> Verdict {
    if policy.binds_identity() {
        Verdict::Denied(Denial::LinkTooWeak)
    } else {
        Verdict::Granted(Standing::default())
    }
}

pub fn may_decide(policy: &DecisionPolicy, who: &Decider) -> Verdict {
    let own = &who.person;
    match who
        .acting_for
        .as_ref()
        .filter(|name| **name != own.principal)
    {
        Some(name) => match who.delegators.iter().find(|d| d.principal == *name) {
            Some(delegator) => weigh(policy, who, delegator),
            None => Verdict::Denied(Denial::NotDelegated),
        },
        None => {
            let first = weigh(policy, who, own);
            // Told to speak for themselves, or able to: no need to look further.
            if who.acting_for.is_some() || matches!(first, Verdict::Granted(_)) {
                return first;
            }
            let others = who.delegators.iter();
            let mut verdicts = others.map(|delegator| weigh(policy, who, delegator));
            verdicts
                .find(|verdict| matches!(verdict, Verdict::Granted(_)))
                .unwrap_or(first)
        }
    }
}

/// Whether `who` may decide with the authority of `person`.
fn weigh(policy: &DecisionPolicy, who: &Decider, person: &Person) -> Verdict {
    let initiator = policy
        .initiator
        .as_ref()
        .filter(|_| policy.no_self_approval);
    let started_it = |p: &Person| initiator == Some(&p.principal);
    if started_it(person) || started_it(&who.person) {
        return Verdict::Denied(Denial::SelfApproval);
    }
    let named = policy
        .approvers
        .iter()
        .any(|name| name == person.principal.as_str());
    let role = policy.roles.iter().any(|role| person.roles.contains(role));
    let through: Vec<String> = policy
        .groups
        .iter()
        .filter(|group| who.groups.holds(group, person))
        .cloned()
        .collect();
    if policy.names_people() && !named && !role && through.is_empty() {
        return Verdict::Denied(Denial::NotEligible);
    }
    let acting = person.principal != who.person.principal;
    Verdict::Granted(Standing {
        acting_for: acting.then(|| person.principal.clone()),
        groups: through,
        roles: person.roles.clone(),
    })
}
