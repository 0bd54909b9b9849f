//! The OpenAPI document: the parts shared by its endpoints. Every handler carries an annotation with its parameters and
//! responses. [`routes`](super::routes) collects the annotations, so the document has every endpoint of the gateway.
//!
//! The document uses OpenAPI 3.2, the first version that can describe the frames of a stream (`itemSchema`).

mod shapes;

use std::collections::BTreeMap;

use axum::http::{
    HeaderName,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use utoipa::{
    OpenApi,
    openapi::{
        Components, ContentBuilder, HeaderBuilder, OpenApiVersion, Ref, RefOr, Response,
        ResponseBuilder,
        path::{Operation, PathItem},
        schema::{AllOfBuilder, ObjectBuilder, Type},
        security::{
            ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
        },
    },
};

pub(crate) use shapes::{
    AnyFrame, AnyListFrame, IdempotencyKey, LastEventId, LoggedEvent, MessageText,
};

use self::shapes::EventFrame;
use crate::{
    http::{
        auth::SECURE_COOKIE,
        problem::{Code, ProblemBody, REQUEST_ID},
    },
    live::sse::{
        ChatFrame, ConversationChangedFrame, ConversationRemovedFrame, EndFrame, ListFrame,
        ModelWaitingFrame, ReconnectFrame, ReplayFrame, ResetFrame, TextFrame, ToolProgressFrame,
    },
    schema::{CursorText, Id, Sequence, one_of},
};

/// Problem codes of every endpoint whose `problems!` list is not marked `only`: refused credentials, owners, origins and hosts,
/// timeouts, conflicts, exceeded limits, internal errors, and an unavailable identity provider or store.
const COMMON: [Code; 12] = [
    Code::Unauthenticated,
    Code::InsufficientScope,
    Code::OwnerRefused,
    Code::OriginNotAllowed,
    Code::HostNotAllowed,
    Code::RequestTimeout,
    Code::Conflict,
    Code::RateLimited,
    Code::TooMuchAtOnce,
    Code::Internal,
    Code::IssuerUnavailable,
    Code::StoreUnavailable,
];

/// Names of the security schemes.
const BEARER: &str = "bearer";
const SESSION: &str = "session";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Everturn",
        description = "Conversations with durable agents. Every response has the header `x-request-id`: the request's \
                       own id, or a new id. Every error is a `Problem`. Unknown fields and parameters are ignored. Reading \
                       needs the scope `read`, answering approvals `approve`, `/admin` the scope `admin`, the codec \
                       server `codec`, and every further request `write`. If the gateway requires no credential, callers \
                       without a credential belong to the tenant `default`."
    ),
    components(schemas(
        ProblemBody, AnyFrame, EventFrame, TextFrame, ModelWaitingFrame, ToolProgressFrame, ChatFrame, ReplayFrame, ResetFrame, ReconnectFrame, EndFrame, Id,
        AnyListFrame, ListFrame, ConversationChangedFrame, ConversationRemovedFrame,
        Sequence, CursorText, MessageText
    )),
    tags(
        (name = "conversations"),
        (name = "messages", description = "Messages, and the timeline for people"),
        (name = "files", description = "Images and files of messages and of tool results"),
        (name = "events", description = "The event log, for programs"),
        (name = "turns", description = "The running turn"),
        (name = "tools", description = "Tool calls waiting for a person or for the client"),
        (name = "usage", description = "The tokens and costs of a tenant's LLM calls"),
        (name = "codec", description = "Decryption and encryption of payloads, for the Temporal UI and CLI"),
        (name = "admin", description = "The audit trail, failures, keys, tenants and usage, for admins"),
        (name = "auth", description = "The caller, and sessions of browsers"),
        (name = "health", description = "Health checks, for supervisors and load balancers"),
        (name = "docs", description = "The OpenAPI document, and the pages of the error codes"),
    )
)]
struct Common;

