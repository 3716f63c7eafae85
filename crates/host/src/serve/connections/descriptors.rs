//! File descriptors: every connection needs one, and so do files and outbound calls.

/// Reserved for the database and for outbound calls: fewer effects and deliveries than this are in
/// progress at once.
const RESERVE: u64 = 1_024;

/// Raises the soft limit to the hard limit and returns the number of descriptors available for
/// connections. `None` where the system does not report a limit.
pub(crate) fn raise_descriptor_limit() -> Option<usize> {
    let limit = raise()?;
    // With a small limit, half of it is reserved.
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
        // Some systems report a hard limit they do not grant; then the soft limit applies.
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "the limit of file descriptors could not be raised");
        }
    }
    // `None` means unlimited.
    Some(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

#[cfg(not(unix))]
fn raise() -> Option<u64> {
    None
}
