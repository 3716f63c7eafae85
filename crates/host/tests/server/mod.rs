//! A server process for a test: its own directory and port; it ends with the test.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod outside;

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const KEY: &str = "a-key-for-tests-0123456789";
/// Debug builds on a loaded machine start slowly; a longer wait fails the test.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    home: TempDir,
    pub(crate) url: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
    child: Child,
}

/// Keeps no program of a flow between turns. The whole suite runs with it too.
const COLD: &str = "TANDEM_TEST_COLD";

/// The binary, in a directory, without the settings of this process but [`COLD`].
pub(crate) fn tandem(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let is_of_tandem = name.starts_with("TANDEM_") && name != COLD;
        if is_of_tandem || name.starts_with("OTEL_") || name == "RUST_LOG" {
            command.env_remove(&*name);
        }
    }
    command.current_dir(home).stdin(Stdio::null());
    command
}

pub(crate) fn free_port() -> u16 {
    let probe = TcpListener::bind("127.0.0.1:0").unwrap();
    probe.local_addr().unwrap().port()
}

fn home_with_agent(id: &str, file: &str, content: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("agents").join(id);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(file), content).unwrap();
    home
}

impl Server {
    /// Serves `hello` and the given documents.
    pub(crate) fn with_workflows(documents: &[(&str, &str)]) -> Self {
        Self::serving(documents, vec![("TANDEM_API_KEY", KEY.to_owned())])
    }

    /// Serves `hello` and sends spans as JSON.
    pub(crate) fn exporting_to(endpoint: &str) -> Self {
        let env = vec![
            ("TANDEM_API_KEY", KEY.to_owned()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.to_owned()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".to_owned()),
        ];
        Self::serving(&[], env)
    }

    /// Serves `hello` and sends metrics, and nothing else, as JSON.
    pub(crate) fn exporting_metrics_to(endpoint: &str) -> Self {
        let env = vec![
            ("TANDEM_API_KEY", KEY.to_owned()),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", endpoint.to_owned()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".to_owned()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "100".to_owned()),
        ];
        Self::serving(&[], env)
    }

    /// Serves `hello` and enables the test seams.
    pub(crate) fn with_seams() -> Self {
        let env = vec![
            ("TANDEM_API_KEY", KEY.to_owned()),
            ("TANDEM_TEST_SEAMS", "true".to_owned()),
        ];
        Self::serving(&[], env)
    }

    /// Serves `hello` and one agent, of which `file` is the only file.
    pub(crate) fn with_agent(id: &str, file: &str, content: &str) -> Self {
        Self::serving_agent(id, file, content, Vec::new())
    }

    /// Serves the given documents too, enables the test seams, and has the given `public_url`.
    pub(crate) fn reached_at(public_url: &str, documents: &[(&str, &str)]) -> Self {
        let env = vec![
            ("TANDEM_API_KEY", KEY.to_owned()),
            ("TANDEM_TEST_SEAMS", "true".to_owned()),
            ("TANDEM_PUBLIC_URL", public_url.to_owned()),
        ];
        Self::serving(documents, env)
    }

    /// Serves `hello` to two tenants, with so many connections at once.
    pub(crate) fn with_connections(max: usize, key_of_tenant2: &str) -> Self {
        let env = vec![
            ("TANDEM_API_KEY", KEY.to_owned()),
            ("TANDEM_TENANT2_API_KEY", key_of_tenant2.to_owned()),
            ("TANDEM_MAX_CONNECTIONS", max.to_string()),
        ];
        Self::serving(&[], env)
    }

    /// Serves one agent, with so many connections at once.
    pub(crate) fn with_agent_and_connections(id: &str, code: &str, max: usize) -> Self {
        let env = vec![("TANDEM_MAX_CONNECTIONS", max.to_string())];
        Self::serving_agent(id, "agent.ts", code, env)
    }

    /// Serves `hello` and one agent, with the test seams. Ended runs and conversations are kept for an hour.
    pub(crate) fn with_agent_and_seams(id: &str, file: &str, content: &str) -> Self {
        let env = vec![
            ("TANDEM_TEST_SEAMS", "true".to_owned()),
            ("TANDEM_RETENTION_SECONDS", "3600".to_owned()),
        ];
        Self::serving_agent(id, file, content, env)
    }

