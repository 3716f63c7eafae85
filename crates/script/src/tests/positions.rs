//! Places of settings in files.

use crate::locate;

const AGENT: &str = "\
import { createAgent, defineTool } from 'tandem';

export default createAgent({
  prompt: 'x',
  tools: [
    { name: 'a' },
    defineTool({ name: 'b', parameters: { type: 'nonsense' } }),
  ],
  'flowRouter': { mode: 'detector' },
} satisfies object);
";

#[test]
fn settings_are_found_in_the_agent_file() {
    let table = [
        ("", (3, 16)),
        ("/prompt", (4, 3)),
        ("/tools/1/parameters/type", (7, 43)),
        ("/tools/0/description", (6, 5)),
        ("/flowRouter/fallback", (9, 3)),
        ("/nothing", (3, 16)),
    ];
    for (pointer, expected) in table {
        assert_eq!(
            locate("agent.ts", AGENT, pointer),
            Some(expected),
            "{pointer}"
        );
    }
    let named = "const agent = { prompt: '' };\nexport default agent;";
    assert_eq!(locate("agent.js", named, "/prompt"), Some((1, 17)));
    let json = "{\n  \"prompt\": \"\"\n}";
    assert_eq!(locate("agent.json", json, "/prompt"), Some((2, 3)));
    assert_eq!(locate("agent.ts", "export default {", "/prompt"), None);
}

#[test]
fn settings_of_flows_are_found_in_their_files() {
    let source = "\
export const quote = {
  run: async function* () {},
  inputSchema: { type: 'nonsense' },
};
export default { run: async function* () {}, asTool: 7 };
";
    let at = |pointer: &str| locate("flows/other.ts", source, pointer);
    assert_eq!(at("/flows/quote/inputSchema/type"), Some((3, 18)));
    assert_eq!(at("/flows/other/asTool"), Some((5, 46)));
    assert_eq!(at("/flows/unknown/asTool"), None);
}
