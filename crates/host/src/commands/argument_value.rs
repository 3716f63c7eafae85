//! A value from the command line: as text, from a file, from stdin.

use crate::failure::Failure;
use std::io::Read as _;

/// The text of `TEXT`, `@FILE` or `@-`; `what` names it in errors, `option` is its option.
pub(super) fn read(given: &str, what: &str, option: &str) -> anyhow::Result<String> {
    match given.strip_prefix('@') {
        None => Ok(given.to_owned()),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            Ok(text)
        }
        Some(file) => std::fs::read_to_string(file).map_err(|error| {
            let message = format!("cannot read the {what} from {file}: {error}");
            Failure::new(message, format!("Name a file with {option} @FILE.")).into()
        }),
    }
}
