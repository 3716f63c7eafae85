//! The measured process: `tandem serve` on its own database.

use crate::client::{Connection, Failure, KEY, NEIGHBOUR_KEY, get};
use crate::workflows;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From the start of the process to the first 200 of `/healthz`.
    pub(crate) ready_after: Duration,
}

impl Server {
    pub(crate) async fn start(binary: &Path, directory: &Path) -> Result<Self, Failure> {
        Self::start_command(Command::new(binary), directory).await
    }

    /// With the agents in `agents`. A cold server keeps no flow in memory between turns.
    pub(crate) async fn start_with_agents(
        binary: &Path,
        directory: &Path,
        is_cold: bool,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(binary);
        command.env("TANDEM_AGENTS", directory.join("agents"));
        if is_cold {
            command.env("TANDEM_TEST_COLD", "1");
        }
        Self::start_command(command, directory).await
    }

    async fn start_command(mut command: Command, directory: &Path) -> Result<Self, Failure> {
        workflows::write(&directory.join("workflows"))?;
        let address = free_address()?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(directory.join("serve.log"))?;
        let began = Instant::now();
        let child = command
            .args(["serve", "--listen", &address.to_string()])
            .arg("--store")
            .arg(format!("sqlite:{}", directory.join("tandem.db").display()))
            .arg("--workflows")
            .arg(directory.join("workflows"))
            .arg("--test-seams")
            .env("TANDEM_API_KEY", KEY)
            .env("TANDEM_TENANT2_API_KEY", NEIGHBOUR_KEY)
            // The client uses one key for everything.
            .env("TANDEM_REQUESTS_PER_SECOND_PER_KEY", "1000000")
            .env("RUST_LOG", "warn")
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut server = Self {
            child,
            address,
            ready_after: Duration::ZERO,
        };
        server.wait_until_ready(began, directory).await?;
        Ok(server)
    }

    async fn wait_until_ready(&mut self, began: Instant, directory: &Path) -> Result<(), Failure> {
        let request_bytes = get("/healthz");
        loop {
            if let Ok(mut connection) = Connection::open(self.address).await
                && let Ok(reply) = connection.exchange(&request_bytes).await
                && reply.status == 200
            {
                self.ready_after = began.elapsed();
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(directory.join("serve.log"))?;
                return Err(format!("tandem ended with {status}: {log}").into());
            }
            if began.elapsed() > TIMEOUT {
                return Err("tandem is not ready after a minute".into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn resident_mb(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: f64 = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .and_then(|number| number.trim().parse().ok())
            .ok_or("no VmRSS")?;
        Ok(kib / 1024.0)
    }

    /// Processor time used so far. Unlike elapsed time it says the same on a busy machine.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        /// Linux counts it in hundredths of a second for every program.
        const TICKS_PER_SECOND: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in parentheses, may contain spaces.
        let fields = stat.rsplit_once(')').ok_or("no process statistics")?.1;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        Ok(ticks / TICKS_PER_SECOND)
    }

    /// SIGTERM, as an operator would send it.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        let began = Instant::now();
        while began.elapsed() < TIMEOUT {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err("tandem did not end within a minute of SIGTERM".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only when a measurement failed; after `stop` there is nothing to kill.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub(crate) fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Load of the machine, to interpret the numbers later.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!("{cores} cores, load {load} at the start; client and server share them")
}
