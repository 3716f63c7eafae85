//! Options of the server commands. Every option may also come from the environment or the
//! configuration file; `config` merges the three, so all options here are optional.

use crate::config::LogFormat;
use clap::Args;
use std::path::PathBuf;

/// Run the server
#[derive(Args, Default)]
#[command(
    long_about = "Run the server: the OpenWOP v1 API, the console, metrics.\n\n\
        An option given here wins over its environment variable, which wins over tandem.toml. Keys \
        of tandem.toml are named like the options, with underscores; its paths are relative to \
        the file.\n\n\
        The server is ready when GET /healthz answers 200. SIGTERM or Ctrl-C lets it finish what is \
        under way and exits 0; a second one exits 1 at once. What was not finished goes on after \
        the next start.",
    after_help = "\
Examples:
  tandem serve --workflows workflows/
  tandem serve --listen 0.0.0.0:7717 --store sqlite:/var/lib/tandem/tandem.db
  TANDEM_API_KEY=$(cat key) tandem serve --log-format json

Keys:
  TANDEM_API_KEY          registers this key in tenant `default`, with every scope
  TANDEM_TENANT2_API_KEY  the same in tenant `tenant2`
  Without a key in the environment or the store, one is made and printed once.

More environment:
  TANDEM_SECRETS                JSON object of secrets by id: {\"billing\": \"s3cret\"}
  TANDEM_MCP_SERVERS            JSON object of tool servers by id:
                                {\"docs\": {\"url\": \"https://mcp.example.com\", \"key\": \"s3cret\"}}
  TANDEM_LOG, RUST_LOG          log filter, default `info`
  OTEL_EXPORTER_OTLP_ENDPOINT   where to send spans of ended runs (OTLP over HTTP)"
)]
pub(crate) struct ServeArgs {
    /// Address to listen on [env: TANDEM_LISTEN] [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The store: sqlite:PATH [env: TANDEM_STORE] [default: sqlite:tandem.db]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Register every *.json below this directory, for all tenants; repeatable
    /// [env: TANDEM_WORKFLOWS, separated like PATH]
    #[arg(long, value_name = "DIR")]
    pub(crate) workflows: Vec<PathBuf>,
    /// Load every folder with a pack.json in this directory: packs of nodes in WebAssembly;
    /// repeatable [env: TANDEM_PACKS, separated like PATH]
    #[arg(long, value_name = "DIR")]
    pub(crate) packs: Vec<PathBuf>,
    /// Directory of agents; repeatable [env: TANDEM_AGENTS, separated like PATH]
    #[arg(long, value_name = "DIR")]
    pub(crate) agents: Vec<PathBuf>,
    /// Name of this host in the protocol: a name, a domain with a path, or an https URL [env:
    /// TANDEM_HOST_ID] [default: generated once and stored]
    #[arg(long, value_name = "ID")]
    pub(crate) host_id: Option<String>,
    /// Public URL of this host, if not the listen address [env: TANDEM_PUBLIC_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Configuration file [env: TANDEM_CONFIG] [default: ./tandem.toml if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Enable routes that tests need: a clock that can be moved, calls to private addresses.
    /// Refused unless the listen address is loopback [env: TANDEM_TEST_SEAMS]
    #[arg(long)]
    pub(crate) test_seams: bool,
    /// Print a link that signs its first visitor into the console with every scope of its key;
    /// works once [env: TANDEM_PRINT_LOGIN_LINK]
    #[arg(long)]
    pub(crate) print_login_link: bool,
    /// How to write the log to stderr [env: TANDEM_LOG_FORMAT] [default: human]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// Run a server with samples and a console, for trying things out
#[derive(Args)]
#[command(
    long_about = "Run a server with sample workflows, sample agents and the console, for trying \
        things out.\n\n\
        Needs nothing and asks nothing: everything lives in ./.tandem, which may be deleted. Some \
        sample runs are started: one waits for your approval when you open the printed link, others \
        move. The agents booking, refund and concierge are in ./.tandem/agents and may be edited; a \
        customer of refund waits for your approval too.\n\n\
        Commands in the same directory find the key by themselves.",
    after_help = "\
Examples:
  tandem dev
  tandem dev --open --workflows workflows/ --agents agents/
  tandem dev --listen 127.0.0.1:8080"
)]
pub(crate) struct DevArgs {
    /// Address to listen on [env: TANDEM_LISTEN] [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Register every *.json below this directory as well; repeatable [env: TANDEM_WORKFLOWS]
    #[arg(long, value_name = "DIR")]
    pub(crate) workflows: Vec<PathBuf>,
    /// Load the packs of nodes in this directory; repeatable [env: TANDEM_PACKS]
    #[arg(long, value_name = "DIR")]
    pub(crate) packs: Vec<PathBuf>,
    /// Load the agents in this directory as well; repeatable [env: TANDEM_AGENTS]
    #[arg(long, value_name = "DIR")]
    pub(crate) agents: Vec<PathBuf>,
    /// Open the console in the browser
    #[arg(long)]
    pub(crate) open: bool,
}
