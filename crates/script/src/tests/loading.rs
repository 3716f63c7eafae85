//! Agents from folders and files (§10.4).

use super::fixtures::*;
use crate::{AgentModule, ScriptLimits};
use serde_json::json;

fn flow_ids(module: &AgentModule) -> Vec<&str> {
    module
        .flows
        .iter()
        .map(|flow| flow.flow_id.as_str())
        .collect()
}

/// Z-213 (half: every accepted form of a flow, several in one file)
#[test]
fn accepted_forms_of_flows() {
    let module = demo(&[
        ("flows/hello.ts", "export default async function* (ctx) { yield ctx.say('default'); }"),
        ("flows/many.ts", "import { defineFlow } from 'tandem';
            export const booking = async function* (ctx) { yield ctx.say('booking'); };
            export async function* refund(ctx) { yield ctx.say('refund'); }
            export const quick = defineFlow(async function* (ctx) { yield ctx.say('quick'); });
            export const quote = defineFlow({ run: async function* (ctx) { yield ctx.say('quote'); }, description: 'Makes a quote',
              inputSchema: { type: 'object', required: ['item'] }, asTool: { alias: 'make_quote' } });
            const hidden = async function* (ctx: FlowContext) { yield ctx.say('hidden'); };
            async function* declared(ctx) { yield ctx.say('declared'); }
            const registered = defineFlow({ run: async function* (ctx) { yield ctx.say('registered'); } });
            export const price = async (x) => x * 2;
            export const limit = 5;"),
        (
            "flows/plain.js",
            "import { defineFlow } from 'zupa';\nexport default defineFlow({ asTool: true, run: async function* (ctx) { yield ctx.say('plain'); } });",
        ),
        ("flows/named.mjs", "const named = async function* (ctx) { yield { type: 'say', text: 'named' }; };\nexport { named as renamed };"),
    ]);
    assert_eq!(module.errors, []);
    assert_eq!(
        flow_ids(&module),
        [
            "hello",
            "booking",
            "refund",
            "quick",
            "quote",
            "hidden",
            "declared",
            "registered",
            "renamed",
            "plain"
        ]
    );
    for flow in &module.flows {
        let set = module.sources[&flow.version].clone();
        let text =
            say_text(start(set, &flow.flow_id, json!({}), ScriptLimits::default()).next(None));
        let expected = match flow.flow_id.as_str() {
            "hello" => "default",
            "renamed" => "named",
            other => other,
        };
        assert_eq!(text, expected);
    }
    let quote = module
        .flows
        .iter()
        .find(|flow| flow.flow_id == "quote")
        .expect("loaded");
    assert_eq!(quote.description.as_deref(), Some("Makes a quote"));
    assert_eq!(
        quote.input_schema,
        Some(json!({"type": "object", "required": ["item"]}))
    );
    assert_eq!(quote.as_tool, Some(json!({"alias": "make_quote"})));
    assert_eq!(quote.file, "flows/many.ts");
}

/// Z-213 (half: one function under two names is one flow)
#[test]
fn function_with_two_names_is_one_flow() {
    let module = demo(&[(
        "flows/booking.ts",
        "const booking = async function* (ctx) {};\nexport default booking;",
    )]);
    assert_eq!(module.errors, []);
    assert_eq!(flow_ids(&module), ["booking"]);
}

/// Z-213 (half: a sync generator is refused with the remedy and its place; other files load)
#[test]
fn sync_generator_is_refused_with_the_remedy() {
    for late in [
        "\nexport const late = function* (ctx) { yield 1; };",
        "\nexport function* late(ctx) { yield 1; }",
        "\nconst late = function* (ctx) { yield 1; };",
        "\nexport default async (ctx) => {};",
        "\nexport const late = { run: async (ctx) => {} };",
    ] {
        let module = demo(&[
            ("flows/late.ts", late),
            ("flows/fine.ts", "export async function* fine(ctx) {}"),
        ]);
        assert_eq!(flow_ids(&module), ["fine"]);
        assert_eq!(module.errors.len(), 1, "{late}");
        let error = &module.errors[0];
        assert_eq!(
            (error.file.as_str(), error.line),
            ("flows/late.ts", Some(2)),
            "{late}"
        );
        assert!(
            error.message.contains("async function*"),
            "{}",
            error.message
        );
    }
    let helper = demo(&[(
        "flows/a.ts",
        "function* ids() { yield 1; }\nexport async function* a(ctx) { for (const i of ids()) yield ctx.say(`${i}`); }",
    )]);
    assert_eq!(helper.errors, [], "a generator that is no flow");
}

/// Z-213 (half: an id given twice is an error, in one file, in two, and beside the agent's own flows)
#[test]
fn duplicate_flow_ids_are_errors() {
    let module = demo(&[
        (
            "agent.ts",
            "export default { prompt: 'p', flows: { own: async function* (ctx) {} } };",
        ),
        ("flows/a.ts", "export async function* twice(ctx) {}"),
        ("flows/b.ts", "export async function* twice(ctx) {}"),
        ("flows/own.ts", "export default async function* (ctx) {}"),
        (
            "flows/same.ts",
            "export default async function* (ctx) {}\nexport async function* same(ctx) {}",
        ),
    ]);
    assert_eq!(flow_ids(&module), ["own", "twice"]);
    let told: Vec<_> = module
        .errors
        .iter()
        .map(|e| (e.file.as_str(), e.message.as_str()))
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told[0].0 == "flows/b.ts" && told[0].1.contains("flows/a.ts"),
        "{told:?}"
    );
    assert!(
        told[1].0 == "flows/own.ts" && told[1].1.contains("agent.ts"),
        "{told:?}"
    );
    assert!(told[2].0 == "flows/same.ts", "{told:?}");
}

