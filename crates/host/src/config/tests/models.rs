//! Model endpoints.

use super::*;

#[test]
fn models_are_read_with_their_keys_by_name() {
    let file = r#"
        [secrets]
        acme = "key-not-to-be-seen"
        [models.acme]
        kind = "openai"
        base_url = "http://10.0.0.7:8000/v1"
        key = "acme"
        model = "large"
        allow_private = true
        schema = "text"
        [models.claude]
        kind = "anthropic"
    "#;
    let settings = resolved(Layer::default(), &[], Some(file)).unwrap();
    assert_eq!(
        settings.models["acme"].default_model.as_deref(),
        Some("large")
    );
    let ModelEndpoint::Hosted {
        key,
        base_url,
        allow_private,
        ..
    } = &settings.models["acme"].endpoint
    else {
        panic!("it is reached over the network");
    };
    assert_eq!(key.as_ref().unwrap().0, "key-not-to-be-seen");
    assert_eq!(
        (base_url.as_str(), *allow_private),
        ("http://10.0.0.7:8000/v1", true)
    );
    let ModelEndpoint::Hosted {
        base_url,
        key: None,
        ..
    } = &settings.models["claude"].endpoint
    else {
        panic!("it has no key");
    };
    assert_eq!(base_url.as_str(), "https://api.anthropic.com/");
    assert!(!format!("{settings:?}").contains("not-to-be-seen"));
}

#[test]
fn unusable_model_is_rejected_at_start() {
    let key = "[secrets]\nodd = \"two words\"\n";
    for (table, expected) in [
        ("[models.mock]\nkind = \"openai\"", "mock is taken"),
        ("[models.Big]\nkind = \"openai\"", "lower-case letters"),
        ("[models.a]\nmodel = \"m\"", "it has no kind"),
        ("[models.a]\nkind = \"telepathy\"", "unknown variant"),
        (
            "[models.a]\nkind = \"openai\"\nurl = \"x\"",
            "unknown field",
        ),
        (
            "[models.a]\nkind = \"openai\"\nkey = \"none\"",
            "there is no secret \"none\"",
        ),
        (
            "[models.a]\nkind = \"openai\"\nkey = \"odd\"",
            "cannot be sent in a header",
        ),
        (
            "[models.a]\nkind = \"openai\"\nbase_url = \"ftp://x\"",
            "base_url is not",
        ),
        (
            "[models.a]\nkind = \"openai\"\nbase_url = \"http://u:p@x\"",
            "base_url is not",
        ),
        (
            "[models.a]\nkind = \"openai\"\nscript = \"s.json\"",
            "for the kind scripted",
        ),
        ("[models.a]\nkind = \"scripted\"", "it has no script"),
        (
            "[models.a]\nkind = \"scripted\"\nscript = \"gone.json\"",
            "cannot read",
        ),
        (
            "[models.a]\nkind = \"scripted\"\nkey = \"odd\"",
            "not reached over the network",
        ),
        (
            "[models.a]\nkind = \"scripted\"\nscript = \"tandem.toml\"",
            "cannot be played",
        ),
    ] {
        let shown = refusal(Layer::default(), &[], Some(&format!("{key}{table}")));
        assert!(shown.contains(expected), "{table}: {shown}");
        assert!(!shown.contains("two words"), "{shown}");
    }
}
