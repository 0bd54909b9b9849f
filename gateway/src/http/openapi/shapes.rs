//! OpenAPI parameters and schemas for several endpoints. Handlers do not read the types defined here. The parameters of
//! the extractors [`ConversationId`], [`ExecutionPath`] and [`CallPath`], read by handlers, are described here, too.

use everturn_proto::limits::MAX_MESSAGE_BYTES;
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        Ref, RefOr, Required, Schema,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{AnyOfBuilder, ObjectBuilder, Type},
    },
};

use crate::{
    http::extract::{CallPath, ConversationId, ExecutionPath},
    schema::{Id, Sequence},
};

/// The text of a user's message.
pub(crate) struct MessageText;

impl PartialSchema for MessageText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "The text must not be blank or have a NUL character. The limit counts bytes of UTF-8, and may be configured \
                 lower.",
            ))
            .min_length(Some(1))
            .max_length(Some(MAX_MESSAGE_BYTES))
            .pattern(Some(r"^[^\u0000]*[^\s\u0000][^\u0000]*$"))
            .examples(["What is 2 + 2?"])
            .into()
    }
}

impl ToSchema for MessageText {}

impl IntoParams for ConversationId {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let id = ParameterBuilder::new()
            .name("id")
            .parameter_in(ParameterIn::Path)
            .required(Required::True);
        vec![
            id.description(Some("The conversation."))
                .schema(Some(Ref::from_schema_name("Id")))
                .build(),
        ]
    }
}

impl IntoParams for ExecutionPath {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let id = ParameterBuilder::new()
            .name("execution_id")
            .parameter_in(ParameterIn::Path)
            .required(Required::True);
        let id = id
            .description(Some("The tool execution."))
            .schema(Some(Ref::from_schema_name("Id")))
            .build();
        [ConversationId::into_params(parameter_in), vec![id]].concat()
    }
}

impl IntoParams for CallPath {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let path = |name: &str| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
        };
        let execution = path("execution_id")
            .description(Some("The agent execution."))
            .schema(Some(Ref::from_schema_name("Id")))
            .build();
        let step = path("step")
            .description(Some("The step of the LLM call, from 0."))
            .schema(Some(
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .minimum(Some(0))
                    .maximum(Some(u32::MAX)),
            ))
            .build();
        [
            ConversationId::into_params(parameter_in),
            vec![execution, step],
        ]
        .concat()
    }
}

/// The header `Idempotency-Key`, with the client's own id of a message or an uploaded file.
pub(crate) struct IdempotencyKey;

impl IntoParams for IdempotencyKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![header(
            "Idempotency-Key",
            "Id",
            "The client's id of a message or an uploaded file. A repeated request with an equal key stores the message, the file \
             and a new conversation only once. An id in the body wins over the header.",
        )]
    }
}

/// The header `Last-Event-ID`: a browser sends the header when reconnecting to a stream.
pub(crate) struct LastEventId;

impl IntoParams for LastEventId {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![header(
            "Last-Event-ID",
            "CursorText",
            "A cursor, like the parameter `cursor`. Browsers send the header when reconnecting. The header wins over `cursor`.",
        )]
    }
}

fn header(name: &str, schema: &str, description: &str) -> Parameter {
    let header = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False);
    header
        .description(Some(description))
        .schema(Some(Ref::from_schema_name(schema)))
        .build()
}

/// An event. Skip unknown event types, because later versions add types.
#[derive(ToSchema)]
#[schema(as = Event)]
#[expect(dead_code, reason = "the fields are read by the document only")]
pub(crate) struct LoggedEvent {
    id: String,
    #[schema(value_type = Id)]
    conversation_id: String,
    /// User message of the event's turn.
    message_id: String,
    event_type: String,
    /// Data of the event. The format depends on `event_type`: see the API's documentation.
    #[schema(required = true)]
    event_data: serde_json::Value,
    #[schema(value_type = Sequence)]
    sequence_number: u32,
    #[schema(format = DateTime)]
    created_at: String,
}

/// `data` of an event's frame: the fields here, and the fields of `event_data`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the fields are read by the document only")]
pub(crate) struct EventFrame {
    /// The event's type.
    #[schema(rename = "type")]
    kind: String,
    #[schema(value_type = Id)]
    conversation_id: String,
    message_id: String,
    #[schema(value_type = Sequence)]
    sequence_number: u32,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A frame of a stream of [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html). Only
/// events have an `id`, which is a cursor: a reconnecting browser sends the `id` as `Last-Event-ID`.
#[derive(ToSchema)]
#[schema(as = Frame)]
#[expect(dead_code, reason = "the fields are read by the document only")]
pub(crate) struct AnyFrame {
    #[schema(pattern = "^[1-9][0-9]{0,9}-[0-9a-f]{1,16}$", nullable = false)]
    id: Option<String>,
    /// The `type` of the data. The event `error` is named `turn_error` here, because `EventSource` has its own event
    /// `error`. The frame `conversation` of a chat has no `type`.
    event: String,
    /// JSON.
    #[schema(schema_with = frame_data)]
    data: String,
}

fn frame_data() -> RefOr<Schema> {
    any_of(&[
        "EventFrame",
        "TextFrame",
        "ModelWaitingFrame",
        "ToolProgressFrame",
        "ChatFrame",
        "ReplayFrame",
        "ResetFrame",
        "ReconnectFrame",
        "EndFrame",
    ])
}

/// A frame of a list's stream of [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html).
/// No frame has an `id`.
#[derive(ToSchema)]
#[schema(as = FrameOfList)]
#[expect(dead_code, reason = "the fields are read by the document only")]
pub(crate) struct AnyListFrame {
    /// The `type` of the data.
    event: String,
    /// JSON.
    #[schema(schema_with = list_frame_data)]
    data: String,
}

fn list_frame_data() -> RefOr<Schema> {
    any_of(&[
        "ListFrame",
        "ConversationChangedFrame",
        "ConversationRemovedFrame",
        "ReconnectFrame",
        "EndFrame",
    ])
}

/// Returns the schema of a text with JSON of any of the given shapes.
fn any_of(shapes: &[&str]) -> RefOr<Schema> {
    let shapes = shapes.iter().fold(AnyOfBuilder::new(), |shapes, name| {
        shapes.item(Ref::from_schema_name(*name))
    });
    ObjectBuilder::new()
        .schema_type(Type::String)
        .content_media_type("application/json")
        .content_schema(Some(shapes))
        .into()
}
