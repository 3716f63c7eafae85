mod encodings;
mod fuzz;
mod streams;

use super::*;
use serde_json::json;

const SECRET: &str = "hunter2-hunter2";
const MARK_DB: &str = "[REDACTED:db]";

fn redactor() -> Redactor {
    Redactor::new([("db", SECRET)].into_iter())
}

/// The value as it would be stored. Checks first that it is suspected, as on the append path.
fn stored(redactor: &Redactor, value: &Value) -> Value {
    let mut texts = redactor.texts();
    let json = texts.serialize(value);
    let suspected = redactor.needs_redaction(&json, &texts);
    let mut clean = value.clone();
    let changed = redactor.redact_value(&mut clean);
    assert_eq!(changed, clean != *value, "{value} -> {clean}");
    assert!(suspected || !changed, "{value} was not suspected");
    clean
}

#[test]
fn configured_secrets_are_masked_everywhere() {
    let secrets = [
        ("db", SECRET),
        ("short", "abc"),
        ("quoted", "va\"lue-12345"),
        ("pin", "12345678"),
        ("longer", "hunter2-hunter2-hunter2"),
        ("hunter2-hunter2", "another-secret"),
    ];
    let redactor = Redactor::new(secrets.into_iter());
    for (value, clean) in [
        (json!("x hunter2-hunter2 y"), json!("x [REDACTED:db] y")),
        (json!("va\"lue-12345"), json!("[REDACTED:quoted]")),
        // JSON as text inside JSON.
        (
            json!("{\"a\":\"va\\\"lue-12345\"}"),
            json!("{\"a\":\"[REDACTED:quoted]\"}"),
        ),
        (
            json!({"a": 12345678, "b": 1}),
            json!({"a": "[REDACTED:pin]", "b": 1}),
        ),
        (json!("hunter2-hunter2-hunter2"), json!("[REDACTED:longer]")),
        (json!("_hunter2-hunter2_"), json!("_[REDACTED:db]_")),
        (json!({"hunter2-hunter2": 1}), json!({"[REDACTED:db]": 1})),
        // The id of a secret may contain another secret.
        (json!("another-secret"), json!("[REDACTED]")),
        (json!("abc and skills"), json!("abc and skills")),
    ] {
        assert_eq!(stored(&redactor, &value), clean, "{value}");
    }
}

#[test]
fn credential_is_found_after_escapes_and_punctuation() {
    let redactor = Redactor::default();
    for token in [
        "sk-abcdefghijklmnopqrstuv",
        "AKIAABCDEFGHIJKLMNOP",
        "ASIAABCDEFGHIJKLMNOP",
        "xoxb-1234567890-abc",
        "ghp_abcdefghijklmnopqrstuvwxyz",
        "tdm_live_abcdefghijklmnopqrstuvwxyz",
        "Bearer abcdefghijklmnop1234",
        "BEARER\tabcdefghijklmnop1234",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    ] {
        for before in [
            "",
            "config:\n",
            "\t",
            "\r",
            "_",
            "\"",
            "\\",
            "\u{8}",
            "\u{0}",
            "key=",
            "-",
            "ż",
            "%3D",
            "\\n",
            "\\u000a",
            "\\x0a",
            "https://h/?k=",
            "task-",
            "a sk- ",
        ] {
            let value = json!(format!("{before}{token}"));
            assert_eq!(
                stored(&redactor, &value),
                json!(format!("{before}[REDACTED]")),
                "{value}"
            );
            let keyed = json!({ format!("{before}{token}"): 1 });
            assert_eq!(
                stored(&redactor, &keyed),
                json!({ format!("{before}[REDACTED]"): 1 })
            );
        }
    }
}

#[test]
fn ordinary_words_are_not_masked() {
    for text in [
        "\u{8}earer AAAAAAAAAAAAAAAAAAAAAAAA",
        "a bearer of news",
        "task-abcdefghijklmnopqrstuvwxyz",
        "risk-assessment-for-the-year-2024",
        "sk-short",
        "eyJhbGciOiJI.eyJzdWIiOiIx",
        "my AKIA is not one",
        "[REDACTED] [REDACTED:db]",
    ] {
        assert_eq!(stored(&redactor(), &json!(text)), json!(text));
    }
}

