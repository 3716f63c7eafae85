//! The development key: created once, stored in a file only its owner can read, and read from there
//! by the client commands.

use crate::client::DEV_KEY_FILE;
use crate::failure::Failure;
use crate::private;
use std::io::{self, Write as _};
use std::path::Path;
use tandem_access::{Identity, Keyring, NewKey, Scope};
use tandem_record::{Actor, Principal, TenantId, Timestamp};

/// Creates the directory for all files of `tandem dev`, ignored by version control because it
/// contains a key.
pub(super) fn prepare_home(home: &Path) -> Result<(), Failure> {
    let made = private::create_dir_all(home).and_then(|()| {
        private::tighten(home, 0o700)?;
        let ignore = home.join(".gitignore");
        if ignore.exists() {
            return Ok(());
        }
        std::fs::write(ignore, "*\n")
    });
    made.map_err(|error| {
        Failure::new(
            format!("cannot make the directory {}: {error}", home.display()),
            "Start `tandem dev` in a directory you may write to.",
        )
    })
}

/// The key in the file, if it is still valid, else a new one.
pub(super) async fn prepare(keyring: &Keyring, now: Timestamp) -> anyhow::Result<Identity> {
    let file = Path::new(DEV_KEY_FILE);
    if file.exists() {
        let _ = private::tighten(file, 0o600);
    }
    let saved = std::fs::read_to_string(file).unwrap_or_default();
    // If the store was deleted and created again, the key is imported again.
    if let Ok(record) = keyring.import(saved.trim(), developer(), now).await
        && record.revoked_at.is_none()
    {
        return Ok(Identity::of_key(&record));
    }
    let (record, secret) = keyring.mint(developer(), &Actor::host(), now).await?;
    write_private(file, secret.expose()).map_err(|error| {
        Failure::new(
            format!("cannot write {}: {error}", file.display()),
            "Start `tandem dev` in a directory you may write to.",
        )
    })?;
    Ok(Identity::of_key(&record))
}

fn developer() -> NewKey {
    NewKey {
        principal: Some(Principal::new("developer")),
        ..NewKey::new(
            "dev",
            TenantId::new("default"),
            Scope::all().iter().copied(),
        )
    }
}

/// The file is never readable by others: the old file is removed and the new one is created with
/// private permissions.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    writeln!(private::create(file)?, "{text}")
}
