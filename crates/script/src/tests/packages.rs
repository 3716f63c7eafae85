//! Imports: relative files, installed packages, and what is refused.

use super::fixtures::*;
use crate::{CallEventKind, ScriptLimits};
use serde_json::json;
use std::process::Command;

const FLOW: &str = "import { greet } from 'small-lib';\nimport { deep } from 'small-lib/deep';\nimport x from '@scope/legacy';
    export async function* f(ctx) { yield ctx.say(greet() + deep + x); }";

fn text_of(agents: &Agents) -> String {
    let module = agents.load("demo");
    assert_eq!(module.errors, []);
    let set = module.sources[&module.flows[0].version].clone();
    say_text(start(set, "f", json!({}), ScriptLimits::default()).next(None))
}

/// §10.4: packages next to the agent's folder, by `exports`, `module` and `main`.
#[test]
fn packages_are_resolved_next_to_the_folder() {
    let agents = Agents::with(&[
        ("demo/agent.ts", AGENT),
        ("demo/flows/f.ts", FLOW),
        (
            "node_modules/small-lib/package.json",
            r#"{ "exports": { ".": { "types": "./x.d.ts", "import": "./esm/index.js", "require": "./index.cjs" }, "./*": "./esm/*.js" } }"#,
        ),
        (
            "node_modules/small-lib/esm/index.js",
            "import { word } from 'nested';\nexport const greet = () => word;",
        ),
        (
            "node_modules/small-lib/esm/deep.js",
            "export const deep = ' deep ';",
        ),
        (
            "node_modules/small-lib/node_modules/nested/package.json",
            r#"{ "main": "lib.js", "type": "module" }"#,
        ),
        (
            "node_modules/small-lib/node_modules/nested/lib.js",
            "export const word = 'hello';",
        ),
        (
            "node_modules/@scope/legacy/package.json",
            r#"{ "main": "cjs.js", "module": "./esm.js" }"#,
        ),
        (
            "node_modules/@scope/legacy/esm.js",
            "export default 'legacy';",
        ),
    ]);
    assert_eq!(text_of(&agents), "hello deep legacy");
    agents.write(
        "demo/node_modules/small-lib/package.json",
        r#"{ "type": "module" }"#,
    );
    agents.write(
        "demo/node_modules/small-lib/index.js",
        "export const greet = () => 'own';",
    );
    agents.write(
        "demo/node_modules/small-lib/deep.js",
        "export const deep = ' copy ';",
    );
    assert_eq!(text_of(&agents), "own copy legacy");
}

/// §10.4: what is not installed is named, with the place to install it.
#[test]
fn missing_package_is_named() {
    let module = demo(&[(
        "flows/f.ts",
        "\nimport { z } from 'zod';\nexport async function* f(ctx) { z; }",
    )]);
    let error = &module.errors[0];
    assert_eq!(
        (error.file.as_str(), error.line, error.column),
        ("flows/f.ts", Some(2), Some(19))
    );
    for part in [
        "'zod'",
        "npm install zod",
        "agent's folder",
        "JSON Schema literal",
    ] {
        assert!(error.message.contains(part), "{}", error.message);
    }
}

/// §10.4: CommonJS, Node's modules and files outside are refused.
#[test]
fn what_cannot_run_in_the_sandbox_is_refused() {
    let agents = Agents::with(&[
        ("agents/demo/agent.ts", AGENT),
        ("outside.ts", "export const x = 1;"),
        (
            "agents/node_modules/old/package.json",
            r#"{ "main": "index.js" }"#,
        ),
        (
            "agents/node_modules/wrong/package.json",
            r#"{ "module": "index.js" }"#,
        ),
        ("agents/node_modules/wrong/index.js", "module.exports = 1;"),
    ]);
    for (specifier, expected) in [
        ("old", "no ES module build"),
        ("wrong", "not an ES module"),
        ("node:fs", "no Node API"),
        ("/etc/passwd", "only relative paths"),
        ("../../../outside", "outside of the agents' folder"),
        ("./missing", "there is no file 'flows/missing'"),
        ("wrong/../../../outside.ts", "has no file"),
    ] {
        agents.write(
            "agents/demo/flows/f.ts",
            &format!("import x from '{specifier}';\nexport async function* f(ctx) {{ x; }}"),
        );
        let errors = agents.load("agents/demo").errors;
        assert_eq!(errors.len(), 1, "{specifier}: {errors:?}");
        assert!(
            errors[0].message.contains(expected),
            "{specifier}: {}",
            errors[0].message
        );
    }
}

