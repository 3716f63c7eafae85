//! Serves the clinic's agent. See the README beside it.

use rust_agent::{Calendar, agent};
use std::error::Error;
use std::sync::Arc;
use tandem::Tandem;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let server = Tandem::builder()
        .store("sqlite:clinic.db")
        // TANDEM_API_KEY, TANDEM_LISTEN and so on.
        .environment()
        .agent(agent(Arc::new(Calendar::default())))
        .serve()
        .await?;
    server.until_signal().await?;
    Ok(())
}
