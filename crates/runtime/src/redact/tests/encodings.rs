//! Secrets written otherwise than they are. The forms were made by other programs (Python, a browser).

use super::*;

#[track_caller]
fn masked(secret: &str, text: &str) -> String {
    let redactor = Redactor::new([("db", secret)].into_iter());
    let clean = stored(&redactor, &json!({ "a": text }));
    let keyed = stored(&redactor, &json!({ text: 1 }));
    let clean = clean["a"].as_str().unwrap().to_owned();
    assert!(clean.contains(MARK_DB), "{text} -> {clean}");
    assert!(keyed.to_string().contains(MARK_DB), "{keyed}");
    assert!(redactor.holds_known_secret(text));
    clean
}

#[test]
fn encoded_secret_is_masked() {
    let plain = "Zq7XvT9mLp2RwK4c";
    for form in [
        "5a7137587654396d4c703252774b3463".to_owned(),
        "5A7137587654396D4C703252774B3463".to_owned(),
        "%5A%71%37%58%76%54%39%6D%4C%70%32%52%77%4B%34%63".to_owned(),
        r"\u005a\u0071\u0037\u0058\u0076\u0054\u0039\u006d\u004c\u0070\u0032\u0052\u0077\u004b\u0034\u0063"
            .to_owned(),
    ] {
        assert_eq!(masked(plain, &format!("x{form}y")), format!("x{MARK_DB}y"));
    }
    for (secret, form) in [
        (
            "correct horse/battery+staple&1",
            "correct%20horse%2Fbattery%2Bstaple%261",
        ),
        (
            "correct horse/battery+staple&1",
            "correct%20horse%2fbattery%2bstaple%261",
        ),
        (
            "correct horse/battery+staple&1",
            "correct%20horse/battery%2Bstaple%261",
        ),
        (
            "correct horse/battery+staple&1",
            "correct+horse%2Fbattery%2Bstaple%261",
        ),
        (
            "correct horse/battery+staple&1",
            "correct%20horse/battery+staple&1",
        ),
        (
            "correct horse/battery+staple&1",
            "correct horse/battery+staple&amp;1",
        ),
        (
            "correct horse/battery+staple&1",
            r"correct horse\/battery+staple&1",
        ),
        (
            "a<b>'c'\"d\"-1234",
            "a&lt;b&gt;&#x27;c&#x27;&quot;d&quot;-1234",
        ),
        ("a<b>'c'\"d\"-1234", "a&lt;b&gt;&#39;c&#39;&#34;d&#34;-1234"),
        ("a<b>'c'\"d\"-1234", "a&lt;b&gt;'c'\"d\"-1234"),
        (
            "a<b>'c'\"d\"-1234",
            "a&lt;b&gt;&#039;c&#039;&quot;d&quot;-1234",
        ),
        (
            "a<b>'c'\"d\"-1234",
            "a&#60;b&#62;&#39;c&#39;&#34;d&#34;-1234",
        ),
        (
            "a<b>'c'\"d\"-1234",
            "a&#x3c;b&#x3e;&#x27;c&#x27;&#x22;d&#x22;-1234",
        ),
        (
            "a<b>'c'\"d\"-1234",
            "a&#x3C;b&#x3E;&#x27;c&#x27;&#x22;d&#x22;&#x2D;1234",
        ),
        (
            "geheim-äöü-日本-77",
            "geheim-&#228;&#246;&#252;-&#26085;&#26412;-77",
        ),
        (
            "hunter2x",
            "&#104;&#117;&#110;&#116;&#101;&#114;&#50;&#120;",
        ),
        ("pa\"ss\\wo\nrd99", "pa%22ss%5Cwo%0Ard99"),
        ("pa\"ss\\wo\nrd99", r#"pa\\\"ss\\\\wo\\nrd99"#),
        ("pa\"ss\\wo\nrd99", r#"pa\\\\\\\"ss\\\\\\\\wo\\\\nrd99"#),
        (
            "geheim-äöü-日本-77",
            r"geheim-\u00e4\u00f6\u00fc-\u65e5\u672c-77",
        ),
        (
            "geheim-äöü-日本-77",
            r"geheim-\u00E4\u00F6\u00FC-\u65E5\u672C-77",
        ),
        ("geheim-🐢-geheim", r"geheim-\ud83d\udc22-geheim"),
    ] {
        assert_eq!(masked(secret, form), MARK_DB, "{form}");
    }
}

#[test]
fn base64_is_masked_whatever_stands_before() {
    // One character at an end may hold a few bits of the secret, never a byte of it.
    for (form, clean) in [
        ("WnE3WHZUOW1McDJSd0s0Yw==", "[REDACTED:db]w=="),
        ("dTpacTdYdlQ5bUxwMlJ3SzRj", "dTp[REDACTED:db]"),
        ("dXNlcjpacTdYdlQ5bUxwMlJ3SzRj", "dXNlcjp[REDACTED:db]"),
        ("eFpxN1h2VDltTHAyUndLNGN5", "eF[REDACTED:db]N5"),
    ] {
        assert_eq!(masked("Zq7XvT9mLp2RwK4c", form), clean);
    }
    let secret = "~~~???>>>ÿÿÿ";
    masked(secret, "fn5+Pz8/Pj4+w7/Dv8O/");
    masked(secret, "fn5-Pz8_Pj4-w7_Dv8O_");
}

#[test]
fn secret_that_begins_like_a_credential_is_found() {
    for secret in [
        "sk-12345",
        "earer123",
        "tdm_live_1",
        "AKIA1234",
        "eyJ-1234",
        "{\"a\":\"b\"}",
    ] {
        let redactor = Redactor::new([("db", secret)].into_iter());
        let clean = stored(&redactor, &json!(format!("x {secret} y")));
        assert_eq!(clean, json!(format!("x {MARK_DB} y")));
    }
    // Its base64 begins like a JSON web token.
    assert_eq!(masked("{\"a\":\"b\"}", "eyJhIjoiYiJ9"), MARK_DB);
}

#[test]
fn many_secrets_are_still_found() {
    let secrets: Vec<(String, String)> = (0..100)
        .map(|n| (format!("s{n}"), format!("{n:03}-secret-of-many")))
        .collect();
    let pairs = secrets
        .iter()
        .map(|(id, value)| (id.as_str(), value.as_str()));
    let redactor = Redactor::new(pairs);
    let value = json!(["007-secret-of-many", "3039392d7365637265742d6f662d6d616e79"]);
    let clean = json!(["[REDACTED:s7]", "[REDACTED:s99]"]);
    assert_eq!(stored(&redactor, &value), clean);
}

#[test]
fn place_of_a_known_secret_is_named_without_it() {
    let redactor = redactor();
    for (value, place) in [
        (
            json!({"a": [1, {"b/c": "x hunter2-hunter2"}]}),
            Some("/a/1/b~1c"),
        ),
        (json!({"a": {"hunter2-hunter2": 1}}), Some("/a")),
        (json!("hunter2-hunter2"), Some("")),
        (
            json!({"a": "sk-abcdefghijklmnopqrstuv", "b": [SECRET.len()]}),
            None,
        ),
    ] {
        let found = redactor.place_of_known_secret(&value);
        assert_eq!(found.as_deref(), place, "{value}");
    }
}
