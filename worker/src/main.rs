//! `everturn`: reads the command line and runs one role.

use std::process::ExitCode;

use everturn_worker::App;
#[cfg(not(target_env = "msvc"))]
use tikv_jemallocator::Jemalloc;

/// With glibc's allocator, a worker's memory grows although the memory is freed (docs/libraries.md, jemalloc: freed
/// memory stays in the arenas of glibc).
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

#[tokio::main]
async fn main() -> ExitCode {
    App::new().run().await
}
