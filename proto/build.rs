//! Compiles the .proto files without protoc: protox parses, prost makes the types, pbjson their JSON.

use std::{env, error::Error, path::PathBuf};

const FILES: [&str; 3] = [
    "everturn/v1/json.proto",
    "everturn/v1/event.proto",
    "everturn/v1/turn.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=everturn");
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);

    prost_build::Config::new()
        .extern_path(".everturn.v1.Json", "crate::json::Json")
        // The boxes keep the state small, because code moves the state often.
        .boxed(".everturn.v1.LlmCompleteState.compacted")
        .boxed(".everturn.v1.LlmCompleteState.sent")
        .compile_fds(descriptors.clone())?;

    let mut events = pbjson_build::Builder::new();
    let mut turn = pbjson_build::Builder::new();
    for file in descriptors.file {
        events.register_file_descriptor(file.clone());
        turn.register_file_descriptor(file);
    }
    // The JSON of events has every field, because readers should not guess. The JSON in the history leaves out
    // defaults.
    for (builder, prefix) in [
        (events.emit_fields(), ".everturn.event.v1"),
        (&mut turn, ".everturn.v1"),
    ] {
        builder
            .out_dir(&out)
            .extern_path(".everturn.v1.Json", "crate::json::Json")
            .exclude([".everturn.v1.Json"])
            .ignore_unknown_fields()
            .preserve_proto_field_names()
            .build(&[prefix])?;
    }
    Ok(())
}
