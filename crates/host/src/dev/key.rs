//! The development key: made once, kept in a file only its owner can read, found there by the
//! client commands.

use crate::client::DEV_KEY_FILE;
use crate::failure::Failure;
use crate::private;
use std::io::{self, Write as _};
use std::path::Path;
use tandem_access::{Identity, Keyring, NewKey, Scope};
use tandem_record::{Actor, Principal, TenantId, Timestamp};

/// Makes the directory everything lives in, out of sight of version control: it holds a key.
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

/// The key of the file, if it still opens something, else a new one.
pub(super) async fn prepare(keyring: &Keyring, now: Timestamp) -> anyhow::Result<Identity> {
    let file = Path::new(DEV_KEY_FILE);
    if file.exists() {
        let _ = private::tighten(file, 0o600);
    }
    let saved = std::fs::read_to_string(file).unwrap_or_default();
    // A store that was deleted and made anew learns the key again.
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

/// Never readable by others, not even for a moment: the old file goes, the new one is born closed.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    writeln!(private::create(file)?, "{text}")
}
