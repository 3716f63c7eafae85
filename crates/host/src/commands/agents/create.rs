//! `tandem agents new`: the folder of a first agent. Nothing that exists is overwritten.

use crate::cli::NewAgentArgs;
use crate::editor_files;
use crate::failure::Failure;
use crate::output;
use std::io;
use std::path::Path;
use std::process::ExitCode;

const FILES: [(&str, &str); 3] = [
    (
        "agent.ts",
        include_str!("../../../templates/agent/agent.ts"),
    ),
    (
        "flows/order.ts",
        include_str!("../../../templates/agent/flows/order.ts"),
    ),
    (
        "script.json",
        include_str!("../../../templates/agent/script.json"),
    ),
];

pub(crate) fn create(args: &NewAgentArgs) -> anyhow::Result<ExitCode> {
    let NewAgentArgs { name, dir } = args;
    let folder = dir.join(name);
    if folder.exists() {
        let next = "Choose another name, or remove it first.";
        return Err(Failure::new(format!("{} exists already", folder.display()), next).into());
    }
    write(&folder).map_err(|error| {
        let what = format!("cannot write {}: {error}", folder.display());
        Failure::new(what, "Choose another place with --dir DIR.")
    })?;
    output::line(format!(
        "{folder} is an agent. Next:\n\
         \x20 look for mistakes  tandem check {folder}\n\
         \x20 serve it           tandem dev --agents {dir}\n\
         \x20 talk to it         tandem chat {name}",
        folder = folder.display(),
        dir = dir.display(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().expect("a file of an agent is in a folder"))?;
        std::fs::write(file, text)?;
    }
    editor_files::write(folder)
}