/// Z-43 (half: flows of the configuration, bare and registered; a sync one is refused)
#[test]
fn flows_of_the_configuration_are_loaded() {
    let module = demo(&[("agent.ts", "import { createAgent } from 'zupa';
        export default createAgent({ prompt: 'p', flows: {
          hello: async function* (ctx) { yield { type: 'say', text: 'Hello ' + ctx.user.externalUserId }; },
          quote: { run: async function* (ctx) { yield { type: 'say', text: 'Quote for ' + ctx.input.item }; }, description: 'd', asTool: true },
          late: function* (ctx) {} } });")]);
    assert_eq!(flow_ids(&module), ["hello", "quote"]);
    assert!(
        module.errors[0].message.contains("'late'"),
        "{:?}",
        module.errors
    );
    let set = module.sources[&module.flows[1].version].clone();
    let mut run = start(
        set,
        "quote",
        json!({"input": {"item": "chair"}}),
        ScriptLimits::default(),
    );
    assert_eq!(say_text(run.next(None)), "Quote for chair");
}

/// §10.4: a file that does not parse is reported with its place and leaves the others.
#[test]
fn broken_files_are_reported_with_their_place() {
    let module = demo(&[
        (
            "flows/bad.ts",
            "// first line\nconst booking = async function* (ctx { yield",
        ),
        (
            "flows/late.ts",
            "\nexport const a: number = missing;\nexport async function* late(ctx) {}",
        ),
        ("flows/odd.js", "\n\nlet x = 1; let x = 2;"),
        ("flows/fine.ts", "export async function* fine(ctx) {}"),
    ]);
    assert_eq!(flow_ids(&module), ["fine"]);
    let places: Vec<_> = module
        .errors
        .iter()
        .map(|e| (e.file.as_str(), e.line))
        .collect();
    assert_eq!(
        places,
        [
            ("flows/bad.ts", Some(2)),
            ("flows/late.ts", Some(2)),
            ("flows/odd.js", Some(3))
        ]
    );
    assert!(
        module.errors.iter().all(|e| e.column.is_some()),
        "{:?}",
        module.errors
    );
    assert!(module.config.is_some());
}

/// §10.4: configuration as JSON and TOML, errors with their place.
#[test]
fn agents_as_data() {
    let json_agent = demo(&[
        (
            "agent.json",
            r#"{ "prompt": "p", "tools": [{ "name": "n", "kind": "record" }] }"#,
        ),
        ("flows/f.ts", "export async function* f(ctx) {}"),
    ]);
    assert_eq!(json_agent.errors, []);
    assert_eq!(
        json_agent.config.expect("sound")["tools"][0]["kind"],
        "record"
    );
    let toml_agent = demo(&[(
        "agent.toml",
        "prompt = \"p\"\n[hitl.confirmDefaults]\ntimeoutSeconds = 300\n",
    )]);
    assert_eq!(
        toml_agent.config.expect("sound")["hitl"]["confirmDefaults"]["timeoutSeconds"],
        300
    );
    let broken = demo(&[("agent.json", "{\n  \"prompt\": }")]);
    assert_eq!(
        (
            broken.errors[0].file.as_str(),
            broken.errors[0].line,
            broken.config
        ),
        ("agent.json", Some(2), None)
    );
    let broken = demo(&[("agent.toml", "a = 1\nb = = 2\n")]);
    assert_eq!(
        (broken.errors[0].file.as_str(), broken.errors[0].line),
        ("agent.toml", Some(2))
    );
}

/// §10.4: one file may be the whole agent.
#[test]
fn single_file_is_an_agent() {
    let agents = Agents::with(&[(
        "solo.ts",
        "export default { prompt: 'p', flows: { hi: async function* (ctx) {} } };",
    )]);
    let module = agents.load("solo.ts");
    assert_eq!(
        (module.agent_id.as_str(), flow_ids(&module)),
        ("solo", vec!["hi"])
    );
    assert_eq!(module.errors, []);
}

/// §10.4: tools and commands of their folders are part of the configuration.
#[test]
fn tools_and_commands_come_from_their_folders() {
    let module = demo(&[
        (
            "agent.ts",
            "export default { prompt: 'p', tools: [{ name: 'first', handler: async () => 1 }], commands: { usage: false } };",
        ),
        (
            "tools/price.ts",
            "import { defineTool } from 'tandem';\nexport default defineTool({ description: 'd', handler: async (args, ctx) => 40 });",
        ),
        (
            "tools/more.js",
            "export const stock = { name: 'in_stock', handler: async () => true };\nexport const rate = 1;",
        ),
        (
            "commands/note.ts",
            "export default { description: 'Remember', handler: async (ctx, args) => {} };",
        ),
    ]);
    assert_eq!(module.errors, []);
    let config = module.config.expect("sound");
    let names: Vec<_> = config["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|t| t["name"].clone())
        .collect();
    assert_eq!(names, ["first", "in_stock", "price"]);
    assert_eq!(config["tools"][2]["handler"], json!({"$fn": true}));
    assert_eq!(
        config["commands"],
        json!({"usage": false, "note": {"description": "Remember", "handler": {"$fn": true}}})
    );
}

/// §10.4: an agent without a file, with two, without a default export.
#[test]
fn agent_file_is_required_once() {
    let agents = Agents::with(&[
        ("none/flows/f.ts", "export async function* f(ctx) {}"),
        ("two/agent.ts", AGENT),
        ("two/agent.json", "{}"),
    ]);
    let none = agents.load("none");
    assert!(
        none.errors[0].message.contains("agent.ts, agent.js"),
        "{:?}",
        none.errors
    );
    assert_eq!(flow_ids(&none), ["f"]);
    assert!(agents.load("two").errors[0].message.contains("keep one"));
    let module = demo(&[("agent.ts", "export const config = {};")]);
    assert!(
        module.errors[0]
            .message
            .contains("export default createAgent"),
        "{:?}",
        module.errors
    );
}

/// Z-214 (half: the version changes with the file and its imports, not with other files or with types)
#[test]
fn version_covers_the_file_and_its_imports() {
    let version = |flow: &str, library: &str, other: &str| {
        let module = demo(&[
            ("flows/f.ts", flow),
            ("lib/l.ts", library),
            ("flows/other.ts", other),
        ]);
        assert_eq!(module.errors, []);
        module
            .flows
            .iter()
            .find(|flow| flow.flow_id == "f")
            .expect("loaded")
            .version
            .clone()
    };
    let (flow, library, other) = (
        "import { a } from '../lib/l.js';\nexport async function* f(ctx: unknown) { yield a; }",
        "export const a = 1;",
        "export async function* other(ctx) {}",
    );
    let first = version(flow, library, other);
    assert_eq!(first.len(), 64);
    assert_eq!(
        first,
        version(flow, library, "export async function* another(ctx) {}")
    );
    assert_eq!(
        first,
        version(&flow.replace("unknown", "any"), library, other)
    );
    assert_ne!(first, version(flow, "export const a = 2;", other));
    assert_ne!(
        first,
        version(&flow.replace("yield a", "yield a + 1"), library, other)
    );
}

/// The sample of the interface page: everything an agent file may hold.
#[test]
fn sample_agent_file_loads() {
    let module = demo(&[("agent.ts", include_str!("sample_agent.ts"))]);
    assert_eq!(module.errors, []);
    let config = module.config.clone().expect("sound");
    assert_eq!(config["commands"]["usage"], json!(false));
    assert_eq!(config["beforeLLM"], json!({"$fn": true}));
    assert_eq!(
        config["flowRouter"]["outputSchema"]["properties"]["flow"],
        json!({"type": "string"})
    );
    assert_eq!(flow_ids(&module), ["hello", "quote"]);
}

/// A flow whose registration is malformed is reported, not left out.
#[test]
fn malformed_registration_is_reported() {
    let module = demo(&[(
        "flows/f.ts",
        "export const odd = { run: async function* (ctx) {}, description: 7 };",
    )]);
    assert_eq!((module.flows.len(), module.errors.len()), (0, 1));
    assert!(
        module.errors[0].message.contains("'odd'"),
        "{:?}",
        module.errors
    );
}
