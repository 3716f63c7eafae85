//! A slow disk. Virtual disks often acknowledge an fsync in microseconds; to plan for an ordinary
//! one, `--fsync-ms N` runs everything, server and ceilings alike, with N milliseconds added to
//! every fsync. The delay is a small library that is compiled here and preloaded, so the measured
//! binary is not changed. Linux with a C compiler only.

use crate::client::Failure;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Both functions sleep and then call the real one.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static void wait_a_little(void) { struct timespec t = { 0, DELAY_NS }; nanosleep(&t, 0); }
int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int)) dlsym(RTLD_NEXT, "fsync");
    wait_a_little();
    return real(fd);
}
int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    wait_a_little();
    return real(fd);
}
"#;

/// Starts this program again with slow fsyncs and the other arguments. Returns only if that fails.
pub(crate) fn restart_with_delay(
    ms: u32,
    arguments: &[String],
    directory: &Path,
) -> Result<(), Failure> {
    let source = directory.join("slow-fsync.c");
    let library = directory.join("slow-fsync.so");
    std::fs::write(&source, SOURCE)?;
    let compiled = Command::new("cc")
        .arg(format!("-DDELAY_NS={}", u64::from(ms) * 1_000_000))
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status()?;
    if !compiled.success() {
        return Err("the C compiler could not build the delay".into());
    }
    let this = std::env::current_exe()?;
    let library = library.canonicalize()?;
    Err(Command::new(this)
        .args(arguments)
        .env("LD_PRELOAD", library)
        .exec()
        .into())
}
