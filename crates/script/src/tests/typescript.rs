//! TypeScript without a type checker (§10.4).

use super::fixtures::*;
use crate::{FlowStep, ScriptLimits};
use serde_json::json;

fn runs(source: &str) -> String {
    let (set, _) = source_of(source);
    say_text(start(set, "main", json!({}), ScriptLimits::default()).next(None))
}

/// §10.4: types are removed: interfaces, generics, `as`, `satisfies`, `!`, class fields, type imports.
#[test]
fn types_are_removed() {
    let text = runs(
        "import type { FlowContext } from 'tandem';
         import { defineFlow, FlowContext as Context } from 'tandem';
         interface Order { id: string; items?: readonly string[] }
         type Maybe<T> = T | undefined;
         declare const nothing: string;
         abstract class Base<T> { protected abstract name(): T; declare ghost: number; }
         class Basket<T extends object> { private items: T[] = []; static readonly limit = 1_000;
           add(item: T): this { this.items.push(item); return this; } get size(): number { return this.items.length; } }
         const pick = <T,>(xs: readonly T[], i: number): Maybe<T> => xs[i];
         function over(a: string): string; function over(a: number): string; function over(a: any) { return `${a}`; }
         export async function* main(this: void, ctx: FlowContext & Context): AsyncGenerator<unknown, void, unknown> {
           const order = { id: 'o1' } satisfies Order as Order;
           const size: number = new Basket<Order>().add(order).add(order).size;
           yield { type: 'say' as const, text: `${size}/${Basket.limit}/${order.items?.length ?? 'none'}/${pick(['a', 'b'], 1)!}/${over(1)}` };
         }",
    );
    assert_eq!(text, "2/1000/none/b/1");
}

/// §10.4: constructs that need code become code.
#[test]
fn enums_namespaces_and_parameter_properties_become_code() {
    let text = runs(
        "enum Color { Red, Green = 'g', Blue = Red + 5 }
         const enum Size { Small = 1 }
         namespace Tools { export const double = (n: number) => n * 2; }
         class Point { constructor(private x: number, public readonly y = 3) {} sum() { return this.x + this.y; } }
         export const main = async function* (ctx) {
           yield { type: 'say', text: [Color.Red, Color[0], Color.Green, Color.Blue, Size.Small, Tools.double(4), new Point(1).sum()].join() }; };",
    );
    assert_eq!(text, "0,Red,g,5,1,8,4");
}

/// §10.4: constructs that cannot be removed are reported with their place.
#[test]
fn what_cannot_be_removed_is_reported() {
    let module = demo(&[
        ("flows/a.ts", "const x = 1;\nexport = x;"),
        (
            "flows/b.ts",
            "\nimport fs = require('fs');\nexport async function* b(ctx) { fs; }",
        ),
    ]);
    assert!(module.flows.is_empty());
    let places: Vec<_> = module
        .errors
        .iter()
        .map(|e| (e.file.as_str(), e.line))
        .collect();
    assert_eq!(
        places,
        [("flows/a.ts", Some(2)), ("flows/b.ts", Some(2))],
        "{:?}",
        module.errors
    );
}

/// Positions of errors at run time are those of the author's file, also in an imported module.
#[test]
fn positions_survive_the_removal_of_types() {
    let module = demo(&[
        (
            "flows/main.ts",
            "import { check } from '../lib/check';\nexport async function* main(ctx: unknown) {\n  check({ a: 1 });\n}",
        ),
        (
            "lib/check.ts",
            "enum Kind {\n  A,\n  B,\n}\n\ntype T = {\n  a: number;\n};\n\nexport function check(t: T): void {\n  if (Kind.A === 0) throw new Error('here');\n}",
        ),
    ]);
    let set = module.sources[&module.flows[0].version].clone();
    let FlowStep::Failed(failure) =
        start(set, "main", json!({}), ScriptLimits::default()).next(None)
    else {
        panic!("it throws");
    };
    let position = failure.position.expect("a position");
    assert_eq!(
        (position.file.as_str(), position.line, position.column),
        ("lib/check.ts", 11, 31)
    );
}

/// A JavaScript file is run as it is written.
#[test]
fn javascript_keeps_its_positions() {
    let module = demo(&[(
        "flows/main.js",
        "export default async function* (ctx) {\n\n  null.x;\n}",
    )]);
    let set = module.sources[&module.flows[0].version].clone();
    let FlowStep::Failed(failure) =
        start(set, "main", json!({}), ScriptLimits::default()).next(None)
    else {
        panic!("it throws");
    };
    assert_eq!(failure.position.expect("a position").line, 3);
    let module = demo(&[("flows/typed.js", "const x: number = 1;")]);
    assert_eq!(module.errors[0].line, Some(1), "no types in JavaScript");
}
