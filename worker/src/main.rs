//! `everturn`: reads the command line and runs one role.

use std::process::ExitCode;

use everturn_worker::App;

#[tokio::main]
async fn main() -> ExitCode {
    App::new().run().await
}
