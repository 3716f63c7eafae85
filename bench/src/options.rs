//! What is measured how long.

use crate::client::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Options {
    pub(crate) binary: PathBuf,
    /// Where databases are made; defaults to the binary's own disk, since a temporary directory
    /// in memory would make every commit look free.
    disk: PathBuf,
    /// Length of one window of load.
    pub(crate) window: Duration,
    /// Windows per measurement; the median counts.
    pub(crate) windows: usize,
    pub(crate) waiting: usize,
    pub(crate) subscribers: usize,
    /// Single calls timed one after the other, where a call is long.
    pub(crate) repeats: usize,
    /// Only the measurements of the past of runs.
    pub(crate) only_past: bool,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut binary = PathBuf::from("target/release/tandem");
        let mut disk = None;
        let (mut quick, mut only_past) = (false, false);
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => quick = true,
                "--only" => match words.next().map(String::as_str) {
                    Some("past") => only_past = true,
                    _ => return Err("--only past".into()),
                },
                "--binary" => binary = words.next().ok_or("--binary PATH")?.into(),
                "--directory" => disk = words.next().map(PathBuf::from),
                other => return Err(format!("bench does not know {other:?}").into()),
            }
        }
        // The server runs in a directory of its own, from where a relative path leads nowhere.
        let binary = binary
            .canonicalize()
            .map_err(|_| format!("there is no binary at {}", binary.display()))?;
        let beside = binary.parent().unwrap_or(Path::new(".")).to_owned();
        let (seconds, windows, waiting, subscribers, repeats) = if quick {
            (1, 3, 5_000, 100, 9)
        } else {
            (4, 3, 100_000, 1_000, 51)
        };
        Ok(Self {
            disk: disk.unwrap_or(beside).canonicalize()?,
            binary,
            window: Duration::from_secs(seconds),
            windows,
            waiting,
            subscribers,
            repeats,
            only_past,
        })
    }

    pub(crate) fn disk(&self) -> &Path {
        &self.disk
    }

    pub(crate) fn directory(&self) -> Result<TempDir, Failure> {
        Ok(tempfile::Builder::new()
            .prefix("bench-")
            .tempdir_in(&self.disk)?)
    }
}
