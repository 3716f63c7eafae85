//! `tandem serve`: opens everything, serves until a signal, closes everything.
//!
//! The address is bound first, so that a second server fails at once and an early client waits
//! instead of being refused. No request is answered before the store is open and the workflows are
//! registered.

mod agents;
mod announce;
mod audit_key;
mod connections;
mod extensions;
mod host_id;
mod http;
mod keys;
mod large_requests;
mod links;
mod logging;
mod maintenance;
mod models;
mod notices;
mod open;
pub(crate) mod packs;
mod running;
mod signals;
mod test_recorder;
mod tools;
mod webhook_sender;
pub(crate) mod workflows;

pub(crate) use announce::base_url;
pub(crate) use connections::ConnectionLimits;
pub(crate) use extensions::Extensions;
pub(crate) use large_requests::LargeRequestThread;
pub(crate) use logging::start as start_log;
pub(crate) use open::ServerContext;
pub(crate) use running::RunningServer;
pub(crate) use signals::Signals;

use crate::cli::ServeArgs;
use crate::config::{self, Environment, Layer, Settings};
use announce::login_link;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tandem_access::Identity;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

pub(crate) fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let flags = Layer::of_serve(&args);
    let settings = config::resolve(flags, args.config, true, &Environment::of_process())?;
    start_log(&settings, "info")?;
    run(settings, async move |opened: &ServerContext| {
        let caller = prepare(opened).await?;
        Ok(Ready {
            // A login link with every scope is a credential, so it is printed only on request.
            caller: caller.filter(|_| opened.settings.print_login_link),
            announce: Box::new(move |opened, link| announce::serving(opened, link, began)),
        })
    })
}

/// Registers the workflows and prepares the keys of a server. Returns who the console's first visitor is.
pub(crate) async fn prepare(opened: &ServerContext) -> anyhow::Result<Option<Identity>> {
    // If the start fails, no key may have been created: its secret is shown only once.
    register_workflows(opened).await?;
    keys::prepare(opened).await
}

/// Imports the keys of the environment, for a server that has its own key as well.
pub(crate) async fn import_keys(opened: &ServerContext) -> anyhow::Result<()> {
    keys::import_configured(opened).await.map(drop)
}

pub(crate) async fn register_workflows(opened: &ServerContext) -> anyhow::Result<()> {
    workflows::register_directories(&opened.runtime, &opened.settings.workflows).await
}

/// Reports that the server is ready; gets the console's login link, if there is one.
type Announce = Box<dyn FnOnce(&ServerContext, Option<&str>) + Send>;

/// What `serve` or `dev` has prepared before serving starts.
pub(crate) struct Ready {
    /// The identity of the console's first visitor.
    pub(crate) caller: Option<Identity>,
    pub(crate) announce: Announce,
}

/// Tasks a worker thread runs between two checks of the global queue. Commit results arrive there,
/// from the store's thread, so that responses are sent before much new work is started.
const GLOBAL_QUEUE_INTERVAL: u32 = 4;

/// Opens, prepares, serves, closes. `serve` and `dev` differ in `prepare`.
pub(crate) fn run<P>(settings: Settings, prepare: P) -> anyhow::Result<ExitCode>
where
    P: AsyncFnOnce(&ServerContext) -> anyhow::Result<Ready>,
{
    keep_pages_small();
    let threads = tokio::runtime::Builder::new_multi_thread()
        .global_queue_interval(GLOBAL_QUEUE_INTERVAL)
        .enable_all()
        .build()?;
    let large_requests = LargeRequestThread::start()?;
    let code = threads.block_on(async {
        let mut signals = Signals::listen()?;
        let (opened, listener, ready) = tokio::select! {
            opened = open_prepared(settings, Extensions::default(), prepare) => opened?,
            // No request was accepted yet.
            () = signals.next() => return Ok(ExitCode::SUCCESS),
        };
        until_stopped(opened, listener, ready, signals, large_requests.handle()).await
    });
    // Threads that still read files must not block the exit.
    drop(large_requests);
    threads.shutdown_background();
    code
}

/// Opens a server and prepares it. One that cannot be prepared is closed again.
pub(crate) async fn open_prepared<P, T>(
    settings: Settings,
    extensions: Extensions,
    prepare: P,
) -> anyhow::Result<(ServerContext, TcpListener, T)>
where
    P: AsyncFnOnce(&ServerContext) -> anyhow::Result<T>,
{
    let (opened, listener) = ServerContext::open(settings, extensions).await?;
    match prepare(&opened).await {
        Ok(prepared) => Ok((opened, listener, prepared)),
        Err(error) => {
            opened.runtime.shutdown(Duration::ZERO).await;
            Err(error)
        }
    }
}

/// The allocator asks for huge pages. They are filled only in part, and the rest counts as resident.
fn keep_pages_small() {
    // Where this is not permitted the process only uses more memory.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

async fn until_stopped(
    opened: ServerContext,
    listener: TcpListener,
    ready: Ready,
    mut signals: Signals,
    large_requests: Handle,
) -> anyhow::Result<ExitCode> {
    let mut server = RunningServer::start(opened, listener, large_requests).await?;
    let opened = server.context();
    let link = ready.caller.map(|caller| login_link(opened, caller));
    (ready.announce)(opened, link.as_deref());

    let broke = tokio::select! {
        () = signals.next() => None,
        ended = server.ended() => Some(ended),
    };
    tracing::info!("stopping: no new connections; finishing open requests");
    tokio::spawn(async move {
        signals.next().await;
        tracing::warn!("second stop signal: exiting at once");
        std::process::exit(1);
    });
    server.stop().await;
    match broke {
        None => {
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        Some(ended) => Err(ended),
    }
}
