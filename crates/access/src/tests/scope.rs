use super::identity;
use crate::{Denied, Scope, ScopeSet};

#[test]
fn every_scope_reads_back_from_its_name() {
    for scope in Scope::all() {
        assert_eq!(Scope::parse(scope.as_str()), Some(*scope));
    }
    let names: Vec<_> = Scope::all().iter().map(|scope| scope.as_str()).collect();
    assert_eq!(
        names.join(" "),
        "manifest:read runs:create runs:read runs:cancel artifacts:read webhooks:manage \
         approvals:respond conversations:takeover audit:read tandem:workflows tandem:keys \
         tandem:groups tandem:test"
    );
}

#[test]
fn names_are_exact() {
    for text in [
        "",
        "runs",
        "runs:",
        "Runs:Read",
        " runs:read",
        "runs:*",
        "*",
    ] {
        assert_eq!(Scope::parse(text), None, "{text:?}");
    }
}

#[test]
fn no_scope_implies_another() {
    for held in Scope::all() {
        let mut caller = identity("key");
        caller.scopes = [*held].into_iter().collect();
        for required in Scope::all() {
            let expected = if held == required {
                Ok(())
            } else {
                Err(Denied { scope: *required })
            };
            assert_eq!(caller.require_scope(*required), expected);
        }
    }
}

#[test]
fn a_set_survives_storage_and_an_unknown_name_grants_nothing() {
    let all: ScopeSet = Scope::all().iter().copied().collect();
    assert_eq!(ScopeSet::from_stored(&all.to_stored()), all);

    let stored = ["runs:read".to_owned(), "runs:everything".to_owned()];
    let set = ScopeSet::from_stored(&stored);
    assert_eq!(set.iter().collect::<Vec<_>>(), [Scope::RunsRead]);
    assert!(ScopeSet::from_stored(&stored[1..]).is_empty());
}

#[test]
fn covers_means_superset() {
    let one: ScopeSet = [Scope::RunsRead].into_iter().collect();
    let two: ScopeSet = [Scope::RunsRead, Scope::Keys].into_iter().collect();
    assert!(two.covers(one) && two.covers(two) && one.covers(ScopeSet::default()));
    assert!(!one.covers(two));
}

#[test]
fn roles_are_exact() {
    let mut caller = identity("key");
    caller.roles = vec!["conformance".to_owned()].into();
    assert!(caller.has_role("conformance"));
    assert!(!caller.has_role("conform"));
}
