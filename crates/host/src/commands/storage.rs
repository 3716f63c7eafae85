//! `tandem storage`: what uses storage, why, and how to reduce it.

use super::operate::{size, store_failure, store_of};
use super::table::table;
use crate::cli::{ConnectionArgs, StorageArgs};
use crate::client::Client;
use crate::config::{self, Environment};
use crate::output::{self, sanitize};
use anyhow::Context as _;
use serde::Deserialize;
use std::process::ExitCode;
use tandem_store::StorageUsage;
use tandem_store_sqlite::Storage;

const STORAGE: &str = "/v1/host/tandem/storage";

pub(crate) fn storage(args: &StorageArgs) -> anyhow::Result<ExitCode> {
    let path = store_of(&args.store)?;
    let rules = config::retention_of(args.store.config.clone(), &Environment::of_process())?;
    let retention = |tenant: &_, workflow: &_| rules.of(tenant, workflow);
    let found = tandem_store_sqlite::storage(&path, &retention);
    let found = found.map_err(|fault| store_failure("look at the store", &fault, ""))?;
    if args.json {
        output::json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Storage {
        file_bytes,
        wal_bytes,
        free_bytes,
        ..
    } = found;
    output::line(format!(
        "{}: {} ({} free inside), write-ahead log {}\n",
        path.display(),
        size(file_bytes),
        size(free_bytes),
        size(wal_bytes)
    ))?;
    output::line(tables(&found))?;
    output::line("")?;
    let next = found.next_purge_at.map(|at| {
        let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::MAX);
        format!("{at:.0}")
    });
    print_usage(&found.usage, next)?;
    for line in advice(&found) {
        output::line(line)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The server's report for the tenant of a key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TenantStorage {
    tenant: String,
    next_purge_at: Option<String>,
    #[serde(flatten)]
    usage: StorageUsage,
}

pub(crate) async fn of_server(server: ConnectionArgs) -> anyhow::Result<ExitCode> {
    let answer = Client::connect(&server)?.get(STORAGE).await?;
    if server.json {
        output::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tenant_storage: TenantStorage =
        serde_json::from_value(answer).context("the server's answer is unreadable")?;
    output::line(format!("tenant {}\n", sanitize(&tenant_storage.tenant)))?;
    print_usage(
        &tenant_storage.usage,
        tenant_storage.next_purge_at.as_deref().map(sanitize),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Data of tenants: runs, their histories, memory.
fn print_usage(usage: &StorageUsage, next_purge: Option<String>) -> anyhow::Result<()> {
    if !usage.workflows.is_empty() {
        output::line(format!("{}\n", workflows(usage)))?;
        output::line(format!("{}\n", largest(usage)))?;
    }
    if !usage.memory.is_empty() {
        output::line(format!("{}\n", memory(usage)))?;
    }
    let runs = usage.runs;
    let of = if runs.more { "newest runs" } else { "runs" };
    output::line(format!(
        "{of}: {} live, {} ended and retained, {} purged to a tombstone",
        runs.live, runs.retained, runs.purged
    ))?;
    if let Some(at) = next_purge {
        output::line(format!("the next history is removed at {at} or soon after"))?;
    }
    if runs.retained > runs.live {
        output::line(
            "ended runs are most of it: shorten their retention with [retention] in tandem.toml",
        )?;
    } else if runs.live > 0 {
        output::line(
            "live runs are most of it: `tandem runs list` shows them, `tandem runs cancel` ends one",
        )?;
    }
    Ok(())
}

fn tables(found: &Storage) -> String {
    let mut table = table(["TABLE", "ROWS", "BYTES", "HOLDS"]);
    for one in found.tables.iter().filter(|table| table.rows > 0) {
        let more = if one.more { "+" } else { "" };
        let bytes = one.bytes.map_or_else(|| "?".to_owned(), size);
        let rows = format!("{}{more}", one.rows);
        table.add_row([
            one.name.clone(),
            rows,
            bytes,
            table_description(&one.name).to_owned(),
        ]);
    }
    table.trim_fmt()
}

/// What a table is for, and when its rows are deleted.
fn table_description(table: &str) -> &'static str {
    match table {
        "events" => "histories of runs; removed when their retention ends",
        "snapshots" => "folded runs, to start faster; removed with the events",
        "runs" => "one row for each run, tombstones included; stays",
        "streams" => "where each history ends; stays",
        "interrupts" => "questions, open and decided; stays",
        "inbox" => "open questions by how they are listed",
        "audit" => "the audit log; never shrinks",
        "audit_checkpoints" => "its seals; never shrinks",
        "memory" => "every write to memory; stays",
        "memory_present" => "which keys memory has now",
        "idempotency" => "answers to repeated requests; a day",
        "webhook_deliveries" => "deliveries to webhooks; 10,000 for each",
        "webhook_feed_rows" => "events that are not expanded to deliveries yet",
        "definitions" => "workflow documents that runs are pinned to; stays",
        "outbox" => "effects to perform",
        "timers" => "timers that are set",
        "keys" | "settings" | "groups" | "delegations" | "registry" | "webhooks"
        | "webhook_feeds" => "configuration; stays",
        _ => "",
    }
}

fn workflows(found: &StorageUsage) -> String {
    let mut table = table(["WORKFLOW", "TENANT", "RUNS WITH LOG", "EVENTS"]);
    for one in &found.workflows {
        table.add_row([
            sanitize(one.workflow_id.as_str()),
            sanitize(one.tenant.as_str()),
            one.runs.to_string(),
            one.events.to_string(),
        ]);
    }
    table.trim_fmt()
}

fn largest(found: &StorageUsage) -> String {
    let mut table = table(["LARGEST RUNS", "WORKFLOW", "STATUS", "EVENTS", "BYTES"]);
    for one in &found.largest_runs {
        table.add_row([
            sanitize(one.run_id.as_str()),
            sanitize(one.workflow_id.as_str()),
            one.status.clone(),
            one.events.to_string(),
            size(one.bytes),
        ]);
    }
    table.trim_fmt()
}

fn memory(found: &StorageUsage) -> String {
    let mut table = table(["MEMORY OF SCOPE", "TENANT", "WRITES", "BYTES"]);
    for one in &found.memory {
        table.add_row([
            sanitize(&one.scope),
            sanitize(one.tenant.as_str()),
            one.writes.to_string(),
            size(one.bytes),
        ]);
    }
    table.trim_fmt()
}

/// Why the file is large and what to do, in sentences.
fn advice(found: &Storage) -> Vec<String> {
    let mut lines = Vec::new();
    if found.free_bytes > found.file_bytes / 4 {
        lines.push(
            "much of the file is free and used again by what comes; `tandem export` and `import` \
             make a smaller one"
                .to_owned(),
        );
    }
    if found.wal_bytes > found.file_bytes.max(128 << 20) {
        lines.push(
            "the write-ahead log is large: something reads the store for long, such as a backup"
                .to_owned(),
        );
    }
    lines
}
