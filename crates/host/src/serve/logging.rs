//! The log, on stderr: as text by default, or as JSON lines.

use crate::config::{LogFormat, Settings};
use crate::failure::Failure;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

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
        .with_writer(std::io::stderr);
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
