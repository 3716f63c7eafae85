//! Replies to confirmations, with and without a schema.

use super::schema;
use crate::flow::AuthorSchema;
use crate::session::confirm::{ConfirmReader, ConfirmReading, payload};
use crate::session::{Keywords, Language};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read_in(language: Language, schema: Option<&AuthorSchema>, text: &str) -> ConfirmReading {
    let keywords = &Keywords::of_language(language);
    let reader = ConfirmReader {
        keywords,
        schema,
        language,
    };
    reader.read(text)
}

fn positive(value: Value) -> ConfirmReading {
    ConfirmReading::Positive(value)
}

fn negative(value: Value) -> ConfirmReading {
    ConfirmReading::Negative(value)
}

#[test]
fn without_a_schema_the_result_is_a_boolean() {
    // Z-73 (half: positive and negative)
    let table = [
        ("yes", positive(json!(true))),
        ("no", negative(json!(false))),
        ("perhaps", ConfirmReading::Unrecognized),
    ];
    for (text, expected) in table {
        assert_eq!(read_in(Language::En, None, text), expected, "{text}");
    }
}

#[test]
fn with_a_schema_the_result_is_the_payload() {
    // Z-71 (half: the steps without a model), Z-264 (half: the table), Z-73 (half: null)
    let unrecognized = || ConfirmReading::Unrecognized;
    let object = json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
    let table = [
        (
            object.clone(),
            r#"{"count": 2}"#,
            positive(json!({"count": 2})),
        ),
        (object.clone(), r#"{"count": "two"}"#, unrecognized()),
        (object.clone(), "no", negative(Value::Null)),
        (object, "yes", unrecognized()),
        (json!({"type": "number"}), " 12.5 ", positive(json!(12.5))),
        (
            json!({"type": "number"}),
            "1,234.5",
            positive(json!(1234.5)),
        ),
        (json!({"type": "number"}), "-3", positive(json!(-3))),
        (json!({"type": "number"}), "a dozen", unrecognized()),
        (json!({"type": "number"}), "no", negative(Value::Null)),
        (json!({"type": "integer"}), "2.5", unrecognized()),
        (
            json!({"type": "integer", "minimum": 1}),
            "0",
            unrecognized(),
        ),
        (json!({"type": "boolean"}), "yes", positive(json!(true))),
        (json!({"type": "boolean"}), "nope", negative(json!(false))),
        (json!({"type": "boolean"}), "false", negative(json!(false))),
        (json!({"type": "boolean"}), "hm", unrecognized()),
        (json!({"type": "string"}), " no ", positive(json!("no"))),
        (
            json!({"type": "string", "minLength": 3}),
            "no",
            negative(Value::Null),
        ),
        (json!({"type": "string"}), "12", positive(json!("12"))),
        (
            json!({"type": "string"}),
            r#""quoted""#,
            positive(json!("quoted")),
        ),
        (
            json!({"enum": ["Economy", "Première"]}),
            "premiere!",
            positive(json!("Première")),
        ),
        (json!({"enum": ["Economy"]}), "business", unrecognized()),
        (json!({"enum": [1, 2]}), "2", positive(json!(2))),
        (
            json!({"const": "I agree"}),
            "i agree.",
            positive(json!("I agree")),
        ),
        (
            json!({"type": ["integer", "string"]}),
            "7",
            positive(json!(7)),
        ),
        (
            json!({"type": ["integer", "string"]}),
            "seven",
            positive(json!("seven")),
        ),
        (json!({"type": "null"}), "null", positive(Value::Null)),
        (json!({"type": "string"}), "  ", unrecognized()),
    ];
    for (document, text, expected) in table {
        let read = read_in(Language::En, Some(&schema(&document)), text);
        assert_eq!(read, expected, "{text:?} as {document}");
    }
}

#[test]
fn numbers_are_read_as_the_language_writes_them() {
    // Z-71 (half: the decimal comma)
    let number = &schema(&json!({"type": "number"}));
    let table = [
        (Language::De, "12,5", Some(12.5)),
        (Language::De, "1.234,56", Some(1234.56)),
        (Language::De, "1.234.567", Some(1_234_567.0)),
        (Language::De, "1,234", Some(1.234)),
        (Language::En, "1,234", Some(1234.0)),
        (Language::En, "12,5", Some(12.5)),
        (Language::En, "0,125", Some(0.125)),
        (Language::Fr, "1 234,5", Some(1234.5)),
        (Language::Fr, "1\u{202f}234", Some(1234.0)),
        (Language::Ja, "\u{ff11}\u{ff12}", Some(12.0)),
        (Language::En, "\u{2212}4", Some(-4.0)),
        (Language::En, "+4", Some(4.0)),
        (Language::En, "1,23,4", None),
        (Language::En, "12 34", None),
        (Language::En, "1.2.3", None),
        (Language::En, "5 euro", None),
        (Language::En, ",", None),
        (Language::En, "-", None),
    ];
    for (language, text, expected) in table {
        let read = match read_in(language, Some(number), text) {
            ConfirmReading::Positive(value) => value.as_f64(),
            ConfirmReading::Negative(_) | ConfirmReading::Unrecognized => None,
        };
        assert_eq!(read, expected, "{text:?} in {language:?}");
    }
}

#[test]
fn steps_can_be_taken_one_by_one_around_an_extraction() {
    // Z-71 (half: the order of the steps)
    let schema = schema(&json!({"type": "object", "required": ["day"]}));
    let keywords = Keywords::of_language(Language::En);
    let reader = ConfirmReader {
        keywords: &keywords,
        schema: Some(&schema),
        language: Language::En,
    };
    assert_eq!(reader.read_directly("no, on Monday"), None);
    assert_eq!(reader.read_extracted(json!({})), None);
    let extracted = json!({"day": "Monday"});
    assert_eq!(
        reader.read_extracted(extracted.clone()),
        Some(positive(extracted))
    );
    assert_eq!(reader.read_refusal("no, on Monday"), negative(Value::Null));
    assert_eq!(
        reader.read_refusal("on Monday"),
        ConfirmReading::Unrecognized
    );
}

#[test]
fn schema_in_a_realm_gets_candidates_to_validate() {
    let schema = schema(&json!({"$standard": true}));
    let keywords = Keywords::of_language(Language::De);
    let reader = ConfirmReader {
        keywords: &keywords,
        schema: Some(&schema),
        language: Language::De,
    };
    assert_eq!(reader.read_directly("ja"), None);
    assert_eq!(reader.candidates("ja"), [json!("ja"), json!(true)]);
    assert_eq!(reader.candidates("12,5"), [json!("12,5"), json!(12.5)]);
    assert_eq!(reader.candidates("7"), [json!(7), json!("7"), json!(7)]);
    assert_eq!(payload(json!(false)), negative(json!(false)));
    assert_eq!(payload(json!({"a": 1})), positive(json!({"a": 1})));
}

#[test]
fn only_the_beginning_of_a_long_text_is_looked_at() {
    let long = format!("{} yes", "word ".repeat(1_000_000));
    assert_eq!(
        read_in(Language::En, None, &long),
        ConfirmReading::Unrecognized
    );
    let text = &schema(&json!({"type": "string"}));
    let longer_than_a_payload = "x".repeat(64 * 1024 + 1);
    assert_eq!(
        read_in(Language::En, Some(text), &longer_than_a_payload),
        ConfirmReading::Unrecognized
    );
}

proptest! {
    #[test]
    fn reading_never_panics(text in "\\PC{0,80}|[0-9., +'-]{0,50}|.{0,200}", pick in 0_usize..6) {
        let schemas = [
            json!({"type": "number"}),
            json!({"type": "boolean"}),
            json!({"type": "string"}),
            json!({"enum": ["a", 1, null, true]}),
            json!({"$standard": true}),
            json!({"type": "object"}),
        ];
        let schema = schema(&schemas[pick]);
        for language in [Language::En, Language::De, Language::Zh, Language::Hi] {
            let plain = read_in(language, None, &text);
            prop_assert!(
                [positive(json!(true)), negative(json!(false)), ConfirmReading::Unrecognized]
                    .contains(&plain)
            );
            read_in(language, Some(&schema), &text);
        }
    }

    #[test]
    fn keywords_are_found_in_any_case_and_among_other_words(
        word in prop::sample::select(vec!["yes", "sure", "okay"]),
        before in "[xzw]{0,8}",
        after in "[.!,? ]{0,5}",
    ) {
        let text = format!("{before} {}{after}", word.to_uppercase());
        prop_assert_eq!(read_in(Language::En, None, &text), positive(json!(true)));
    }
}
