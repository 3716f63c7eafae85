//! `tandem audit`: verification that does not rely on the server's own result.

mod rebuild;

use crate::cli::{AuditCommand, ExportArgs, VerifyArgs};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{self, Progress, sanitize};
use crate::private;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use tandem_runtime::audit::{ExportVerification, ExportVerifier, PublicKey, check_receipt};

const EXPORT: &str = "/v1/host/tandem/audit/export";
/// Longer than any entry.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Entries verified by one request, so that each response arrives in time.
const VERIFY_BATCH_ENTRIES: u64 = 20_000;

pub(crate) async fn audit(command: AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::Export(args) => export(&args).await,
        AuditCommand::Rebuild(args) => rebuild::rebuild(args).await,
        AuditCommand::Verify(args) => match (&args.receipt, &args.file) {
            (Some(file), _) => verify_receipt(&args, file),
            (None, Some(file)) => verify_file(&args, file),
            (None, None) => verify_server(&args).await,
        },
    }
}

fn verify_receipt(args: &VerifyArgs, file: &Path) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    open(file)?.read_to_string(&mut text)?;
    let receipt: Value = serde_json::from_str(&text).map_err(|error| {
        let what = format!("{} is not a receipt: {error}", file.display());
        Failure::new(
            what,
            "Save the answer of /v1/host/tandem/receipts/ID as it is.",
        )
    })?;
    let named = receipt["publicKey"].as_str().and_then(PublicKey::from_spki);
    let Some(key) = args.public_key.or(named) else {
        return report_invalid("the receipt", "it names no public key", args);
    };
    if let Err(why) = check_receipt(&receipt, key) {
        return report_invalid("the receipt", why, args);
    }
    if args.connection.json {
        output::json(&json!({"valid": true, "receipt": receipt}))?;
    } else {
        let decision = &receipt["decision"];
        let part = |value: &Value| sanitize(value.as_str().unwrap_or("no actor"));
        output::line(format!(
            "the receipt holds: {} was {} by {} ({}) at {}, audit entry {}",
            part(&receipt["interruptId"]),
            part(&decision["outcome"]),
            part(&decision["by"]["principal"]),
            part(&decision["by"]["via"]),
            part(&receipt["decidedAt"]),
            receipt["auditSequence"],
        ))?;
    }
    warn_unpinned(args, key);
    Ok(ExitCode::SUCCESS)
}

fn verify_file(args: &VerifyArgs, file: &Path) -> anyhow::Result<ExitCode> {
    let mut check = ExportChecker::new(args.public_key);
    let mut source = open(file)?;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let count = source.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        check.bytes(&chunk[..count]);
    }
    match check.finish() {
        Ok(report) => report_valid(&report, args),
        Err(why) => report_invalid("the export", &why, args),
    }
}

async fn verify_server(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let mut check = ExportChecker::new(args.public_key);
    let mut answer = client.download(EXPORT).await?;
    while let Some(chunk) = answer.chunk().await? {
        check.bytes(&chunk);
    }
    let report = match check.finish() {
        Ok(report) => report,
        Err(why) => return report_invalid("the audit log", &why, args),
    };
    // Only the server can verify withheld entries.
    for from in (1..=report.entries).step_by(VERIFY_BATCH_ENTRIES as usize) {
        let to = report.entries.min(from + VERIFY_BATCH_ENTRIES - 1);
        let path = format!("/v1/audit/verify?fromSeq={from}&toSeq={to}");
        let verdict = client.get(&path).await?;
        if verdict["chainValid"] != true {
            let at = &verdict["anomalies"][0]["atSeq"];
            let why = format!("the server finds it broken at entry {at}");
            return report_invalid("the audit log", &why, args);
        }
    }
    report_valid(&report, args)
}

async fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let mut check = ExportChecker::new(None);
    let mut answer = client.download(EXPORT).await?;
    let mut out: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(BufWriter::new(private::create(path).map_err(|error| {
            let what = format!("cannot write {}: {error}", path.display());
            Failure::new(what, "Name another file with --out.")
        })?)),
        None => output::bytes(),
    };
    while let Some(chunk) = answer.chunk().await? {
        out.write_all(&chunk)?;
        check.bytes(&chunk);
    }
    out.flush()?;
    match check.finish() {
        Ok(report) => {
            output::note(summary(&report));
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            output::note(format!("error: what was exported does not hold: {why}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Splits bytes into lines and keeps the first error.
struct ExportChecker {
    verifier: ExportVerifier,
    partial: Vec<u8>,
    wrong: Option<String>,
    lines: u64,
    progress: Progress,
}

impl ExportChecker {
    fn new(key: Option<PublicKey>) -> Self {
        Self {
            verifier: ExportVerifier::new(key),
            partial: Vec::new(),
            wrong: None,
            lines: 0,
            progress: Progress::new(),
        }
    }

    fn bytes(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.line();
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > MAX_LINE_BYTES {
            self.partial.clear();
            self.wrong.get_or_insert("a line is too long".to_owned());
        }
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.partial);
        if self.wrong.is_none() {
            let read = match std::str::from_utf8(&line) {
                Ok(text) => self.verifier.line(text),
                Err(_) => Err("a line is not text".to_owned()),
            };
            self.wrong = read.err();
        }
        self.lines += 1;
        if self.lines.is_multiple_of(1000) {
            self.progress.show(&format!("{} lines checked", self.lines));
        }
    }

    fn finish(mut self) -> Result<ExportVerification, String> {
        self.progress.clear();
        match self.wrong.take() {
            Some(why) => Err(why),
            None if !self.partial.is_empty() => Err("it was cut off".to_owned()),
            None => self.verifier.finish(),
        }
    }
}

fn open(file: &Path) -> Result<Box<dyn Read>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let opened = File::open(file).map_err(|error| {
        let what = format!("cannot read {}: {error}", file.display());
        Failure::new(what, "Name a readable file.")
    })?;
    Ok(Box::new(BufReader::new(opened)))
}

fn report_valid(report: &ExportVerification, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    if args.connection.json {
        output::json(&json!({
            "valid": true,
            "entries": report.entries,
            "withheld": report.withheld,
            "checkpoints": report.checkpoints,
            "sealed": report.entries,
            "publicKey": report.key.to_spki(),
        }))?;
    } else {
        output::line(summary(report))?;
    }
    warn_unpinned(args, report.key);
    Ok(ExitCode::SUCCESS)
}

fn summary(report: &ExportVerification) -> String {
    let ExportVerification {
        entries,
        withheld,
        checkpoints,
        ..
    } = report;
    format!(
        "the log holds: {entries} entries ({withheld} of other tenants), {checkpoints} \
         checkpoints up to its end"
    )
}

fn report_invalid(what: &str, why: &str, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    if args.connection.json {
        output::json(&json!({"valid": false, "reason": why}))?;
    } else {
        output::note(format!("error: {what} does not hold: {}", sanitize(why)));
    }
    Ok(ExitCode::FAILURE)
}

/// A forged file can contain a forged key.
fn warn_unpinned(args: &VerifyArgs, key: PublicKey) {
    if args.public_key.is_none() {
        output::note(format!(
            "signed with {}; give the key you trust with --public-key to be sure whose it is",
            key.to_spki()
        ));
    }
}
