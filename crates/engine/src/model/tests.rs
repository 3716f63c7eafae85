//! The formula of content keys, JSON recovery, answer checks, and the redaction of refusal texts.

use super::check_answer::{AnswerVerdict, check_answer};
use super::key::{RECIPE, content_key, semantic_request};
use super::recover::parse;
use super::refusal::redact_prompt;
use serde_json::{Value, json};
use tandem_record::{
    EnvelopeFault, MAX_NESTING, ModelAnswer, ModelMessage, ModelRefusal, ModelRequest, ModelRole,
    ModelStop, RecoveryPath,
};

fn message(role: ModelRole, content: &str) -> ModelMessage {
    ModelMessage {
        role,
        content: content.to_owned(),
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        provider: "OpenAI".to_owned(),
        model: "gpt-X".to_owned(),
        messages: vec![message(ModelRole::User, "zażółć\u{301}")],
        temperature: None,
        max_output_tokens: None,
        schema: None,
    }
}

fn answer(text: &str) -> ModelAnswer {
    ModelAnswer {
        text: Some(text.to_owned()),
        data: None,
        stop: ModelStop::End,
        refusal: None,
        usage: None,
    }
}

#[test]
fn content_keys_match_the_published_recipe() {
    // Computed by another implementation of RFC 8785.
    let full = ModelRequest {
        temperature: Some(1.0),
        max_output_tokens: Some(64),
        schema: Some(json!({"type": "object", "b": 1, "a": [0.5]})),
        ..request()
    };
    for (request, key) in [
        (
            request(),
            "29f78891323ae1032f66e99edba40d4881376ff11dfaac2be78ffc1833d492f1",
        ),
        (
            full,
            "d37f03570ddc5aaa782563039b454fd7966a5bd3f12c2aae2eb89272c6460531",
        ),
    ] {
        assert_eq!(content_key(&request), key);
    }
}

#[test]
fn every_request_field_changes_the_content_key() {
    let plain = semantic_request(&request());
    assert_eq!(plain["recipe"], RECIPE);
    assert!(plain.as_object().unwrap().values().all(|v| !v.is_null()));
    let other = [
        ModelRequest {
            provider: "other".to_owned(),
            ..request()
        },
        ModelRequest {
            model: "gpt-x".to_owned(),
            ..request()
        },
        ModelRequest {
            // The text looks the same but is composed of other code points.
            messages: vec![message(
                ModelRole::User,
                "zaz\u{307}o\u{301}łc\u{301}\u{301}",
            )],
            ..request()
        },
        ModelRequest {
            messages: vec![message(ModelRole::System, "zażółć\u{301}")],
            ..request()
        },
        ModelRequest {
            temperature: Some(0.0),
            ..request()
        },
        ModelRequest {
            max_output_tokens: Some(1),
            ..request()
        },
        ModelRequest {
            schema: Some(json!({})),
            ..request()
        },
    ];
    let mut keys: Vec<String> = other.iter().map(content_key).collect();
    keys.push(content_key(&request()));
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), other.len() + 1);
    let lower = ModelRequest {
        provider: "openai".to_owned(),
        ..request()
    };
    assert_eq!(content_key(&lower), content_key(&request()));
}

#[test]
fn json_is_recovered_from_fences_and_prose() {
    let fence = Some(RecoveryPath::MarkdownFence);
    let walked = Some(RecoveryPath::BraceWalker);
    for (text, value, path) in [
        ("{\"a\":1}", json!({"a": 1}), None),
        (" [1] \n", json!([1]), None),
        ("```json\n{\"a\":1}\n```", json!({"a": 1}), fence),
        ("Sure:\n```\nno\n```\n```json\n[2]\n```", json!([2]), fence),
        (
            "Here: {\"a\":\"}\\\"{\"} done",
            json!({"a": "}\"{"}),
            walked,
        ),
        ("{not} {\"a\":{\"b\":2}}", json!({"a": {"b": 2}}), walked),
    ] {
        let (found, how) = parse(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((found, how.map(|h| h.0)), (value, path), "{text}");
    }
    for hopeless in ["", "no braces", "{\"a\":", "```json\n{\"a\":1}", "}{"] {
        let found = parse(hopeless);
        assert!(
            found.is_none() || hopeless.starts_with("```"),
            "{hopeless}: {found:?}"
        );
    }
    assert!(parse(&"{".repeat(1 << 20)).is_none(), "and it ends");
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&nested(MAX_NESTING)).is_some());
    assert!(
        parse(&nested(MAX_NESTING + 1)).is_none(),
        "it could not be kept"
    );
}

