//! File descriptors: every connection takes one, and so do files and calls to others.

/// Kept for the database and for calls to others: effects, deliveries to webhooks and callbacks under
/// way at once are fewer than that.
const RESERVE: u64 = 1_024;

/// Raises the soft limit to the hard one and gives the number of descriptors connections may take.
/// `None` where the system does not say.
pub(crate) fn raise_descriptor_limit() -> Option<usize> {
    let limit = raise()?;
    // Where there is little, half of it is for the rest.
    let reserve = RESERVE.min(limit / 2);
    Some(usize::try_from(limit - reserve).unwrap_or(usize::MAX))
}

#[cfg(unix)]
fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let raised = Rlimit {
            current: maximum,
            maximum,
        };
        // Some systems report a hard limit they do not grant; the soft one holds then.
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "the limit of file descriptors stays as it is");
        }
    }
    // Nothing there means no limit.
    Some(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

#[cfg(not(unix))]
fn raise() -> Option<u64> {
    None
}
