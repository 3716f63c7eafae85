//! What is measured, and how long.

use crate::client::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Options {
    pub(crate) binary: PathBuf,
    /// Where databases are created. Default: the disk of the binary, since commits to a temporary
    /// directory in memory would cost nothing.
    disk: PathBuf,
    /// Length of one load window.
    pub(crate) window: Duration,
    /// Windows per measurement; the median counts.
    pub(crate) windows: usize,
    pub(crate) waiting: usize,
    pub(crate) subscribers: usize,
    /// Single calls timed one after the other, where a call is long.
    pub(crate) repeats: usize,
    /// Run only one group of measurements.
    pub(crate) only: Option<Only>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    /// No-op runs and their ceilings.
    Runs,
    /// Memory and forks of past events.
    Past,
    /// A tenant beside an attacking one.
    Neighbour,
    /// Every goal for the cost of a request: approvals, small reads, a page of events, memory after many
    /// runs, and creates beside bare commits.
    Cost,
    /// Conversations with flows.
    Conversations,
    /// People who take conversations over, campaigns and schedules.
    Desk,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut binary = PathBuf::from("target/release/tandem");
        let mut disk = None;
        let (mut quick, mut only) = (false, None);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--quick" => quick = true,
                "--only" => match rest.next().map(String::as_str) {
                    Some("runs") => only = Some(Only::Runs),
                    Some("past") => only = Some(Only::Past),
                    Some("neighbour") => only = Some(Only::Neighbour),
                    Some("cost") => only = Some(Only::Cost),
                    Some("conversations") => only = Some(Only::Conversations),
                    Some("desk") => only = Some(Only::Desk),
                    _ => {
                        return Err(
                            "--only runs, past, neighbour, cost, conversations or desk".into()
                        );
                    }
                },
                "--binary" => binary = rest.next().ok_or("--binary PATH")?.into(),
                "--directory" => disk = rest.next().map(PathBuf::from),
                other => return Err(format!("bench does not know {other:?}").into()),
            }
        }
        // The server runs in its own directory, where a relative path would not be found.
        let binary = binary
            .canonicalize()
            .map_err(|_| format!("there is no binary at {}", binary.display()))?;
        let beside = binary.parent().unwrap_or(Path::new(".")).to_owned();
        let (seconds, windows, waiting, subscribers, repeats) = if quick {
            (1, 5, 5_000, 100, 9)
        } else {
            (2, 7, 100_000, 1_000, 51)
        };
        Ok(Self {
            disk: disk.unwrap_or(beside).canonicalize()?,
            binary,
            window: Duration::from_secs(seconds),
            windows,
            waiting,
            subscribers,
            repeats,
            only,
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