    /// The same for two tenants.
    pub(crate) fn with_agent_for_two_tenants(
        id: &str,
        content: &str,
        key_of_tenant2: &str,
    ) -> Self {
        let env = vec![
            ("TANDEM_TEST_SEAMS", "true".to_owned()),
            ("TANDEM_TENANT2_API_KEY", key_of_tenant2.to_owned()),
        ];
        Self::serving_agent(id, "agent.ts", content, env)
    }

    /// The same, with secrets in the environment.
    pub(crate) fn with_agent_and_secrets(
        id: &str,
        content: &str,
        secrets: &[(&'static str, &str)],
    ) -> Self {
        let secrets = secrets
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        let mut env: Vec<(&'static str, String)> = secrets.collect();
        env.push(("TANDEM_TEST_SEAMS", "true".to_owned()));
        Self::serving_agent(id, "agent.json", content, env)
    }

    /// The same with a settings file and workflows.
    pub(crate) fn with_agent_and_settings(
        (id, content): (&str, &str),
        settings: &str,
        documents: &[(&str, &str)],
        secrets: &[(&'static str, &str)],
    ) -> Self {
        let home = home_with_agent(id, "agent.json", content);
        std::fs::write(home.path().join("tandem.toml"), settings).unwrap();
        let secrets = secrets
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        let mut env: Vec<(&'static str, String)> = secrets.collect();
        env.push(("TANDEM_TEST_SEAMS", "true".to_owned()));
        env.push(("TANDEM_API_KEY", KEY.to_owned()));
        env.push(("TANDEM_AGENTS", "agents".to_owned()));
        Self::serving_in(home, documents, env)
    }

    fn serving_agent(
        id: &str,
        file: &str,
        content: &str,
        mut env: Vec<(&'static str, String)>,
    ) -> Self {
        let home = home_with_agent(id, file, content);
        env.push(("TANDEM_API_KEY", KEY.to_owned()));
        env.push(("TANDEM_AGENTS", "agents".to_owned()));
        Self::serving_in(home, &[], env)
    }

    /// Serves `hello` and the given documents with a settings file.
    pub(crate) fn configured(settings: &str, documents: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("tandem.toml"), settings).unwrap();
        let env = vec![("TANDEM_API_KEY", KEY.to_owned())];
        Self::serving_in(home, documents, env)
    }

    fn serving(documents: &[(&str, &str)], env: Vec<(&'static str, String)>) -> Self {
        Self::serving_in(tempfile::tempdir().unwrap(), documents, env)
    }

    fn serving_in(
        home: TempDir,
        documents: &[(&str, &str)],
        env: Vec<(&'static str, String)>,
    ) -> Self {
        let workflows = home.path().join("workflows");
        std::fs::create_dir(&workflows).unwrap();
        let hello = include_str!("../../samples/hello.json");
        for (name, text) in documents.iter().chain(&[("hello.json", hello)]) {
            std::fs::write(workflows.join(name), text).unwrap();
        }
        Self::spawn(home, &["serve", "--workflows", "workflows"], env)
    }

    /// Serves the agents of a folder.
    pub(crate) fn with_agents(agents: &Path) -> Self {
        let env = vec![("TANDEM_API_KEY", KEY.to_owned())];
        let agents = agents.to_str().unwrap();
        let args = ["serve", "--agents", agents];
        Self::spawn(tempfile::tempdir().unwrap(), &args, env)
    }

    pub(crate) fn without_key() -> Self {
        Self::spawn(tempfile::tempdir().unwrap(), &["serve"], Vec::new())
    }

    pub(crate) fn with_login_link() -> Self {
        let args = ["serve", "--print-login-link"];
        Self::spawn(tempfile::tempdir().unwrap(), &args, Vec::new())
    }

    pub(crate) fn dev() -> Self {
        Self::spawn(tempfile::tempdir().unwrap(), &["dev"], Vec::new())
    }

    fn spawn(home: TempDir, args: &[&str], env: Vec<(&'static str, String)>) -> Self {
        let port = free_port();
        let mut args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        args.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        let child = launch(home.path(), &args, &env);
        let mut server = Self {
            home,
            url: format!("http://127.0.0.1:{port}"),
            args,
            env,
            child,
        };
        server.wait_until_ready();
        server
    }

    /// Waits until the server process has crashed.
    pub(crate) fn wait_for_crash(&mut self) {
        let status = self.child.wait().unwrap();
        assert!(!status.success(), "it ended in peace");
    }

    pub(crate) fn start_again(&mut self) {
        self.child = launch(self.home.path(), &self.args, &self.env);
        self.wait_until_ready();
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn store(&self) -> String {
        format!("sqlite:{}", self.home().join("tandem.db").display())
    }

    /// The log of the server since its last start.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home().join("log")).unwrap()
    }

    /// The same, once it contains a text: a server is ready shortly before it logs so.
    pub(crate) fn log_with(&self, expected: &str) -> String {
        let began = Instant::now();
        loop {
            let log = self.log();
            if log.contains(expected) {
                return log;
            }
            assert!(began.elapsed() < TIMEOUT, "no {expected:?} in {log}");
            std::thread::yield_now();
        }
    }

    /// Runs a client command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.client(args).output().unwrap()
    }

    /// Starts a client command.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.client(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let mut command = tandem(self.home());
        command.args(args).env("TANDEM_URL", &self.url);
        command.env("TANDEM_API_KEY", KEY);
        command
    }

    /// Waits for the only run of a workflow in a status.
    pub(crate) fn only_run(&self, workflow: &str, status: &str) -> String {
        let began = Instant::now();
        loop {
            let listed = self.run(&[
                "runs",
                "list",
                "--json",
                "--workflow",
                workflow,
                "--status",
                status,
            ]);
            let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
            match listed["runs"].as_array().unwrap().as_slice() {
                [run] => return run["runId"].as_str().unwrap().to_owned(),
                [] => assert!(began.elapsed() < TIMEOUT, "no {status} run of {workflow}"),
                several => panic!("several runs: {several:?}"),
            }
        }
    }

    /// Asks again until it is so.
    pub(crate) fn eventually(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(
                began.elapsed() < TIMEOUT,
                "not seen: {what}\n{}",
                self.log()
            );
        }
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn terminate(&mut self) -> i32 {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    fn wait_until_ready(&mut self) {
        let began = Instant::now();
        while !self.is_healthy() {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status}: {}", self.log());
            }
            assert!(began.elapsed() < TIMEOUT, "not ready: {}", self.log());
            std::thread::yield_now();
        }
    }

    fn is_healthy(&self) -> bool {
        let answer = self.exchange("GET", "/healthz", &[], "");
        answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.exchange("GET", path, &[], "").unwrap()
    }

    /// A request that no client command makes.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        self.exchange("POST", path, headers, body).unwrap()
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> String {
        self.exchange("GET", path, headers, "").unwrap()
    }

    /// A request without a key, as a network sends it.
    pub(crate) fn request_signed(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        self.exchange_as("", "POST", path, headers, body)
            .unwrap_or_default()
    }

    /// The same for a server that may crash before it answers.
    pub(crate) fn try_post(&self, path: &str, body: &str) -> Option<String> {
        self.exchange("POST", path, &[], body)
    }

    /// A request with another key.
    pub(crate) fn request_as(&self, key: &str, method: &str, path: &str, body: &str) -> String {
        self.exchange_as(key, method, path, &[], body).unwrap()
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<String> {
        self.exchange_as(KEY, method, path, headers, body)
    }

    fn exchange_as(
        &self,
        key: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<String> {
        let address = self.url.trim_start_matches("http://");
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             authorization: Bearer {key}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("\r\n{body}"));
        let mut connection = TcpStream::connect(address).ok()?;
        connection.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

fn launch(home: &Path, args: &[String], env: &[(&str, String)]) -> Child {
    // A file, which `log` reads: a full pipe would block the server.
    let log = File::create(home.join("log")).unwrap();
    let more = OpenOptions::new()
        .append(true)
        .open(home.join("log"))
        .unwrap();
    drop(log);
    let mut command = tandem(home);
    command
        .args(args)
        .stdout(more.try_clone().unwrap())
        .stderr(more);
    command.envs(env.iter().map(|(name, value)| (name, value)));
    command.spawn().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
