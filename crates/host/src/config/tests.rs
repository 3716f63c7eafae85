mod limits;
mod models;
mod notices;
mod switches;

use super::*;
use std::path::Path;

/// Resolves with the given flags, variables and file.
pub(super) fn resolved(
    flags: Layer,
    env: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Settings, String> {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("tandem.toml");
    if let Some(text) = file {
        std::fs::write(&config, text).unwrap();
    }
    let lookup = |name: &str| {
        let found = env.iter().find(|(n, _)| *n == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let named = file.map(|_| config);
    resolve(flags, named, file.is_some(), &Environment(&lookup)).map_err(|e| e.to_string())
}

pub(super) fn refusal(flags: Layer, env: &[(&str, &str)], file: Option<&str>) -> String {
    resolved(flags, env, file).unwrap_err()
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    type Read = fn(&Settings) -> String;
    struct Row {
        name: &'static str,
        flag: Layer,
        env: (&'static str, &'static str),
        file: &'static str,
        read: Read,
        /// The expected value with flag, environment and file; without the flag; with the file
        /// only; with nothing.
        expected: [&'static str; 4],
    }
    let rows = [
        Row {
            name: "listen",
            flag: Layer {
                listen: Some("127.0.0.1:1".to_owned()),
                ..Layer::default()
            },
            env: ("TANDEM_LISTEN", "127.0.0.1:2"),
            file: "listen = \"127.0.0.1:3\"",
            read: |s| s.listen.to_string(),
            expected: ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", DEFAULT_LISTEN],
        },
        Row {
            name: "store",
            flag: Layer {
                store: Some("sqlite:/a.db".to_owned()),
                ..Layer::default()
            },
            env: ("TANDEM_STORE", "sqlite:///b.db"),
            file: "store = \"sqlite:/c.db\"",
            read: |s| s.store.display().to_string(),
            expected: ["/a.db", "/b.db", "/c.db", "tandem.db"],
        },
        Row {
            name: "workflows",
            flag: Layer {
                workflows: Some(vec!["/a".into()]),
                ..Layer::default()
            },
            env: ("TANDEM_WORKFLOWS", "/b:/c"),
            file: "workflows = [\"/d\"]",
            read: |s| format!("{:?}", s.workflows),
            expected: ["[\"/a\"]", "[\"/b\", \"/c\"]", "[\"/d\"]", "[]"],
        },
        Row {
            name: "packs",
            flag: Layer {
                packs: Some(vec!["/a".into()]),
                ..Layer::default()
            },
            env: ("TANDEM_PACKS", "/b:/c"),
            file: "packs = [\"/d\"]",
            read: |s| format!("{:?}", s.packs),
            expected: ["[\"/a\"]", "[\"/b\", \"/c\"]", "[\"/d\"]", "[]"],
        },
        Row {
            name: "host id",
            flag: Layer {
                host_id: Some("one".to_owned()),
                ..Layer::default()
            },
            env: ("TANDEM_HOST_ID", "two"),
            file: "host_id = \"three\"",
            read: |s| s.host_id.clone().unwrap_or_default(),
            expected: ["one", "two", "three", ""],
        },
        Row {
            name: "log format",
            flag: Layer {
                log_format: Some(LogFormat::Json),
                ..Layer::default()
            },
            env: ("TANDEM_LOG_FORMAT", "human"),
            file: "log_format = \"json\"",
            read: |s| format!("{:?}", s.log_format),
            expected: ["Json", "Human", "Json", "Human"],
        },
        Row {
            name: "test seams",
            flag: Layer {
                test_seams: Some(true),
                ..Layer::default()
            },
            env: ("TANDEM_TEST_SEAMS", "no"),
            file: "test_seams = true",
            read: |s| s.test_seams.to_string(),
            expected: ["true", "false", "true", "false"],
        },
    ];
    for row in rows {
        let read = |flag: Layer, env: &[(&str, &str)], file: Option<&str>| {
            (row.read)(&resolved(flag, env, file).unwrap())
        };
        let seen = [
            read(row.flag, &[row.env], Some(row.file)),
            read(Layer::default(), &[row.env], Some(row.file)),
            read(Layer::default(), &[], Some(row.file)),
            read(Layer::default(), &[], None),
        ];
        assert_eq!(seen, row.expected, "{}", row.name);
    }
}

#[test]
fn an_empty_variable_is_no_variable() {
    let settings = resolved(Layer::default(), &[("TANDEM_LISTEN", "")], None).unwrap();
    assert_eq!(settings.listen.to_string(), DEFAULT_LISTEN);
}

#[test]
fn unknown_tandem_variables_are_ignored() {
    assert!(resolved(Layer::default(), &[("TANDEM_FROM_THE_FUTURE", "9")], None).is_ok());
}

#[test]
fn unknown_key_is_rejected_with_its_position() {
    let text = "listen = \"127.0.0.1:1\"\n\nworkflow = [\"a\"]\n";
    let error = file::parse(Path::new("etc/tandem.toml"), text).unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.starts_with("etc/tandem.toml:3:1: unknown field `workflow`"),
        "{shown}"
    );
    assert!(!shown.contains('\n'), "{shown}");
}

#[test]
fn paths_of_the_file_are_relative_to_it() {
    let text =
        "store = \"sqlite:data/t.db\"\nworkflows = [\"flows\", \"/abs\"]\npacks = [\"packs\"]";
    let layer = file::parse(Path::new("/etc/tandem/tandem.toml"), text).unwrap();
    assert_eq!(layer.store.as_deref(), Some("sqlite:/etc/tandem/data/t.db"));
    assert_eq!(layer.packs.unwrap(), [Path::new("/etc/tandem/packs")]);
    assert_eq!(
        layer.workflows.unwrap(),
        [Path::new("/etc/tandem/flows"), Path::new("/abs")]
    );
}

#[test]
fn invalid_settings_are_rejected_with_a_next_step() {
    let table: &[(&[(&str, &str)], &str)] = &[
        (
            &[("TANDEM_STORE", "postgres://h/db")],
            "not in this version. Use --store sqlite:PATH.",
        ),
        (&[("TANDEM_STORE", "tandem.db")], "Write it as sqlite:PATH"),
        (
            &[("TANDEM_STORE", "sqlite::memory:")],
            "a durable host needs one",
        ),
        (&[("TANDEM_LISTEN", "7717")], "the port is missing"),
        (
            &[("TANDEM_LISTEN", "127.0.0.1:99999")],
            "not a number from 0 to 65535",
        ),
        (&[("TANDEM_HOST_ID", "My Host")], "cannot be used"),
        (
            &[("TANDEM_MEMORY_COMPACT_ABOVE", "1")],
            "from 2 to 9000, or to 0 for never",
        ),
        (
            &[("TANDEM_MEMORY_COMPACT_ABOVE", "few")],
            "Give a number of entries",
        ),
        (
            &[("TANDEM_PUBLIC_URL", "tandem.example.com")],
            "cannot be used",
        ),
        (&[("TANDEM_TEST_SEAMS", "maybe")], "Say on or off."),
        (&[("TANDEM_LOG_FORMAT", "xml")], "Say human or json."),
        (
            &[
                ("TANDEM_TEST_SEAMS", "1"),
                ("TANDEM_LISTEN", "0.0.0.0:7717"),
            ],
            "it is not loopback",
        ),
        (
            &[
                ("TANDEM_TEST_SEAMS", "1"),
                ("TANDEM_TEST_CLOCK_ADVANCE", "soon"),
            ],
            "whole number of seconds",
        ),
        (
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "http/protobuf or http/json",
        ),
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")],
            "not an OTLP endpoint",
        ),
    ];
    for (env, expected) in table {
        let shown = refusal(Layer::default(), env, None);
        assert!(shown.contains(expected), "{env:?}: {shown}");
        assert!(!shown.contains('\n'), "{env:?}: {shown}");
    }
}

#[test]
fn secrets_are_read_and_never_quoted() {
    let env = [("TANDEM_SECRETS", r#"{"billing": "hunter2-hunter2"}"#)];
    let settings = resolved(Layer::default(), &env, None).unwrap();
    assert_eq!(settings.secrets["billing"].0, "hunter2-hunter2");
    assert!(!format!("{settings:?}").contains("hunter2"));
    for broken in [
        r#""hunter2-hunter2""#,
        r#"{"a": {"b": "hunter2"}}"#,
        "hunter2",
    ] {
        let shown = refusal(Layer::default(), &[("TANDEM_SECRETS", broken)], None);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[cfg(feature = "otel")]
#[test]
fn the_otlp_endpoint_gets_its_path_once() {
    let endpoint = |env: &[(&str, &str)], file: Option<&str>| {
        resolved(Layer::default(), env, file).unwrap().otel.unwrap()
    };
    let both = |otel: super::Otel| (otel.traces_endpoint, otel.metrics_endpoint);
    let (as_some, some) = (|text: &str| Some(text.to_owned()), "http://c:4318/v1");
    let at_c = (
        as_some(&format!("{some}/traces")),
        as_some(&format!("{some}/metrics")),
    );
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/own");
    let metrics = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c/numbers");
    assert_eq!(both(endpoint(&[base], None)), at_c);
    let own = both(endpoint(&[base, traces], None));
    assert_eq!(own, (as_some("http://c/own"), at_c.1.clone()));
    let only = both(endpoint(&[metrics], None));
    assert_eq!(only, (None, as_some("http://c/numbers")));
    let file = "[otel]\nendpoint = \"http://f:4318\"\nprotocol = \"http/json\"";
    let from_file = endpoint(&[], Some(file));
    assert_eq!(from_file.protocol, OtelProtocol::Json);
    assert_eq!(both(from_file).0, as_some("http://f:4318/v1/traces"));
    assert_eq!(both(endpoint(&[base], Some(file))), at_c);
    let shown = refusal(
        Layer::default(),
        &[base, ("OTEL_METRIC_EXPORT_INTERVAL", "5")],
        None,
    );
    assert!(shown.contains("every 5 ms"), "{shown}");
}

#[test]
fn clock_advance_needs_test_seams() {
    let advance = ("TANDEM_TEST_CLOCK_ADVANCE", "90");
    let without = resolved(Layer::default(), &[advance], None).unwrap();
    assert_eq!(without.clock_advance_ms, 0);
    let with = resolved(
        Layer::default(),
        &[advance, ("TANDEM_TEST_SEAMS", "1")],
        None,
    )
    .unwrap();
    assert_eq!(with.clock_advance_ms, 90_000);
}
