//! `sqlx::migrate!` reads a folder, which cargo does not see: without this a new migration would not be built in.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
