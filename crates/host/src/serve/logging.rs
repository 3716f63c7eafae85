//! The log, on stderr: as text by default, or as JSON lines. Secrets are removed from every line: code of agents writes
//! to it, and errors quote what others sent.

use super::open::redactor;
use crate::config::{LogFormat, Settings};
use crate::failure::Failure;
use serde_json::Value;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use tandem_runtime::Redactor;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// `default` is the filter when the environment sets none.
pub(crate) fn start(settings: &Settings, default: &str) -> Result<(), Failure> {
    let directives = settings.log_filter.as_deref().unwrap_or(default);
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        Failure::new(
            format!("{directives:?} is not a log filter: {error}"),
            "Set TANDEM_LOG to something like info or warn,tandem_runtime=debug.",
        )
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(RedactedStderr(Arc::new(redactor(settings))));
    match settings.log_format {
        LogFormat::Json => log.json().flatten_event(true).init(),
        LogFormat::Human => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let colours = std::io::stderr().is_terminal() && !refused;
            log.with_ansi(colours).with_target(false).init();
        }
    }
    Ok(())
}

/// Writes lines to stderr without secrets.
#[derive(Clone)]
struct RedactedStderr(Arc<Redactor>);

impl<'a> MakeWriter<'a> for RedactedStderr {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for RedactedStderr {
    /// The subscriber hands over one whole line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        match without_secrets(&self.0, &text) {
            Some(redacted) => io::stderr().write_all(redacted.as_bytes())?,
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The line without secrets; `None` if it has none. A JSON line stays one.
fn without_secrets(redactor: &Redactor, line: &str) -> Option<String> {
    match serde_json::from_str::<Value>(line) {
        Ok(mut value) => redactor
            .redact_value(&mut value)
            .then(|| format!("{value}\n")),
        Err(_) => redactor.redact_text(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_secrets_and_json_lines_stay_json() {
        let redactor = Redactor::new([("billing", "s3cr3t-billing-value")].into_iter());
        for line in [
            "INFO token is s3cr3t-billing-value agent=\"demo\"\n",
            "{\"message\":\"s3cr3t-billing-value\"}\n",
        ] {
            let redacted = without_secrets(&redactor, line).expect("a secret");
            assert!(!redacted.contains("s3cr3t"), "{redacted}");
            assert!(redacted.ends_with('\n'));
            assert_eq!(
                line.starts_with('{'),
                serde_json::from_str::<Value>(&redacted).is_ok()
            );
        }
        assert_eq!(without_secrets(&redactor, "INFO ready\n"), None);
    }
}
