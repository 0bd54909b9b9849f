//! An MCP server of the SDK for Rust before version 3, with the tools of `sdk.py`: `rmcp-before-3 FOLDER`.

use std::{fs::OpenOptions, io::Write, path::PathBuf, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerInfo, Tool,
    },
    service::RequestContext,
};

struct Server(PathBuf);

impl Server {
    async fn noted(&self, name: &str) -> std::io::Result<String> {
        let file = self.0.join(name);
        let mut notes = OpenOptions::new().create(true).append(true).open(&file)?;
        notes.write_all(b"call\n")?;
        if std::fs::read_to_string(&file)?.lines().count() == 1 {
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        Ok("done".to_owned())
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerInfo {
        ServerInfo::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), "object".into());
        let schema = Arc::new(schema);
        let tool = |name| Tool::new(name, "A tool.", Arc::clone(&schema));
        Ok(ListToolsResult::with_all_items(["echo", "once", "read"].map(tool).into()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let text = if call.name == "echo" {
            let arguments = call.arguments.unwrap_or_default();
            let text = arguments.get("text").and_then(|text| text.as_str());
            format!("Echo: {}", text.unwrap_or_default())
        } else {
            let noted = self.noted(&call.name).await;
            noted.map_err(|error| ErrorData::internal_error(error.to_string(), None))?
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = std::env::args_os().nth(1).expect("the folder for notes");
    let server = Server(folder.into()).serve(rmcp::transport::stdio());
    let running = server.await.expect("a client greets");
    running.waiting().await.expect("the server runs to its end");
}
