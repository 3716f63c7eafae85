//! `tandem backup`, `restore`, `export`, `import`: operations on a whole store. They work on the
//! file, beside a running server where that is safe.

use crate::cli::{BackupArgs, ExportRunsArgs, ImportRunsArgs, RestoreArgs, StoreArgs};
use crate::config::{self, Environment};
use crate::failure::Failure;
use crate::output::{self, Progress};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use tandem_record::{RunId, TenantId};
use tandem_runtime::Fault;
use tandem_store_sqlite::{ExportSelection, OriginSource, PartialFile, TransferCounts};

pub(crate) fn backup(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let from = store_of(&args.store)?;
    let progress = Progress::new();
    let copied = tandem_store_sqlite::backup(&from, &args.file, args.force, &mut |done, all| {
        progress.show(&format!("{} of {} copied", size(done), size(all)));
    });
    progress.clear();
    let next = "Choose another file, or replace it with --force.";
    let bytes = copied.map_err(|fault| store_failure("back up the store", &fault, next))?;
    let file = args.file.display();
    output::line(format!("{file} holds the store: {}, checked", size(bytes)))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn restore(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let to = config::sqlite_path(&args.store)?;
    let progress = Progress::new();
    let copied = tandem_store_sqlite::restore(&args.file, &to, &mut |done, all| {
        progress.show(&format!("{} of {} copied", size(done), size(all)));
    });
    progress.clear();
    let next = "Move it away first, or choose another store.";
    let bytes = copied.map_err(|fault| store_failure("restore the backup", &fault, next))?;
    let to = to.display();
    output::line(format!("{to} is restored: {}, checked", size(bytes)))?;
    output::note(format!(
        "`tandem serve --store sqlite:{to}` continues with it"
    ));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn export(args: &ExportRunsArgs) -> anyhow::Result<ExitCode> {
    let from = store_of(&args.store)?;
    let selection = ExportSelection {
        runs: args.runs.iter().map(RunId::new).collect(),
        tenant: args.tenant.as_ref().map(TenantId::new),
    };
    let origin = |source: OriginSource<'_>| match source {
        OriginSource::FirstEvent(body) => tandem_runtime::origin_in_event(body),
        OriginSource::Tombstone(left) => tandem_runtime::origin_in_tombstone(left),
    };
    let progress = Progress::new();
    let mut on_progress = |done, all| progress.show(&format!("{done} of {all} runs written"));
    let written = match &args.out {
        None => {
            let mut out = output::bytes();
            tandem_store_sqlite::export(&from, &selection, &origin, &mut *out, &mut on_progress)
        }
        Some(path) => {
            let part =
                PartialFile::begin(path).map_err(|fault| store_failure("export", &fault, ""))?;
            let mut out = BufWriter::new(File::create(part.path())?);
            let written =
                tandem_store_sqlite::export(&from, &selection, &origin, &mut out, &mut on_progress);
            drop(out);
            written.and_then(|counts| part.finish(path).map(|_| counts))
        }
    };
    progress.clear();
    let next = "`tandem runs list` shows runs by their id.";
    let counts = written.map_err(|fault| store_failure("export", &fault, next))?;
    output::note(format!("{} exported", summary(&counts)));
    if selection.is_whole() {
        output::note("the export holds secrets of this host: keep it as safe as the store");
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn import(args: &ImportRunsArgs) -> anyhow::Result<ExitCode> {
    let to = config::sqlite_path(&args.store)?;
    let progress = Progress::new();
    let read = tandem_store_sqlite::import(&args.file, &to, &mut |done, all| {
        progress.show(&format!("{} of {} read", size(done), size(all)));
    });
    progress.clear();
    let next = "Nothing was imported.";
    let counts = read.map_err(|fault| store_failure("import", &fault, next))?;
    output::line(format!(
        "{} imported into {}",
        summary(&counts),
        to.display()
    ))?;
    output::note("`tandem audit verify` checks the audit log once a server runs on it");
    Ok(ExitCode::SUCCESS)
}

/// The path of the store that `tandem serve` would use here.
pub(super) fn store_of(args: &StoreArgs) -> Result<PathBuf, Failure> {
    config::store(
        args.store.clone(),
        args.config.clone(),
        &Environment::of_process(),
    )
}

fn summary(counts: &TransferCounts) -> String {
    let TransferCounts { runs, events, rows } = counts;
    format!("{runs} runs with {events} events ({rows} rows)")
}

pub(super) fn store_failure(what: &str, fault: &Fault, hint: &str) -> Failure {
    let next = match fault.code {
        "target_exists" | "not_found" | "store_not_empty" => hint,
        "locked" => "A server uses it.",
        "older_schema" | "hard_linked" | "data_missing" => "Nothing was changed.",
        "newer_schema" => "Use the version of tandem that wrote it, or a newer one.",
        "disk_full" => "Free some space and try again.",
        "export_unreadable" => "Export it again; nothing was changed.",
        _ => "Check the paths and their permissions.",
    };
    Failure::new(
        format!("cannot {what} ({}): {}", fault.code, fault.message),
        next,
    )
}

pub(super) fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, next);
    }
    let digits = usize::from(unit != "B" && number < 100.0);
    format!("{number:.digits$} {unit}")
}
