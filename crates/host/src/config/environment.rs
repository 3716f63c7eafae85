//! Settings from environment variables. Unknown variables are ignored: a newer version may share
//! the environment.

use super::layer::{CallsLayer, Layer, MemoryLayer, Switch};
use super::{ConnectionsLayer, Hidden, LimitsLayer, LogFormat, OtelLayer, OtelProtocol, tools};
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Looks variables up: in the process, or in a table in a test.
pub(crate) struct Environment<'a>(pub(crate) &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// The process's own.
    pub(crate) fn of_process() -> Environment<'static> {
        Environment(&|name| std::env::var(name).ok())
    }

    /// An empty variable counts as absent, so that a parent process can clear one.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    pub(super) fn layer(&self) -> Result<Layer, Failure> {
        let paths = |name| {
            self.get(name)
                .map(|list| std::env::split_paths(&list).collect())
        };
        Ok(Layer {
            listen: self.get("TANDEM_LISTEN"),
            store: self.get("TANDEM_STORE"),
            workflows: paths("TANDEM_WORKFLOWS"),
            agents: paths("TANDEM_AGENTS"),
            packs: paths("TANDEM_PACKS"),
            host_id: self.get("TANDEM_HOST_ID"),
            public_url: self.get("TANDEM_PUBLIC_URL"),
            test_seams: self.switch("TANDEM_TEST_SEAMS")?,
            log_format: self.log_format()?,
            groups: None,
            notices: None,
            notice_people: None,
            models: None,
            mcp_servers: self
                .get("TANDEM_MCP_SERVERS")
                .map(|text| tools::from_json(&text))
                .transpose()?,
            secrets: self.secrets()?,
            otel: self.otel()?,
            retention_seconds: self.seconds("TANDEM_RETENTION_SECONDS")?,
            retention: None,
            memory: self.compaction()?,
            calls: Some(self.calls()?),
            limits: LimitsLayer::of(self)?,
            confidence_floor: self
                .number("TANDEM_CONFIDENCE_FLOOR", "Give a number, for example 0.7.")?,
            escalation_interrupt_kind: self.get("TANDEM_ESCALATION_INTERRUPT_KIND"),
            execution_model_version: self
                .number("TANDEM_EXECUTION_MODEL_VERSION", "Give a version, 1 to 6.")?,
            conformance: self.on_or_off("TANDEM_CONFORMANCE")?,
            multi_agent: self.on_or_off("TANDEM_MULTI_AGENT")?,
            ancestry: self.on_or_off("TANDEM_ANCESTRY")?,
            connections: Some(self.connections()?),
            print_login_link: self.switch("TANDEM_PRINT_LOGIN_LINK")?,
            strict_documents: self.switch("TANDEM_STRICT_DOCUMENTS")?,
            strict_flows: self.switch("TANDEM_STRICT_FLOWS")?,
        })
    }

    /// Moves the test clock at start. Has no effect without test seams.
    pub(super) fn clock_advance_ms(&self, test_seams: bool) -> Result<i64, Failure> {
        let name = "TANDEM_TEST_CLOCK_ADVANCE";
        let Some(text) = self.get(name).filter(|_| test_seams) else {
            return Ok(0);
        };
        let seconds = text.parse::<i64>().ok().filter(|seconds| *seconds >= 0);
        seconds
            .and_then(|seconds| seconds.checked_mul(1000))
            .ok_or_else(|| wrong(name, &text, "Give a whole number of seconds."))
    }

    /// No program of a flow is kept between turns. Nothing else changes but the time a turn takes, so that it needs no
    /// permission.
    pub(super) fn is_test_cold(&self) -> bool {
        self.get("TANDEM_TEST_COLD")
            .is_some_and(|value| value == "1")
    }

    fn compaction(&self) -> Result<Option<MemoryLayer>, Failure> {
        let hint = "Give a number of entries, or 0.";
        let above = self.number("TANDEM_MEMORY_COMPACT_ABOVE", hint)?;
        Ok(above.map(|above| MemoryLayer {
            compact_above: Some(above),
        }))
    }

    fn connections(&self) -> Result<ConnectionsLayer, Failure> {
        let count = |name| self.number(name, "Give a whole number of at least 1.");
        Ok(ConnectionsLayer {
            max: count("TANDEM_MAX_CONNECTIONS")?,
            max_per_address: count("TANDEM_MAX_CONNECTIONS_PER_ADDRESS")?,
            max_per_tenant: count("TANDEM_MAX_CONNECTIONS_PER_TENANT")?,
            max_per_key: count("TANDEM_MAX_CONNECTIONS_PER_KEY")?,
            header_timeout_seconds: self.seconds("TANDEM_HEADER_TIMEOUT_SECONDS")?,
            body_timeout_seconds: self.seconds("TANDEM_BODY_TIMEOUT_SECONDS")?,
            idle_timeout_seconds: self.seconds("TANDEM_IDLE_TIMEOUT_SECONDS")?,
            write_timeout_seconds: self.seconds("TANDEM_WRITE_TIMEOUT_SECONDS")?,
            max_streams: count("TANDEM_MAX_STREAMS")?,
            max_streams_per_tenant: count("TANDEM_MAX_STREAMS_PER_TENANT")?,
            max_streams_per_key: count("TANDEM_MAX_STREAMS_PER_KEY")?,
            requests_per_second_per_key: count("TANDEM_REQUESTS_PER_SECOND_PER_KEY")?,
        })
    }

    fn calls(&self) -> Result<CallsLayer, Failure> {
        let hint = "Give a number of calls.";
        Ok(CallsLayer {
            max: self.number("TANDEM_CALLS_MAX", hint)?,
            per_tenant: self.number("TANDEM_CALLS_PER_TENANT", hint)?,
            per_target: self.number("TANDEM_CALLS_PER_TARGET", hint)?,
        })
    }

    fn seconds(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let seconds = text.parse().ok();
        seconds
            .map(Some)
            .ok_or_else(|| wrong(name, &text, "Give a whole number of seconds."))
    }

    fn switch(&self, name: &str) -> Result<Option<bool>, Failure> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(Some(true)),
            "0" | "false" | "no" | "off" => Ok(Some(false)),
            _ => Err(wrong(name, &text, "Say on or off.")),
        }
    }

    fn on_or_off(&self, name: &str) -> Result<Option<Switch>, Failure> {
        Ok(self.switch(name)?.map(Switch::Flag))
    }

    pub(super) fn number<T: FromStr>(&self, name: &str, hint: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(wrong(name, &text, hint)),
        }
    }

    fn log_format(&self) -> Result<Option<LogFormat>, Failure> {
        let name = "TANDEM_LOG_FORMAT";
        match self.get(name).as_deref() {
            None => Ok(None),
            Some("human") => Ok(Some(LogFormat::Human)),
            Some("json") => Ok(Some(LogFormat::Json)),
            Some(other) => Err(wrong(name, other, "Say human or json.")),
        }
    }

    /// The error never quotes the value: it contains secrets.
    fn secrets(&self) -> Result<Option<BTreeMap<String, Hidden>>, Failure> {
        let Some(text) = self.get("TANDEM_SECRETS") else {
            return Ok(None);
        };
        let malformed = || {
            Failure::new(
                "TANDEM_SECRETS is not a JSON object that maps ids to texts",
                "Write it like {\"billing\": \"s3cret\"}.",
            )
        };
        let Ok(Value::Object(entries)) = serde_json::from_str(&text) else {
            return Err(malformed());
        };
        let secrets = entries.into_iter().map(|(id, value)| match value {
            Value::String(secret) => Ok((id, Hidden(secret))),
            _ => Err(malformed()),
        });
        secrets.collect::<Result<_, _>>().map(Some)
    }

    fn otel(&self) -> Result<Option<OtelLayer>, Failure> {
        let name = "OTEL_EXPORTER_OTLP_PROTOCOL";
        let protocol = match self.get(name).as_deref() {
            None => None,
            Some("http/protobuf") => Some(OtelProtocol::Protobuf),
            Some("http/json") => Some(OtelProtocol::Json),
            Some(other) => return Err(wrong(name, other, "Say http/protobuf or http/json.")),
        };
        Ok(Some(OtelLayer {
            endpoint: self.get("OTEL_EXPORTER_OTLP_ENDPOINT"),
            traces_endpoint: self.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
            metrics_endpoint: self.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
            metrics_interval_ms: self.number(
                "OTEL_METRIC_EXPORT_INTERVAL",
                "Give a whole number of milliseconds.",
            )?,
            protocol,
        }))
    }
}

fn wrong(name: &str, value: &str, next: &str) -> Failure {
    Failure::new(format!("{name} is {value:?}, which means nothing"), next)
}
