//! Runs the storage battery on SQLite.

use std::sync::Arc;
use tandem_store::battery::FreshStore;
use tandem_store_sqlite::{Options, SqliteStore};

async fn open() -> FreshStore {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    let store = SqliteStore::open(directory.path().join("tandem.db"), Options::default());
    FreshStore {
        store: Arc::new(store.expect("a new database opens")),
        resources: Box::new(directory),
    }
}

tandem_store::battery!(tests open);
