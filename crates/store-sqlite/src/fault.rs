//! Maps SQLite's errors to faults: the kind of error, and whether a retry helps.

use rusqlite::{Error, ErrorCode};
use std::path::Path;
use tandem_store::Fault;

pub(crate) fn closed() -> Fault {
    Fault::permanent("closed", "the store is closed")
}

pub(crate) fn from_sql(error: Error) -> Fault {
    match &error {
        Error::SqliteFailure(failure, _) => from_code(failure.code, error.to_string()),
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::Utf8Error(..) => Fault::permanent(
            "corrupt",
            format!("the database holds a value it cannot hold: {error}"),
        ),
        _ => Fault::permanent("io", error.to_string()),
    }
}

/// The same with the name of the file; for errors while opening it.
pub(crate) fn describe(path: &Path, error: Error) -> Fault {
    let fault = from_sql(error);
    Fault {
        message: format!("{}: {}", path.display(), fault.message),
        ..fault
    }
}

fn from_code(code: ErrorCode, message: String) -> Fault {
    match code {
        ErrorCode::DiskFull => Fault::retryable(
            "disk_full",
            format!("no room for the database to grow ({message}); nothing was written"),
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Fault::retryable(
            "busy",
            format!("another program holds the database ({message})"),
        ),
        ErrorCode::TooBig => Fault::permanent(
            "too_large",
            format!("a row is too long to be stored ({message}); nothing was written"),
        ),
        ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory => Fault::retryable("io", message),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Fault::permanent(
            "corrupt",
            format!("the database is damaged ({message}); restore it from a backup"),
        ),
        _ => Fault::permanent("io", message),
    }
}

/// A stored text that does not fit its column.
pub(crate) fn malformed(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}
