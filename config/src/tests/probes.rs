//! `probes` of MCP servers. The probes of HTTP tools are in `http`.

fn error(text: &str) -> String {
    super::parse(text, &[]).unwrap_err().to_string()
}

#[test]
fn a_wrong_probe_is_explained() {
    for (table, expected) in [
        (
            "[mcp.a]\nurl = \"http://x\"\ntools = [\"pay\"]\nprobes = {pay = \"find\"}",
            "the probe `find` is no tool of `tools` of `[mcp.a]`",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\neffects = {find = \"once\"}\nprobes = {pay = \"find\"}",
            "the probe `find` has the effect `once`",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\neffects = {pay = \"idempotent\"}\nprobes = {pay = \"find\"}",
            "`probe` belongs to a tool with the effect `once`",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\nprobes = {pay = \"find\", find = \"look\"}",
            "the probe `find` has a probe itself",
        ),
    ] {
        let error = error(table);
        assert!(error.contains(expected), "{table}: {error}");
    }
}
