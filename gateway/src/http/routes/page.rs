//! The web page at `/`, where people use their agents. The binary contains the built files of `gateway/web`.

use std::sync::LazyLock;

use axum::{
    extract::Path,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::http::{
    openapi::problems,
    problem::{Code, Problem},
};

/// The policy allows the page's own script and requests to the gateway only.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

/// A file of the page.
struct File {
    /// Name of the file below `/page/`.
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

/// The page itself, at `/`.
const INDEX: File = File {
    name: "",
    media_type: "text/html; charset=utf-8",
    bytes: include_bytes!("../../../web/dist/index.html"),
};

/// Files loaded by the page.
const FILES: [File; 4] = [
    File {
        name: "app.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../web/dist/app.js"),
    },
    File {
        name: "math.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../web/dist/math.js"),
    },
    File {
        name: "worker.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../web/dist/worker.js"),
    },
    File {
        name: "style.css",
        media_type: "text/css; charset=utf-8",
        bytes: include_bytes!("../../../web/dist/style.css"),
    },
];

/// Entity tag of the whole page: a browser must not mix files of two releases.
static ETAG: LazyLock<String> = LazyLock::new(|| {
    let hash = FILES
        .iter()
        .chain([&INDEX])
        .fold(Sha256::new(), |hash, file| hash.chain_update(file.bytes));
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash.finalize()))
});

problems!(only NoFile: NotFound);

/// The page for people to use their agents.
///
/// Loading the page needs no credential. The page asks the user for a credential if the gateway requires a credential.
#[utoipa::path(
    get, path = "/", tag = "docs", operation_id = "page", security(()),
    responses((status = 200, content_type = "text/html", body = String, description = "A page"))
)]
pub(super) async fn index(headers: HeaderMap) -> Response {
    response(&INDEX, &headers)
}

/// A file loaded by the page.
///
/// File names are not a part of the API.
#[utoipa::path(
    get, path = "/page/{name}", tag = "docs", operation_id = "page_file", security(()),
    params(("name" = String, Path, example = "app.js")),
    responses(
        (status = 200, content((String = "text/javascript"), (String = "text/css")), description = "A file"),
        NoFile
    )
)]
pub(super) async fn file(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let file = FILES.iter().find(|file| file.name == name);
    file.map(|file| response(file, &headers))
        .ok_or_else(|| Problem::new(Code::NotFound, "The page has no file with this name."))
}

/// Returns the file, or 304 if the browser's copy is current. Browsers ask on every load, therefore a new release shows
/// at once.
fn response(file: &File, headers: &HeaderMap) -> Response {
    let common: [(HeaderName, &str); 5] = [
        (header::ETAG, &ETAG),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let known = headers.get(header::IF_NONE_MATCH);
    if known.is_some_and(|known| known.as_bytes() == ETAG.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let media_type = [(header::CONTENT_TYPE, file.media_type)];
    (common, media_type, file.bytes).into_response()
}
