//! `tandem dev`: the same server, with sample workflows, runs and agents. Everything is stored in
//! `./.tandem`, which may be deleted at any time.

mod key;
mod model;
mod sample_agents;
mod samples;

use crate::cli::DevArgs;
use crate::config::{self, DEFAULT_LISTEN, Environment, Layer};
use crate::output;
use crate::serve::{self, Ready, ServerContext, base_url};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const HOME: &str = ".tandem";
const STORE: &str = "sqlite:.tandem/tandem.db";
const AGENTS: &str = ".tandem/agents";

pub(crate) fn dev(args: DevArgs) -> anyhow::Result<ExitCode> {
    let flags = Layer::of_dev(&args, STORE.to_owned());
    let mut settings = config::resolve(flags, None, false, &Environment::of_process())?;
    settings
        .models
        .insert(model::NAME.to_owned(), model::model());
    // Agents of the caller come first: one with the name of a sample is used instead of it.
    settings.agents.push(PathBuf::from(AGENTS));
    // Important output is printed; the log shows only warnings and errors.
    serve::start_log(&settings, "warn")?;
    key::prepare_home(Path::new(HOME))?;
    sample_agents::write(Path::new(AGENTS))?;
    serve::run(settings, async move |opened: &ServerContext| {
        serve::import_keys(opened).await?;
        let caller = key::prepare(&opened.keyring, opened.now()).await?;
        samples::register(&opened.runtime).await?;
        serve::register_workflows(opened).await?;
        samples::start_sample_runs(&opened.runtime, &caller).await?;
        sample_agents::start_conversations(&opened.runtime, &caller).await?;
        Ok(Ready {
            caller: Some(caller),
            announce: Box::new(move |opened, link| print_welcome(opened, link, args.open)),
        })
    })
}

fn print_welcome(opened: &ServerContext, link: Option<&str>, open: bool) {
    let link = link.unwrap_or_default();
    let url = base_url(opened);
    let elsewhere = match url.strip_prefix("http://") {
        Some(DEFAULT_LISTEN) => String::new(),
        _ => format!(" --url {url}"),
    };
    // A closed stdout does not stop the server.
    let _ = output::line(format!(
        "Tandem is up. Sign in: {link}\n\
         \x20 decide a refund  tandem inbox list{elsewhere}\n\
         \x20 talk to an agent tandem chat concierge{elsewhere}\n\
         \x20 watch a run      tandem run hello --follow{elsewhere}\n\
         \x20 list runs        tandem runs list{elsewhere}\n\
         \x20 check your own   tandem check my-workflow.json my-agent/"
    ));
    if open {
        show_in_browser(link);
    }
}

fn show_in_browser(link: &str) {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = Command::new(opener)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        output::note(format!("cannot open a browser with {opener}: {error}"));
    }
}
