//! Names that are stored as they are: of groups, keys, principals, roles, webhooks. One that holds a secret
//! of the host is refused, because lists, the console and the audit log would show it.

use crate::app::App;
use crate::error::{AppError, InvalidField};

const MESSAGE: &str = "holds a secret of this host; it would be stored and shown as it is";

impl App {
    /// Refuses texts that hold a secret, and names their places.
    pub(crate) fn check_no_secrets<'a>(
        &self,
        texts: impl IntoIterator<Item = (String, &'a str)>,
    ) -> Result<(), AppError> {
        let texts = texts.into_iter();
        let held = texts.filter(|(_, text)| self.runtime().holds_known_secret(text));
        let errors: Vec<_> = held
            .map(|(place, _)| InvalidField::new(place, MESSAGE))
            .collect();
        match errors.is_empty() {
            true => Ok(()),
            false => Err(AppError::Invalid(errors)),
        }
    }
}

/// Each item with its place in a list.
pub(crate) fn items<'a>(
    list: &str,
    texts: &'a [String],
) -> impl Iterator<Item = (String, &'a str)> {
    let texts = texts.iter().enumerate();
    texts.map(move |(i, text)| (format!("{list}/{i}"), text.as_str()))
}
