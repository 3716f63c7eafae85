use crate::config::tests::{refusal, resolved};
use crate::config::{Layer, Settings};

const VARIABLE: &str = "TANDEM_MCP_SERVERS";

fn given(servers: &str, seams: bool) -> Result<Settings, String> {
    let seams = if seams { "1" } else { "0" };
    let env = [(VARIABLE, servers), ("TANDEM_TEST_SEAMS", seams)];
    resolved(Layer::default(), &env, None)
}

#[test]
fn servers_come_from_the_environment_or_the_file() {
    let file = r#"
        [mcp_servers.docs]
        url = "https://mcp.example.com/v1"
        key = "key-not-to-be-seen"
        [mcp_servers."in.house"]
        url = "http://10.0.0.7:9000/mcp"
        allow_private = true
    "#;
    let settings = resolved(Layer::default(), &[], Some(file)).unwrap();
    let docs = &settings.tools["docs"];
    assert_eq!(docs.url.as_str(), "https://mcp.example.com/v1");
    assert_eq!(docs.key.as_ref().unwrap().0, "key-not-to-be-seen");
    assert!(docs.guard.require_https && !docs.guard.allow_private);
    assert!(settings.tools["in.house"].guard.allow_private);
    assert!(!format!("{settings:?}").contains("not-to-be-seen"));

    let env = [(VARIABLE, r#"{"mail": {"url": "https://mail.example.com"}}"#)];
    let settings = resolved(Layer::default(), &env, Some(file)).unwrap();
    assert_eq!(settings.tools.keys().collect::<Vec<_>>(), ["mail"]);
    assert!(settings.tools["mail"].key.is_none());
}

#[test]
fn a_server_on_this_machine_needs_the_test_seams() {
    let loopback = r#"{"a": {"url": "http://127.0.0.1:9/"}}"#;
    assert!(given(loopback, true).is_ok());
    let refused = given(loopback, false).unwrap_err();
    assert!(refused.contains("mcp_servers.a: its url cannot be called"));
}

#[test]
fn unusable_tool_server_is_rejected_at_start() {
    let many: Vec<String> = (0..65)
        .map(|n| format!("\"s{n}\": {{\"url\": \"https://x.example\"}}"))
        .collect();
    let many = format!("{{{}}}", many.join(","));
    for (value, expected) in [
        ("[]", "not a JSON object"),
        ("{", "line 1, column"),
        (r#"{"a": "https://x.example"}"#, "not a JSON object"),
        (
            r#"{"a": {"url": "https://x.example", "token": "hidden words"}}"#,
            "not a JSON",
        ),
        (r#"{"a": {}}"#, "it has no url"),
        (r#"{"a": {"url": "nowhere"}}"#, "not an absolute URL"),
        (
            r#"{"a": {"url": "ftp://x.example"}}"#,
            "only http and https",
        ),
        (r#"{"a": {"url": "http://x.example"}}"#, "only https"),
        (
            r#"{"a": {"url": "https://u:hidden@x.example"}}"#,
            "credentials in the URL",
        ),
        (
            r#"{"a": {"url": "https://x.example/#b"}}"#,
            "has a fragment",
        ),
        (
            r#"{"a": {"url": "https://192.168.0.1"}}"#,
            "private address",
        ),
        (
            r#"{"a": {"url": "https://x.example", "key": "hidden words"}}"#,
            "in a header",
        ),
        (
            r#"{"a": {"url": "https://x.example", "key": ""}}"#,
            "in a header",
        ),
        (
            r#"{"": {"url": "https://x.example"}}"#,
            "name cannot be used",
        ),
        (
            r#"{"a b": {"url": "https://x.example"}}"#,
            "name cannot be used",
        ),
        (&many, "there are 65 tool servers"),
    ] {
        let shown = refusal(Layer::default(), &[(VARIABLE, value)], None);
        assert!(shown.contains(expected), "{value}: {shown}");
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
