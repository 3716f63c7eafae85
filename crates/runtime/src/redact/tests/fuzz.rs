//! Property tests: arbitrary JSON with secrets at random places.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::LazyLock;

pub(super) const CONFIGURED: [(&str, &str); 5] = [
    ("plain", "correct-horse-battery"),
    ("escaped", "q\"uo\\te\n\t-12345"),
    ("wide", "żółw-🐢-żółw"),
    ("digits", "4815162342"),
    ("inside", "horse-battery-staple"),
];
pub(super) const SHAPED: [&str; 6] = [
    "sk-abcdefghijklmnopqrstuv",
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abc",
    "ghp_abcdefghijklmnopqrstuvwxyz",
    "Bearer abcdefghijklmnop1234",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
];

pub(super) fn configured_redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(CONFIGURED.into_iter()));
    &REDACTOR
}

/// Text with difficult JSON content: control characters, escapes, quotes, characters outside the
/// basic plane, and literal escapes.
pub(super) fn awkward() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "\u{8}",
        "\u{0}",
        "\u{1f}",
        "\n",
        "\t",
        "\"",
        "\\",
        "_",
        " ",
        "-",
        "a",
        "Z",
        "9",
        "\\n",
        "\\u0000",
        "\\ud83d",
        "%0A",
        "🐢",
        "\u{10ffff}",
        "\u{2028}",
        "bearer ",
        "earer ",
        "sk-",
        "eyJ",
        "[REDACTED]",
        "{",
        "}",
        ":",
        ",",
        "hors",
        "corr",
        "4815",
    ]);
    vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

fn planted() -> impl Strategy<Value = String> {
    let secret = select(CONFIGURED.map(|(_, secret)| secret).to_vec());
    let shaped = select(SHAPED.to_vec());
    prop_oneof![
        4 => any::<String>(),
        4 => awkward(),
        2 => (awkward(), secret, awkward()).prop_map(|(a, b, c)| format!("{a}{b}{c}")),
        2 => (awkward(), shaped, awkward()).prop_map(|(a, b, c)| format!("{a}:{b}{c}")),
        1 => vec(any::<u8>(), 0..40).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

fn document(text: BoxedStrategy<String>) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => text.clone().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => Just(json!(4_815_162_342_u64)),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let members = vec((text.clone(), inner.clone()), 0..6);
        prop_oneof![
            vec(inner, 0..6).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Every string in a document, keys included, and the string values joined in their order.
fn strings(value: &Value, all: &mut Vec<String>, joined: &mut String) {
    match value {
        Value::String(text) => {
            all.push(text.clone());
            joined.push_str(text);
        }
        Value::Array(items) => items.iter().for_each(|v| strings(v, all, joined)),
        Value::Object(members) => {
            for (key, value) in members {
                all.push(key.clone());
                strings(value, all, joined);
            }
        }
        Value::Number(number) => all.push(number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

fn secrets_in(value: &Value) -> Vec<&'static str> {
    let (mut all, mut joined) = (Vec::new(), String::new());
    strings(value, &mut all, &mut joined);
    let held = |secret: &&str| joined.contains(*secret) || all.iter().any(|t| t.contains(*secret));
    CONFIGURED
        .iter()
        .map(|(_, secret)| *secret)
        .filter(held)
        .collect()
}

/// Made in other ways than the redactor makes them.
pub(super) fn encoded(secret: &str) -> Vec<String> {
    let hex = |b: u8| format!("{b:02x}");
    // `{"k":"\"`, the secret, `\""}`.
    let twice = json!({"k": json!(secret).to_string()}).to_string();
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    vec![
        secret.bytes().map(hex).collect(),
        secret.bytes().map(hex).collect::<String>().to_uppercase(),
        secret.bytes().map(|b| format!("%{}", hex(b))).collect(),
        secret
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect(),
        twice[8..twice.len() - 4].to_owned(),
        form,
    ]
}

proptest! {
    // Set `PROPTEST_CASES` for more cases.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_document_retains_a_secret_or_becomes_invalid(value in document(planted().boxed())) {
        let redactor = configured_redactor();
        let clean = stored(redactor, &value);
        prop_assert_eq!(secrets_in(&clean), Vec::<&str>::new(), "{} -> {}", value, clean);
        for token in SHAPED {
            prop_assert!(!clean.to_string().contains(&format!(":{token}")), "{} -> {}", value, clean);
        }
        let mut texts = redactor.texts();
        let json = texts.serialize(&clean);
        prop_assert_eq!(&json, &clean.to_string(), "the same JSON as serde_json writes");
        prop_assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), &clean);
        prop_assert_eq!(&stored(redactor, &clean), &clean, "redacting twice changes nothing more");
    }

    #[test]
    fn a_secret_cut_anywhere_is_found(
        secret in select(CONFIGURED.map(|(_, secret)| secret).to_vec()),
        cuts in vec(any::<prop::sample::Index>(), 1..6),
        before in awkward(),
        after in awkward(),
    ) {
        let signs: Vec<char> = secret.chars().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(signs.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([signs.len()]) {
            pieces.push(signs[from..cut].iter().collect::<String>());
            from = cut;
        }
        pieces[0].insert_str(0, &before);
        pieces.last_mut().unwrap().push_str(&after);
        let clean = stored(configured_redactor(), &json!({"deep": [{"a": pieces}]}));
        prop_assert_eq!(secrets_in(&clean), Vec::<&str>::new(), "{}", clean);
    }

    #[test]
    fn a_document_without_secrets_is_stored_as_it_is(value in document("[a-z \\n\\t\"\\\\_-]{0,12}".boxed())) {
        prop_assume!(secrets_in(&value).is_empty());
        let mut unchanged = value.clone();
        // Masks of numbers aside: one of the secrets is a number.
        static REDACTOR: LazyLock<Redactor> =
            LazyLock::new(|| Redactor::new(CONFIGURED.into_iter().filter(|(id, _)| *id != "digits")));
        REDACTOR.redact_value(&mut unchanged);
        prop_assert_eq!(unchanged, value);
    }

    #[test]
    fn no_encoding_hides_a_secret(secret in "\\PC{8,24}", before in any::<String>(), after in any::<String>()) {
        let redactor = Redactor::new([("s", &*secret)].into_iter());
        prop_assume!(!redactor.configured.is_empty() && !"[REDACTED:s]".contains(&secret));
        for form in encoded(&secret) {
            prop_assume!(!"[REDACTED:s]".contains(&form));
            let clean = stored(&redactor, &json!({"a": format!("{before}{form}{after}")}));
            prop_assert!(!clean["a"].as_str().unwrap().contains(&form), "{} -> {}", form, clean);
        }
        // Whole base64, with what stands beside the secret encoded too.
        let bytes = [before.as_bytes(), secret.as_bytes(), after.as_bytes()].concat();
        let clean = stored(&redactor, &json!(STANDARD.encode(bytes)));
        prop_assert!(clean.as_str().unwrap().contains("[REDACTED"), "{}", clean);
    }

    #[test]
    fn any_secret_is_found_after_and_before_anything(secret in "\\PC{8,24}", before in any::<String>(), after in any::<String>()) {
        let redactor = Redactor::new([("s", &*secret)].into_iter());
        prop_assume!(!redactor.configured.is_empty() && !MARK.contains(&secret) && !"[REDACTED:s]".contains(&secret));
        let clean = stored(&redactor, &json!({"a": format!("{before}{secret}{after}")}));
        prop_assert!(!clean["a"].as_str().unwrap().contains(&secret), "{}", clean);
    }
}