fn verdict(answer: &ModelAnswer) -> String {
    let schema = json!({"type": "object", "required": ["ok"],
                        "properties": {"ok": {"type": "boolean"}}, "additionalProperties": false});
    let shape = tandem_schema::Schema::builtin(&schema);
    match check_answer(answer, Some(&shape), &tandem_schema::Meter::unlimited()).verdict {
        AnswerVerdict::Accepted(value) => format!("accepted {value}"),
        AnswerVerdict::Refused(_) => "refused".to_owned(),
        AnswerVerdict::Truncated => "truncated".to_owned(),
        AnswerVerdict::Unusable { fault, error } => format!("{} {error}", fault.as_str()),
    }
}

#[test]
fn answer_checks_run_in_order_and_errors_never_quote_the_answer() {
    let refused = ModelAnswer {
        refusal: Some(ModelRefusal::default()),
        stop: ModelStop::MaxTokens,
        ..answer("{\"ok\":true}")
    };
    let cut_off = ModelAnswer {
        stop: ModelStop::MaxTokens,
        ..answer("{\"ok\":true}")
    };
    let handed_over = ModelAnswer {
        text: None,
        data: Some(json!({"ok": false})),
        ..answer("")
    };
    for (answer, expected) in [
        (refused, "refused"),
        (cut_off, "truncated"),
        (handed_over, "accepted {\"ok\":false}"),
        (answer("{\"ok\":true}"), "accepted {\"ok\":true}"),
        (answer("s3cret prose"), "parse-error the answer is not JSON"),
        (
            answer("{\"ok\":\"s3cret\"}"),
            "schema-violation /properties/ok/type: `type` is not met",
        ),
        (
            answer("{\"ok\":true,\"s3cret\":1}"),
            "schema-violation /additionalProperties: `additionalProperties` is not met",
        ),
        (
            answer("{}"),
            "schema-violation /required: the property \"ok\" is missing",
        ),
    ] {
        let verdict_text = verdict(&answer);
        assert_eq!(verdict_text, expected);
        assert!(!verdict_text.contains("s3cret"));
    }
    assert_eq!(EnvelopeFault::ParseError.as_str(), "parse-error");
    let text = check_answer(&answer("any"), None, &tandem_schema::Meter::unlimited()).verdict;
    assert!(matches!(text, AnswerVerdict::Accepted(Value::String(t)) if t == "any"));
}

#[test]
fn refusal_text_is_redacted_of_the_prompt() {
    let prompt = [
        message(ModelRole::System, "You are terse."),
        message(
            ModelRole::User,
            "How do I open the vault at number 7? Key AKIA0123456789ABCDEF.",
        ),
    ];
    for (text, shown) in [
        ("I cannot help with that.", "I cannot help with that."),
        (
            "I won't tell \"How do I OPEN the vault\", sorry.",
            "I won't tell \"[REDACTED:prompt]\", sorry.",
        ),
        (
            "Not with AKIA0123456789ABCDEF!",
            "Not with [REDACTED:prompt]!",
        ),
        ("the vault: no", "the vault: no"),
    ] {
        assert_eq!(redact_prompt(text, &prompt), shown);
    }
    let short = [message(ModelRole::User, "bomb")];
    assert_eq!(
        redact_prompt("No bomb today", &short),
        "No [REDACTED:prompt] today"
    );
    assert!(
        redact_prompt(&"word ".repeat(1_000), &prompt)
            .chars()
            .count()
            <= 501
    );
}