/// Declares a type for the `responses` of an annotation from the endpoint's problem codes.
/// The macro adds the codes of [`COMMON`] unless the list begins with `only`.
macro_rules! problems {
    ($name:ident: $($code:ident),*) => {
        $crate::http::openapi::problems!(@ $name, $crate::http::openapi::with_common(&[$($crate::http::problem::Code::$code),*]));
    };
    (only $name:ident: $($code:ident),+) => {
        $crate::http::openapi::problems!(@ $name, $crate::http::openapi::responses(&[$($crate::http::problem::Code::$code),+]));
    };
    (@ $name:ident, $responses:expr) => {
        struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::Response>,
            > {
                $responses
            }
        }
    };
}
pub(crate) use problems;

/// Returns the OpenAPI document as JSON text: the gateway serves the text, and the repository has a copy.
pub(crate) fn text(document: utoipa::openapi::OpenApi) -> String {
    let mut text = finished(document).to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the document's shared parts, without any endpoint.
pub(crate) fn common() -> utoipa::openapi::OpenApi {
    Common::openapi()
}

/// Returns the responses for the given codes and the codes of [`COMMON`].
pub(crate) fn with_common(codes: &[Code]) -> BTreeMap<String, RefOr<Response>> {
    responses(&[codes, &COMMON].concat())
}

/// Returns one response for every HTTP status of the given codes.
pub(crate) fn responses(codes: &[Code]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status = BTreeMap::<_, Vec<_>>::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(*code);
    }
    by_status
        .iter()
        .map(|(status, codes)| (status.as_str().to_owned(), problem(codes).into()))
        .collect()
}

fn problem(codes: &[Code]) -> Response {
    let titles: Vec<_> = codes
        .iter()
        .map(|code| format!("{} (`{}`)", code.title(), code.as_str()))
        .collect();
    let words: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
    let narrowed = ObjectBuilder::new().property("code", one_of(&words));
    let schema = AllOfBuilder::new()
        .item(Ref::from_schema_name("Problem"))
        .item(narrowed);
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(titles.join(". "))
        .content("application/problem+json", content)
        .build()
}

/// Adds the security schemes and the shared response headers to the document.
fn finished(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    document.openapi = OpenApiVersion::Version32;
    let components = document.components.get_or_insert_with(Components::new);
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description = Some("An API key, or a token of the identity provider.".to_owned());
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    let session = "A browser's session. On loopback, the cookie's name is `everturn`.";
    let session = ApiKeyValue::with_description(SECURE_COOKIE, session);
    components.add_security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(session)));
    let mut add_header = |name: &str, schema: ObjectBuilder, what: &str| {
        let header = HeaderBuilder::new()
            .schema(Some(schema))
            .description(Some(what))
            .build();
        components.headers.insert(name.to_owned(), header.into());
    };
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let seconds = ObjectBuilder::new().schema_type(Type::Integer);
    add_header(
        "RequestId",
        text(),
        "The id of the request in the gateway's log.",
    );
    add_header(
        "WwwAuthenticate",
        text(),
        "A challenge of the scheme Bearer (RFC 6750).",
    );
    add_header(
        "RetryAfter",
        seconds.minimum(Some(0)),
        "The seconds to wait before the request is repeated.",
    );
    document.security = Some(
        [BEARER, SESSION]
            .map(|name| SecurityRequirement::new(name, [""; 0]))
            .to_vec(),
    );
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        for (status, response) in &mut operation.responses.responses {
            let RefOr::T(response) = response else {
                continue;
            };
            let mut add_header = |name: HeaderName, header| {
                response
                    .headers
                    .insert(name.to_string(), RefOr::Ref(Ref::new(header)));
            };
            add_header(REQUEST_ID, "#/components/headers/RequestId");
            match status.as_str() {
                "401" => add_header(WWW_AUTHENTICATE, "#/components/headers/WwwAuthenticate"),
                "429" | "503" => add_header(RETRY_AFTER, "#/components/headers/RetryAfter"),
                _ => {}
            }
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.patch,
        &mut item.delete,
    ]
    .into_iter()
    .flatten()
}