#[test]
fn members_whose_names_get_the_same_mask_are_all_retained() {
    let value = json!({
        "sk-abcdefghijklmnopqrstuv": 1,
        "sk-bbcdefghijklmnopqrstuv": 2,
        "sk-cbcdefghijklmnopqrstuv": 3,
        "[REDACTED] (2)": 4,
    });
    let clean = stored(&redactor(), &value);
    let values: Vec<&Value> = clean.as_object().unwrap().values().collect();
    assert_eq!(values.len(), 4, "{clean}");
    assert_eq!(clean["[REDACTED] (2)"], 4);
    assert_eq!(stored(&redactor(), &clean), clean);
}

#[test]
fn split_secret_is_found_anywhere_in_a_document() {
    let mark = MARK_DB;
    for (value, clean) in [
        (json!(["hunter2-", "hunter2"]), json!([mark, mark])),
        (
            json!([["it is hunter"], [[{"a": "2-hun"}]], "ter2, is it not"]),
            json!([[format!("it is {mark}")], [[{"a": mark}]], format!("{mark}, is it not")]),
        ),
        (
            json!(SECRET.chars().map(String::from).collect::<Vec<_>>()),
            json!(vec![mark; 15]),
        ),
        (
            json!(["hun", 7, null, "ter2-hunter2"]),
            json!([mark, 7, null, mark]),
        ),
        // Members have no order: the piece that the author wrote first may come last.
        (
            json!({"b": "hunter2-", "a": "hunter2"}),
            json!({"b": mark, "a": mark}),
        ),
        (
            json!({"c": "x hunt", "b": "er2-", "a": "hunter2 x"}),
            json!({"c": format!("x {mark}"), "b": mark, "a": format!("{mark} x")}),
        ),
        (
            json!(["hunter2-", "hunter2", "hunter2-", "hunter2"]),
            json!([mark, mark, mark, mark]),
        ),
    ] {
        assert_eq!(stored(&redactor(), &value), clean, "{value}");
    }
}

#[test]
fn every_occurrence_of_a_split_secret_is_found() {
    let pairs: Vec<[&str; 2]> = vec![["hunter2-", "hunter2"]; 500];
    assert_eq!(
        stored(&redactor(), &json!(pairs)),
        json!(vec![[MARK_DB; 2]; 500])
    );
    let (tails, heads) = (vec!["hunter2, is it"; 500], vec!["it is hunter2-"; 500]);
    let clean = stored(&redactor(), &json!({"a": tails, "b": heads}));
    assert!(!clean.to_string().contains("hunter2"));
}

#[test]
fn pieces_that_do_not_form_a_secret_are_not_masked() {
    for value in [
        json!(["hun", "x", "ter2-hunter2"]),
        json!({"hunter2-": "hunter2"}),
        json!(["hunter2", "hunter2"]),
        json!({"b": "hun", "a": "ter2-hunter2"}),
        json!(["hunter2-"]),
        json!([]),
    ] {
        assert_eq!(stored(&redactor(), &value), value);
    }
}

#[test]
fn split_secret_with_json_escapes_is_found() {
    let redactor = Redactor::new([("q", "a\"b\\c\nd-żółw")].into_iter());
    let value = json!(["a\"b\\", "c\nd-ż", "ółw"]);
    assert_eq!(stored(&redactor, &value), json!(vec!["[REDACTED:q]"; 3]));
}

#[test]
fn text_of_repeated_prefixes_is_searched_in_linear_time() {
    // Quadratic work on this much text would take minutes.
    let text = ["-eyJ", "ask-", "-sk-", "bearer ", "AKIA", "eyJaaaaaaaa."]
        .map(|piece| piece.repeat(200_000 / piece.len()))
        .concat();
    let started = std::time::Instant::now();
    let value = json!(text);
    stored(&Redactor::default(), &value);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn known_secrets_in_a_text_are_masked_and_other_texts_stay() {
    let masked = redactor().mask_known_secrets("x hunter2-hunter2 y");
    assert_eq!(masked.as_deref(), Some("x [REDACTED:db] y"));
    assert_eq!(redactor().mask_known_secrets("x y"), None);
}

/// Values are joined without the names between them.
#[test]
fn secret_in_short_pieces_of_several_members_is_suspected() {
    let redactor = Redactor::new([("k", "abcdefgh-12345")].into_iter());
    let held = json!({"a": "ab", "b": "cd", "c": "efgh-12345"});
    assert_ne!(stored(&redactor, &held), held);
}
