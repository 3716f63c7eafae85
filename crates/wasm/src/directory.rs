//! Packs in directories of the operator. An invalid one is reported and the others load.

use crate::load_error::PackLoadError;
use crate::packs::Packs;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "pack.json";
/// Limit of packs in one directory.
const MAX_PACKS: usize = 256;

/// A pack that was not loaded.
#[derive(Debug)]
pub struct RejectedPack {
    pub folder: PathBuf,
    pub why: PackLoadError,
}

/// Loads every folder with a manifest: each directory itself, or its subfolders. Fails only if a
/// directory cannot be read.
pub fn load_directories(
    packs: &mut Packs,
    directories: &[PathBuf],
) -> Result<Vec<RejectedPack>, (PathBuf, std::io::Error)> {
    let mut refused = Vec::new();
    for directory in directories {
        let folders = folders(directory).map_err(|error| (directory.clone(), error))?;
        for folder in folders {
            if let Err(why) = load(packs, &folder) {
                refused.push(RejectedPack { folder, why });
            }
        }
    }
    Ok(refused)
}

fn folders(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    if directory.join(MANIFEST).is_file() {
        return Ok(vec![directory.to_owned()]);
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    folders.retain(|folder| folder.join(MANIFEST).is_file());
    // The same order on every machine.
    folders.sort();
    folders.truncate(MAX_PACKS);
    Ok(folders)
}

fn load(packs: &mut Packs, folder: &Path) -> Result<(), PackLoadError> {
    let home = folder
        .canonicalize()
        .map_err(|error| unreadable(MANIFEST, &error))?;
    let most = packs.limits().text_bytes;
    let manifest = String::from_utf8(read(&home, MANIFEST, most)?)
        .map_err(|_| PackLoadError::Manifest("not UTF-8".to_owned()))?;
    packs.add(&manifest, &|path, most| read(&home, path, most))?;
    Ok(())
}

/// A file of a pack. Links are followed, but never out of its folder.
fn read(home: &Path, path: &str, most: usize) -> Result<Vec<u8>, PackLoadError> {
    let file = home
        .join(path)
        .canonicalize()
        .map_err(|error| unreadable(path, &error))?;
    if !file.starts_with(home) {
        return Err(PackLoadError::Manifest(format!(
            "{path:?} leads out of the pack"
        )));
    }
    let size = std::fs::metadata(&file).map_err(|error| unreadable(path, &error))?;
    if size.len() > most as u64 {
        return Err(PackLoadError::TooLarge {
            what: path.to_owned(),
            limit: most,
        });
    }
    std::fs::read(&file).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &str, error: &std::io::Error) -> PackLoadError {
    PackLoadError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    }
}
