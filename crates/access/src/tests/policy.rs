//! Decision policies, as a table.

use crate::{BOOTSTRAP_PRINCIPAL, Decider, Groups, Person, may_decide, may_decide_by_link};
use std::collections::BTreeMap;
use tandem_record::{DeciderSnapshot, DecisionAuthorization, DecisionPolicy, Denial, Principal};

fn person(name: &str, roles: &[&str]) -> Person {
    Person {
        principal: Principal::new(name),
        roles: roles.iter().map(ToString::to_string).collect(),
    }
}

fn groups() -> Groups {
    let written = [
        ("desk", vec!["ana", "role:clerk"]),
        ("leads", vec!["eva"]),
        ("all", vec!["group:desk", "group:leads"]),
        ("loop", vec!["group:pool"]),
        ("pool", vec!["group:loop", "zoe"]),
    ];
    let named: BTreeMap<String, Vec<String>> = written
        .into_iter()
        .map(|(name, members)| {
            let members = members.into_iter().map(str::to_owned).collect();
            (name.to_owned(), members)
        })
        .collect();
    Groups::from_names(&named)
}

fn decider(who: Person, delegators: Vec<Person>, acting_for: Option<&str>) -> Decider {
    Decider {
        person: who,
        groups: groups(),
        delegators,
        acting_for: acting_for.map(Principal::new),
    }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn of_groups(list: &[&str]) -> DecisionPolicy {
    DecisionPolicy {
        groups: names(list),
        ..DecisionPolicy::default()
    }
}

fn granted(acting_for: Option<&str>, groups: &[&str], roles: &[&str]) -> DecisionAuthorization {
    DecisionAuthorization::Granted(DeciderSnapshot {
        acting_for: acting_for.map(Principal::new),
        groups: names(groups),
        roles: names(roles),
        link_of: None,
    })
}

#[test]
fn approver_by_name_role_or_group_is_eligible() {
    let approvers = DecisionPolicy {
        approvers: names(&["ana"]),
        ..DecisionPolicy::default()
    };
    let roles = DecisionPolicy {
        roles: names(&["clerk"]),
        ..DecisionPolicy::default()
    };
    let nobody = DecisionPolicy::default();
    let denied = DecisionAuthorization::Denied(Denial::NotEligible);
    let cases = [
        (&nobody, person("eve", &[]), granted(None, &[], &[])),
        (&approvers, person("ana", &[]), granted(None, &[], &[])),
        (&approvers, person("eve", &["ana"]), denied.clone()),
        (
            &roles,
            person("ben", &["clerk"]),
            granted(None, &[], &["clerk"]),
        ),
        (&roles, person("clerk", &[]), denied.clone()),
        (
            &of_groups(&["desk"]),
            person("ana", &[]),
            granted(None, &["desk"], &[]),
        ),
        (
            &of_groups(&["desk", "all", "leads"]),
            person("ben", &["clerk"]),
            granted(None, &["desk", "all"], &["clerk"]),
        ),
        (&of_groups(&["desk"]), person("eva", &[]), denied.clone()),
        (&of_groups(&["absent"]), person("ana", &[]), denied.clone()),
        // A cycle of groups ends at the nesting limit.
        (
            &of_groups(&["loop"]),
            person("zoe", &[]),
            granted(None, &["loop"], &[]),
        ),
        (&of_groups(&["loop"]), person("eve", &[]), denied.clone()),
    ];
    for (policy, who, expected) in cases {
        let verdict = may_decide(policy, &decider(who.clone(), Vec::new(), None), None);
        assert_eq!(verdict, expected, "{who:?} on {policy:?}");
    }
}

#[test]
fn group_nesting_is_limited() {
    let deep: BTreeMap<String, Vec<String>> = (0..20)
        .map(|n| (format!("g{n}"), vec![format!("group:g{}", n + 1)]))
        .chain([("g20".to_owned(), vec!["ana".to_owned()])])
        .collect();
    let groups = Groups::from_names(&deep);
    let ana = person("ana", &[]);
    assert!(groups.contains("g13", &ana) && !groups.contains("g0", &ana));
}

#[test]
fn acting_for_somebody_needs_a_delegation() {
    let desk = of_groups(&["desk"]);
    let ana = || vec![person("ana", &["senior"])];
    let ben = || person("ben", &[]);
    let cases = [
        (
            decider(ben(), ana(), None),
            granted(Some("ana"), &["desk"], &["senior"]),
        ),
        (
            decider(ben(), ana(), Some("ana")),
            granted(Some("ana"), &["desk"], &["senior"]),
        ),
        (
            decider(ben(), Vec::new(), Some("ana")),
            DecisionAuthorization::Denied(Denial::NotDelegated),
        ),
        // The request names the caller as the person acted for: no delegation is used.
        (
            decider(ben(), ana(), Some("ben")),
            DecisionAuthorization::Denied(Denial::NotEligible),
        ),
        // The caller's own permission is checked first.
        (
            decider(person("kim", &["clerk"]), ana(), None),
            granted(None, &["desk"], &["clerk"]),
        ),
        (
            decider(ben(), vec![person("eva", &[])], None),
            DecisionAuthorization::Denied(Denial::NotEligible),
        ),
    ];
    for (who, expected) in cases {
        assert_eq!(may_decide(&desk, &who, None), expected, "{who:?}");
    }
}

#[test]
fn self_approval_is_denied_also_through_a_delegation() {
    let policy = DecisionPolicy {
        no_self_approval: true,
        initiators: vec![Principal::new("ina"), Principal::new("fay")],
        ..DecisionPolicy::default()
    };
    let denied = DecisionAuthorization::Denied(Denial::SelfApproval);
    let ina = || person("ina", &[]);
    let ana = || person("ana", &[]);
    let cases = [
        (decider(ina(), Vec::new(), None), denied.clone()),
        (decider(ana(), vec![ina()], Some("ina")), denied.clone()),
        (decider(ina(), vec![ana()], Some("ana")), denied.clone()),
        (decider(ina(), vec![ana()], None), denied.clone()),
        (decider(ana(), vec![ina()], None), granted(None, &[], &[])),
    ];
    for (who, expected) in cases {
        assert_eq!(may_decide(&policy, &who, None), expected, "{who:?}");
    }
    let unknown = DecisionPolicy {
        initiators: Vec::new(),
        ..policy
    };
    let anybody = decider(ina(), Vec::new(), None);
    assert_eq!(
        may_decide(&unknown, &anybody, None),
        granted(None, &[], &[])
    );
}

#[test]
fn link_decides_only_when_the_policy_binds_no_identity() {
    let free = DecisionPolicy::default();
    assert_eq!(
        may_decide_by_link(&free, None, None),
        granted(None, &[], &[])
    );
    for bound in [
        DecisionPolicy {
            auth_required: true,
            ..free.clone()
        },
        DecisionPolicy {
            no_self_approval: true,
            ..free.clone()
        },
        of_groups(&["desk"]),
        DecisionPolicy {
            approvers: names(&["ana"]),
            ..free
        },
    ] {
        let verdict = may_decide_by_link(&bound, None, None);
        assert_eq!(
            verdict,
            DecisionAuthorization::Denied(Denial::LinkTooWeak),
            "{bound:?}"
        );
    }
}

#[test]
fn key_or_link_of_one_person_votes_as_that_person_only() {
    let free = DecisionPolicy::default();
    let other = DecisionAuthorization::Denied(Denial::OtherVoter);
    let ana = decider(person("ana", &[]), Vec::new(), None);
    assert_eq!(may_decide(&free, &ana, Some("ben")), other);
    assert_eq!(
        may_decide(&free, &ana, Some("ana")),
        granted(None, &[], &[])
    );
    let acting = decider(person("ana", &[]), vec![person("boss", &[])], Some("boss"));
    let for_boss = granted(Some("boss"), &[], &[]);
    assert_eq!(may_decide(&free, &acting, Some("boss")), for_boss);
    assert_eq!(may_decide(&free, &acting, Some("ana")), other);
    // A key that is nobody's may be shared, and so may its link.
    for shared in ["key_live_0123456789abcdef", BOOTSTRAP_PRINCIPAL] {
        let many = decider(person(shared, &[]), Vec::new(), None);
        assert_eq!(
            may_decide(&free, &many, Some("ben")),
            granted(None, &[], &[])
        );
    }
    let shared = Principal::new("key_live_0123456789abcdef");
    let by_link = may_decide_by_link(&free, Some(&shared), Some("ben"));
    assert_eq!(by_link, granted(None, &[], &[]));
    for name in ["key_live_0123456789abcdeg", "key_live_ana", "ana"] {
        let own = Principal::new(name);
        assert_eq!(may_decide_by_link(&free, Some(&own), Some("ben")), other);
        let DecisionAuthorization::Granted(decider) = may_decide_by_link(&free, Some(&own), None)
        else {
            panic!("{name} may not decide");
        };
        assert_eq!(decider.link_of, Some(own));
    }
}
