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
        // Few checkpoints have one.
        .boxed(".everturn.v1.LlmCompleteState.compacted")
        .compile_fds(descriptors.clone())?;

    let mut events = pbjson_build::Builder::new();
    let mut turn = pbjson_build::Builder::new();
    for file in descriptors.file {
        events.register_file_descriptor(file.clone());
        turn.register_file_descriptor(file);
    }
    // Events write every field (readers should not guess); what goes into history leaves defaults out.
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
