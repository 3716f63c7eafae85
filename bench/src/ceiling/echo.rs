//! An HTTP server that only replies, on the same stack, in its own process.

use crate::client::{Connection, Failure, get};
use crate::load::{LoadResult, SingleRequest, Until, drive};
use crate::options::Options;
use crate::scenario::runs::Exchange;
use crate::server::free_address;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::routing::{get as on_get, post};
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The child process: replies to every create with the body from its standard input.
pub(crate) fn serve(arguments: &[String]) -> Result<(), Failure> {
    let [address] = arguments else {
        return Err("bench echo ADDRESS".into());
    };
    let mut answer = Vec::new();
    std::io::stdin().read_to_end(&mut answer)?;
    let answer = Bytes::from(answer);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let reply = move |_: Bytes| {
            let answer = answer.clone();
            async move {
                let kind = [(header::CONTENT_TYPE, "application/json")];
                (StatusCode::CREATED, kind, answer)
            }
        };
        let routes = axum::Router::new()
            .route("/v1/runs", post(reply))
            .route("/healthz", on_get(async || "ok"));
        let listener = tokio::net::TcpListener::bind(address.as_str()).await?;
        axum::serve(listener, routes).await?;
        Ok(())
    })
}

pub(crate) async fn measure(exchange: &Exchange, options: &Options) -> Result<LoadResult, Failure> {
    let server = EchoServer::start(&exchange.answer).await?;
    let until = Until::Elapsed(options.window);
    let operation = SingleRequest::new(exchange.request.clone(), 201);
    drive(server.address, 64, until, operation).await
}

/// Killed on drop, however the measurement ends.
pub(crate) struct EchoServer {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl EchoServer {
    /// A server that replies to every create with this body.
    pub(crate) async fn start(answer: &[u8]) -> Result<Self, Failure> {
        let address = free_address()?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["echo", &address.to_string()])
            .stdin(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().ok_or("no way to speak to the child")?;
        std::io::Write::write_all(&mut input, answer)?;
        drop(input);
        let server = Self { child, address };
        let began = Instant::now();
        loop {
            if let Ok(mut connection) = Connection::open(address).await
                && connection.exchange(&get("/healthz")).await.is_ok()
            {
                return Ok(server);
            }
            if began.elapsed() > Duration::from_secs(10) {
                return Err("the echo server does not start".into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
