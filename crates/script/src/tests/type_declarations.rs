//! `tandem.d.ts` declares what exists.

use super::fixtures::*;
use crate::{Argument, CallEventKind, TYPE_DECLARATIONS};
use serde_json::{Map, Value, json};

/// Whether the declarations of an interface have a member of this name.
fn declares(interface: &str, member: &str) -> bool {
    let start = TYPE_DECLARATIONS
        .find(&format!("interface {interface} "))
        .or_else(|| TYPE_DECLARATIONS.find(&format!("interface {interface}<")));
    let body = &TYPE_DECLARATIONS[start.unwrap_or_else(|| panic!("no interface {interface}"))..];
    let end = body.find("\n  }").expect("an end");
    body[..end].lines().map(str::trim).any(|line| {
        let line = line.strip_prefix("readonly ").unwrap_or(line);
        [":", "?:", "(", "<"]
            .iter()
            .any(|mark| line.starts_with(&format!("{member}{mark}")))
    })
}

fn undeclared(found: &Value, interfaces: &[&str]) -> Vec<String> {
    let names = found.as_array().expect("a list").iter();
    names
        .map(|name| name.as_str().expect("a name").to_owned())
        .filter(|name| !interfaces.iter().any(|interface| declares(interface, name)))
        .collect()
}

/// Every member of `ctx` and every export of the built-in module is declared.
#[test]
fn everything_that_exists_is_declared() {
    let mut run = flow(
        "yield { type: 'x', names: Object.keys(ctx), session: Object.keys(ctx.session), kv: Object.keys(ctx.session.kv), transport: Object.keys(ctx.resources.transport), store: Object.keys(ctx.resources.domainStore) };",
    );
    let found = effect(run.next(None));
    let none: Vec<String> = Vec::new();
    assert_eq!(
        undeclared(
            &found["names"],
            &["FlowContext", "CommonContext", "FlowHelpers"]
        ),
        none
    );
    assert_eq!(undeclared(&found["session"], &["Session"]), none);
    assert_eq!(undeclared(&found["kv"], &["SessionKv"]), none);
    assert_eq!(undeclared(&found["transport"], &["Transport"]), none);
    assert_eq!(undeclared(&found["store"], &["DomainStore"]), none);
    let mut realm =
        realm("{ prompt: 'p', names: (ctx) => Object.keys(ctx), exports: () => Object.keys(t) }");
    let (_, events) = realm.call("/names", &[Argument::Context], &Map::new(), 0);
    let CallEventKind::Finished(Ok(names)) = &events[0].kind else {
        panic!("{events:?}")
    };
    assert_eq!(undeclared(names, &["AgentContext", "CommonContext"]), none);
    let (_, events) = realm.call("/exports", &[], &Map::new(), 0);
    let CallEventKind::Finished(Ok(exports)) = &events[0].kind else {
        panic!("{events:?}")
    };
    for name in exports.as_array().expect("a list") {
        let function = format!("export function {}", name.as_str().expect("a name"));
        assert!(TYPE_DECLARATIONS.contains(&function), "{function}");
    }
    assert!(
        !exports
            .as_array()
            .expect("a list")
            .contains(&json!("default"))
    );
}

/// The declarations are TypeScript.
#[test]
fn declarations_are_typescript() {
    let module = demo(&[(
        "flows/types.ts",
        &TYPE_DECLARATIONS.replace("declare module 'tandem'", "declare module 'x'"),
    )]);
    assert_eq!(module.errors, []);
}
