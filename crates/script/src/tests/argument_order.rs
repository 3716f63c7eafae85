//! The order in which the arguments of commands were written.

use super::fixtures::*;
use serde_json::json;

/// Z-25 (half: the order is taken when the agent is loaded)
#[test]
fn schemas_of_commands_keep_the_order_of_their_properties() {
    let module = demo(&[
        (
            "agent.ts",
            "export default { prompt: 'x', commands: {
               book: { args: { type: 'object', properties: { when: {}, people: {}, at: {} } }, handler: async () => 'ok' },
               plain: { handler: async () => 'ok' },
               text: { args: { type: 'string' }, handler: async () => 'ok' },
               trap: { args: { type: 'object', get properties() { return { a: {} }; } }, handler: async () => 'ok' },
               usage: false,
             } };",
        ),
        (
            "commands/note.ts",
            "const shape = { type: 'object', properties: { who: { type: 'string' }, text: { type: 'string' } } };
             export default { handler: async () => 'ok', args: {
               '~standard': { version: 1, vendor: 'demo', validate: (value) => ({ value }) },
               toJSONSchema: () => shape } };",
        ),
    ]);
    assert_eq!(module.errors, []);
    let config = module.config.expect("a configuration");
    let order = |path: &str| config.pointer(path).cloned();
    let book = order("/commands/book/args/propertyOrder");
    assert_eq!(book, Some(json!(["when", "people", "at"])));
    let note = order("/commands/note/args/jsonSchema/propertyOrder");
    assert_eq!(note, Some(json!(["who", "text"])));
    assert_eq!(order("/commands/text/args/propertyOrder"), None);
    assert_eq!(config["commands"]["usage"], json!(false));
}