/// §10.4: relative imports, also of files next to the folder, of JSON, and of modules that import each other.
#[test]
fn relative_imports_work() {
    let agents = Agents::with(&[
        ("demo/agent.ts", AGENT),
        ("demo/flows/f.ts", "import data from '../data.json' with { type: 'json' };\nimport { a } from '../lib';\nimport { s } from '../../shared/s.mjs';
            export async function* f(ctx) { const late = await import('../lib/late.ts'); yield ctx.say([data.n, a(), s, late.late].join()); }"),
        ("demo/data.json", r#"{ "n": 1, "__proto__": { "evil": true } }"#),
        ("demo/lib/index.ts", "import { b } from './b';\nexport const a = () => b();\nexport const word = 'cycle';"),
        ("demo/lib/b.ts", "import { word } from './index';\nexport const b = () => word;"),
        ("demo/lib/late.ts", "export const late: string = 'late';"),
        ("shared/s.mjs", "export const s = 'shared';"),
    ]);
    assert_eq!(text_of(&agents), "1,cycle,shared,late");
}

/// §10.4: the real `zod`, where npm can install it: JSON Schema, validation in the agent and in a flow.
#[test]
fn zod_runs_in_the_sandbox() {
    let agents = Agents::with(&[
        ("package.json", "{}"),
        ("demo/agent.ts", "import { z } from 'zod';\nimport { createAgent, withReply } from 'tandem';
            const order = z.object({ item: z.string(), count: z.number().int().min(1).optional() });
            export default createAgent({ prompt: 'p', outputSchema: withReply({ mood: z.string(), note: z.string().optional() }),
              tools: [{ name: 'order', parameters: order, handler: async (args) => order.parse(args) }] });"),
        ("demo/flows/f.ts", "import { z } from 'zod';\nexport async function* f(ctx) { yield ctx.confirm({ question: '?', responseSchema: z.object({ seats: z.number() }) }); }"),
    ]);
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--fetch-retries=0",
        "--fetch-timeout=20000",
        "zod@4",
    ]);
    match npm.current_dir(agents.folder.path()).output() {
        Ok(output) if output.status.success() => {}
        _ => {
            // Without npm the hand-written packages above prove the resolution.
            eprintln!("skipped: npm cannot install zod here");
            return;
        }
    }
    let module = agents.load("demo");
    assert_eq!(module.errors, []);
    let config = module.config.expect("sound");
    let parameters = &config["tools"][0]["parameters"];
    assert_eq!(
        (&parameters["$standard"], &parameters["vendor"]),
        (&json!(true), &json!("zod"))
    );
    assert_eq!(
        parameters["jsonSchema"]["properties"]["item"],
        json!({"type": "string"})
    );
    assert_eq!(
        config["outputSchema"]["jsonSchema"]["required"],
        json!(["reply", "mood"])
    );
    let code = module.code.expect("sound");
    let mut realm =
        crate::AgentRealm::create(&code, ScriptLimits::default(), &surroundings()).expect("sound");
    let (_, events) = realm.validate("/tools/0/parameters", &json!({"item": 7}), NOON_MS);
    let CallEventKind::Finished(Ok(result)) = &events[0].kind else {
        panic!("{events:?}")
    };
    assert_eq!(result["issues"][0]["path"], json!(["item"]));
    let (_, events) = realm.validate(
        "/outputSchema",
        &json!({"reply": "r", "mood": "good"}),
        NOON_MS,
    );
    let CallEventKind::Finished(Ok(result)) = &events[0].kind else {
        panic!("{events:?}")
    };
    assert_eq!(
        result["value"],
        json!({"mood": "good", "reply": "r", "modality": null, "sessionEnded": false})
    );
    let set = module.sources[&module.flows[0].version].clone();
    let mut run = start(set, "f", json!({}), ScriptLimits::default());
    assert_eq!(
        effect(run.next(None))["responseSchema"]["jsonSchema"]["required"],
        json!(["seats"])
    );
    let checked = run.validate_parked("/responseSchema", &json!({"seats": 2}));
    assert_eq!(
        checked,
        crate::ParkedCallStep::Returned(json!({"value": {"seats": 2}}))
    );
}
