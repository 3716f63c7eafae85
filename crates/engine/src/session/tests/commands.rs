//! Command lines and their arguments.

use super::schema;
use crate::session::command_line::{ADMIN_COMMANDS, BUILTIN_COMMANDS, CommandLine};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn text_with_a_slash_is_a_command() {
    // Z-22 (half: what is a command), Z-23 (half: the names)
    let table = [
        ("/help", Some(("help", ""))),
        ("  /HELP  me now ", Some(("help", "me now"))),
        ("/note\nbuy milk", Some(("note", "buy milk"))),
        ("/ÄNDERN x", Some(("ändern", "x"))),
        ("/", None),
        (" / help", None),
        ("help", None),
        ("", None),
        ("what is a/b", None),
    ];
    for (text, expected) in table {
        let read = CommandLine::parse(text);
        let read = read.as_ref().map(|line| (line.name.as_str(), line.args));
        assert_eq!(read, expected, "{text:?}");
    }
    assert_eq!(
        BUILTIN_COMMANDS.join(" "),
        "help reset usage text voice mirror dynamic"
    );
    assert_eq!(
        ADMIN_COMMANDS.join(" "),
        "takeover handback escalations resolve proxy"
    );
}

#[test]
fn admin_commands_have_their_action() {
    // Z-26 (half: the table), Z-252 (half: the action)
    let table = [
        ("/takeover u1", "hitl.takeover.start"),
        ("/handback", "hitl.takeover.end"),
        ("/resolve e1 approve", "hitl.escalation.resolve"),
        ("/escalations", "hitl.escalation.view"),
        ("/proxy stop #p1", "hitl.proxy.stop"),
        ("/proxy", "command.proxy"),
        ("/proxy stopping", "command.proxy"),
        ("/VIP", "command.vip"),
    ];
    for (text, action) in table {
        let line = CommandLine::parse(text).expect("a command");
        assert_eq!(line.admin_action(), action, "{text}");
    }
}

fn booking() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["day", "people"],
        "properties": {"day": {"type": "string"}, "people": {"type": "integer"},
            "quiet": {"type": "boolean"}, "note": {"type": "string"},
            "price": {"type": "number"}, "kind": {"enum": ["Window", "Aisle"]}},
        "propertyOrder": ["day", "people", "quiet", "price", "kind", "note"]})
}

#[test]
fn arguments_are_json_or_pairs_or_words() {
    // Z-25 (half: valid arguments)
    let table = [
        (
            r#"{"day": "Monday", "people": 2}"#,
            json!({"day": "Monday", "people": 2}),
        ),
        ("Monday 2", json!({"day": "Monday", "people": 2})),
        ("people=2 Monday", json!({"day": "Monday", "people": 2})),
        (
            "day=\"Monday noon\" people=2",
            json!({"day": "Monday noon", "people": 2}),
        ),
        (
            "Monday 2 yes 12.5 window please be quick",
            json!({"day": "Monday", "people": 2, "quiet": true, "price": 12.5, "kind": "Window",
                "note": "please be quick"}),
        ),
        (
            "\"a \\\"b\\\" c\" 2",
            json!({"day": "a \"b\" c", "people": 2}),
        ),
        ("what's=up 2", json!({"day": "what's=up", "people": 2})),
        ("day= people=2", json!({"day": "", "people": 2})),
    ];
    for (args, expected) in table {
        let text = format!("/book {args}");
        let line = CommandLine::parse(&text).expect("a command");
        assert_eq!(line.arguments(&schema(&booking())), Ok(expected), "{args}");
    }
}

#[test]
fn invalid_arguments_are_answered_with_a_usage_line() {
    // Z-25 (half: invalid arguments)
    let table = [
        ("", "\"day\" is a required property"),
        ("Monday", "\"people\" is a required property"),
        ("Monday two", "people: \"two\" is not of type \"integer\""),
        ("day=a day=b people=2", "day is given twice"),
        ("\"Monday 2", "a quote is not closed"),
        ("{\"day\": ", "not valid JSON"),
        (
            "{\"day\": \"x\", \"people\": 1, \"x\": 1}",
            "Additional properties are not allowed",
        ),
    ];
    for (args, expected) in table {
        let text = format!("/book {args}");
        let line = CommandLine::parse(&text).expect("a command");
        let bad = line.arguments(&schema(&booking())).expect_err(args);
        assert_eq!(
            bad.usage,
            "Usage: /book <day> <people> [quiet] [price] [kind] [note]"
        );
        assert!(
            bad.problems.iter().any(|p| p.contains(expected)),
            "{args}: {:?}",
            bad.problems
        );
    }
    let numbers = schema(&json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    let line = CommandLine::parse("/n 1 2").expect("a command");
    let bad = line.arguments(&numbers).expect_err("one too many");
    assert_eq!(bad.problems, ["there is no argument for \"2\""]);
}

#[test]
fn the_last_text_takes_the_rest_and_a_list_takes_all() {
    // Z-25 (half: positional words)
    let note = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let line = CommandLine::parse("/note don't forget  milk").expect("a command");
    assert_eq!(
        line.arguments(&schema(&note)),
        Ok(json!({"text": "don't forget milk"}))
    );
    let sum = json!({"type": "object", "required": ["n"],
        "properties": {"n": {"type": "array", "items": {"type": "integer"}}}});
    let line = CommandLine::parse("/sum 1 2 3").expect("a command");
    assert_eq!(line.arguments(&schema(&sum)), Ok(json!({"n": [1, 2, 3]})));
}

#[test]
fn arguments_of_a_realm_schema_are_pairs_unless_it_names_its_properties() {
    let line = CommandLine::parse("/x a=1 b=\"two words\"").expect("a command");
    let standard = schema(&json!({"$standard": true}));
    assert_eq!(
        line.arguments(&standard),
        Ok(json!({"a": "1", "b": "two words"}))
    );
    let line = CommandLine::parse("/x 5").expect("a command");
    assert!(line.arguments(&standard).is_err());
    let described = schema(&json!({"$standard": true,
        "jsonSchema": {"properties": {"n": {"type": "integer"}}}}));
    assert_eq!(line.arguments(&described), Ok(json!({"n": 5})));
}

proptest! {
    #[test]
    fn reading_a_command_never_panics(text in "/\\PC{0,200}|.{0,200}|/x [a-z=\"'\\\\ {}]{0,80}") {
        if let Some(line) = CommandLine::parse(&text) {
            prop_assert!(!line.name.is_empty());
            prop_assert!(!line.admin_action().is_empty());
            if let Err(bad) = line.arguments(&schema(&booking())) {
                prop_assert!(!bad.problems.is_empty());
            }
        }
    }
}
