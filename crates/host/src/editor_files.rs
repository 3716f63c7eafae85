//! What an editor needs beside the code of agents: type declarations, and settings that find them.

use std::io;
use std::path::Path;
use tandem_script::TYPE_DECLARATIONS;

const DECLARATIONS: &str = "tandem.d.ts";
const SETTINGS: &str = "tsconfig.json";

const TSCONFIG: &str = r#"{
  "compilerOptions": {
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "lib": ["es2022"],
    "types": [],
    "strict": true,
    "noImplicitAny": false,
    "skipLibCheck": true,
    "noEmit": true,
    "allowImportingTsExtensions": true
  },
  "include": ["**/*.ts"]
}
"#;

/// Writes both files. Declarations belong to this version of the binary and replace older ones; settings
/// of the author stay.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(DECLARATIONS), TYPE_DECLARATIONS)?;
    let settings = folder.join(SETTINGS);
    match settings.exists() {
        true => Ok(()),
        false => std::fs::write(settings, TSCONFIG),
    }
}
