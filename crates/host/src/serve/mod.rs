//! `tandem serve`: opens everything, serves until a signal, closes everything.
//!
//! The address is bound first, so that a second server fails at once and an early client waits
//! instead of being refused. No request is answered before the store is open and the workflows are
//! registered.

mod agents;
mod announce;
mod audit_key;
mod connections;
mod host_id;
mod http;
mod keys;
mod links;
mod logging;
mod maintenance;
mod models;
mod open;
pub(crate) mod packs;
mod signals;
mod tools;
mod webhook_sender;
pub(crate) mod workflows;

pub(crate) use announce::base_url;
pub(crate) use connections::ConnectionLimits;
pub(crate) use logging::start as start_log;
pub(crate) use open::ServerContext;

use crate::cli::ServeArgs;
use crate::config::{self, Environment, Layer, Settings};
#[cfg(feature = "otel")]
use crate::telemetry;
use announce::login_link;
use signals::Signals;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_access::Identity;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Time for open connections to end after a signal.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for running effects to end after that.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let flags = Layer::of_serve(&args);
    let settings = config::resolve(flags, args.config, true, &Environment::of_process())?;
    start_log(&settings, "info")?;
    run(settings, async move |opened: &ServerContext| {
        // If the start fails, no key may have been created: its secret is shown only once.
        register_workflows(opened).await?;
        let caller = keys::prepare(opened).await?;
        Ok(Ready {
            // A login link with every scope is a credential, so it is printed only on request.
            caller: caller.filter(|_| opened.settings.print_login_link),
            announce: Box::new(move |opened, link| announce::serving(opened, link, began)),
        })
    })
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

/// The niceness of the thread for large requests: it gets less processor time than the others.
#[cfg(target_os = "linux")]
const LARGE_REQUEST_NICENESS: i32 = 10;

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
    let large_requests = large_request_runtime()?;
    let code = threads.block_on(async {
        let mut signals = Signals::listen()?;
        let start = async {
            let (opened, listener) = ServerContext::open(settings).await?;
            match prepare(&opened).await {
                Ok(ready) => Ok((opened, listener, ready)),
                Err(error) => {
                    opened.runtime.shutdown(Duration::ZERO).await;
                    Err(error)
                }
            }
        };
        let (opened, listener, ready) = tokio::select! {
            started = start => started?,
            // No request was accepted yet.
            () = signals.next() => return Ok(ExitCode::SUCCESS),
        };
        until_stopped(
            opened,
            listener,
            ready,
            signals,
            large_requests.handle().clone(),
        )
        .await
    });
    // Threads that still read files must not block the exit.
    large_requests.shutdown_background();
    threads.shutdown_background();
    code
}

/// The allocator asks for huge pages. They are filled only in part, and the rest counts as resident.
fn keep_pages_small() {
    // Where this is not permitted the process only uses more memory.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// One thread with low priority: large requests use the processor time that others leave.
fn large_request_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("large-requests")
        .on_thread_start(|| {
            // On Linux niceness is per thread. If it cannot be changed, the thread has normal
            // priority.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::nice(LARGE_REQUEST_NICENESS);
        })
        .enable_all()
        .build()
}

async fn until_stopped(
    opened: ServerContext,
    listener: TcpListener,
    ready: Ready,
    mut signals: Signals,
    large_requests: Handle,
) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "otel")]
    let exporter = telemetry::start(&opened)?;
    let maintenance = [
        tokio::spawn(maintenance::expire_idempotency_records(
            opened.runtime.clone(),
        )),
        tokio::spawn(maintenance::seal_audit(
            opened.runtime.clone(),
            Arc::clone(&opened.audit_signer),
        )),
    ];
    let mut http_server = http::open(&opened, listener, large_requests).await?;
    let link = ready.caller.map(|caller| login_link(&opened, caller));
    (ready.announce)(&opened, link.as_deref());

    let broke = tokio::select! {
        () = signals.next() => None,
        ended = http_server.ended() => Some(ended),
    };
    tracing::info!("stopping: no new connections; finishing open requests");
    tokio::spawn(async move {
        signals.next().await;
        tracing::warn!("second stop signal: exiting at once");
        std::process::exit(1);
    });
    http_server.close(DRAIN_TIMEOUT).await;
    maintenance.iter().for_each(JoinHandle::abort);
    #[cfg(feature = "otel")]
    if let Some(exporter) = exporter {
        exporter.finish().await;
    }
    opened.runtime.shutdown(FINISH_TIMEOUT).await;
    match broke {
        None => {
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        Some(ended) => Err(ended.context("the server stopped listening")),
    }
}
