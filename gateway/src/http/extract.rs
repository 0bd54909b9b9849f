//! Extractors: from requests to checked values. An invalid request is a problem with status 400.

use std::{error::Error, fmt, marker::PhantomData};

use axum::{
    body::{Body as RequestBody, Bytes},
    extract::{
        FromRequest, FromRequestParts, Json, Path, Query, Request, rejection::JsonRejection,
    },
    http::{StatusCode, request::Parts},
};
use everturn_proto::ids;
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};

pub use crate::http::auth::Caller;
use crate::{
    connections::body::is_too_slow,
    http::problem::{Code, Problem},
};

/// The id of a conversation in a request: the conversation's name in the caller's tenant. The store and the engine use
/// another id, and only [`GatewayState::conversation`] looks that id up.
///
/// [`GatewayState::conversation`]: crate::http::state::GatewayState::conversation
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Checks a name from a request.
    pub fn checked(name: String) -> Result<Self, Problem> {
        checked_id("conversation id", name).map(Self)
    }

    /// Returns the name's text, for look-ups and answers.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name's text.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// The conversation id of the path.
#[derive(Debug, Clone)]
pub struct ConversationId(pub Name);

impl<S: Send + Sync> FromRequestParts<S> for ConversationId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Name::checked(id).map(Self),
            Err(rejection) => Err(Problem::new(Code::InvalidId, rejection.body_text())),
        }
    }
}

/// The conversation of the path, and the tool execution or agent execution of the path.
#[derive(Debug, Clone)]
pub struct ExecutionPath {
    /// The conversation.
    pub conversation: Name,
    /// The id of the conversation's tool execution or agent execution.
    pub execution_id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ExecutionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((conversation, execution_id))) => Ok(Self {
                conversation: Name::checked(conversation)?,
                execution_id: checked_id("execution id", execution_id)?,
            }),
            Err(rejection) => Err(Problem::new(Code::InvalidId, rejection.body_text())),
        }
    }
}

/// The LLM call of the path: the conversation, the agent execution, and the step.
#[derive(Debug, Clone)]
pub struct CallPath {
    /// The conversation and the agent execution.
    pub execution: ExecutionPath,
    /// The step of the agent execution, from 0.
    pub step: u32,
}

impl<S: Send + Sync> FromRequestParts<S> for CallPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<(String, String, String)>::from_request_parts(parts, state).await {
            Ok(Path((conversation, execution_id, step))) => Ok(Self {
                execution: ExecutionPath {
                    conversation: Name::checked(conversation)?,
                    execution_id: checked_id("execution id", execution_id)?,
                },
                step: step.parse().map_err(|_| {
                    let detail = format!("A step is a whole number from 0 to {}.", u32::MAX);
                    Problem::new(Code::InvalidParameter, detail)
                })?,
            }),
            Err(rejection) => Err(Problem::new(Code::InvalidId, rejection.body_text())),
        }
    }
}

/// Query parameters.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Problem::new(Code::InvalidParameter, rejection.body_text())),
        }
    }
}

/// A JSON body: an object.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::<Object<T>>::from_request(request, state).await {
            Ok(Json(Object(body))) => Ok(Self(body)),
            Err(rejection) => Err(body_problem(&rejection)),
        }
    }
}

/// A JSON body that may be left out, or null.
#[derive(Debug)]
pub struct OptionalJsonBody<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let bytes = bytes.map_err(|rejection| body_problem(&rejection.into()))?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        let request = Request::from_parts(parts, RequestBody::from(bytes));
        match Json::<Option<Object<T>>>::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body.map(|Object(body)| body).unwrap_or_default())),
            Err(rejection) => Err(body_problem(&rejection)),
        }
    }
}

/// Makes the problem of a rejected body. 415 and 422 become 400, because clients need a single status for a body that
/// the endpoint does not take.
fn body_problem(rejection: &JsonRejection) -> Problem {
    match rejection {
        JsonRejection::BytesRejection(rejection)
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE =>
        {
            Problem::new(Code::BodyTooLarge, "Send a smaller body.")
        }
        JsonRejection::BytesRejection(rejection) => unread_body(rejection),
        rejection => Problem::new(Code::InvalidBody, rejection.body_text()),
    }
}

/// Makes the problem of an incomplete body.
pub(crate) fn unread_body(error: &(dyn Error + 'static)) -> Problem {
    if is_too_slow(error) {
        Problem::new(
            Code::RequestTimeout,
            "The body came too slowly. Send it again.",
        )
    } else {
        Problem::new(Code::InvalidBody, "The body could not be read.")
    }
}

/// A value that is read only from a JSON object. Serde alone would also read the value from an array of its fields.
struct Object<T>(T);

/// Reads an optional field that must be an object, for `deserialize_with`.
pub(super) fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let object = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(object.map(|Object(value)| value))
}

/// Reads a field that is a list of objects, for `deserialize_with`.
pub(super) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}

/// Reads a whole number, for `deserialize_with`. `1000.0` is whole, too (JSON Schema 2020-12, Validation, 6.1.1).
pub(super) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
        // The number is whole and in the range, and therefore the cast loses no digits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        return Ok(number as u32);
    }
    let expected = format!("a whole number from 0 to {}", u32::MAX);
    Err(de::Error::custom(format!("{number} is not {expected}")))
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// Returns `id` when it can be part of a workflow id and of a path.
pub fn checked_id(what: &str, id: String) -> Result<String, Problem> {
    match ids::check(&id) {
        Ok(()) => Ok(id),
        Err(reason) => Err(Problem::new(Code::InvalidId, format!("A {what} {reason}."))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::header;
    use everturn_proto::{Json as RawJson, limits::MAX_ID_BYTES};
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Fields {
        _text: String,
        _count: u32,
        value: RawJson,
    }

    fn request(body: impl Into<RequestBody>) -> Request {
        let request = Request::builder().header(header::CONTENT_TYPE, "application/json");
        request.body(body.into()).unwrap()
    }

    fn read(body: &[u8]) -> Result<JsonBody<Fields>, Problem> {
        let read = JsonBody::<Fields>::from_request(request(body.to_vec()), &());
        read.now_or_never().unwrap()
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Part {
        a: Option<u32>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Whole {
        #[serde(default, deserialize_with = "optional_object")]
        one: Option<Part>,
        #[serde(default, deserialize_with = "objects")]
        many: Vec<Part>,
        #[serde(default, deserialize_with = "whole_number")]
        number: u32,
    }

    #[test]
    fn parts_are_objects_and_whole_numbers_may_have_a_point() {
        let read = |text| serde_json::from_str::<Whole>(text);
        let part = |a| Part { a: Some(a) };
        let whole = read(r#"{"one": {"a": 1}, "many": [{"a": 2}], "number": 1000.0}"#).unwrap();
        let (one, many, number) = (Some(part(1)), vec![part(2)], 1000);
        assert_eq!(whole, Whole { one, many, number });
        assert_eq!(read(r#"{"one": null}"#).unwrap().one, None);
        for wrong in [
            r#"{"one": [1]}"#,
            r#"{"many": [[1]]}"#,
            r#"{"number": 1.5}"#,
            r#"{"number": -1}"#,
            r#"{"number": 4294967296}"#,
            r#"{"number": "1"}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_body_is_as_deep_as_it_likes_and_takes_no_room_on_the_stack() {
        let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        let body = format!(r#"{{"value":{deep}}}"#);
        assert!(read(body.as_bytes()).unwrap().0.value.is_too_deep());
        for body in [format!(r#"{{"_text":{deep}}}"#), deep] {
            assert_eq!(read(body.as_bytes()).unwrap_err().code(), Code::InvalidBody);
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_is_refused_with_a_code(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            json in r#"\{("(_text|_count|value|x)":("[a-z\\]{0,4}"|[0-9eE.-]{1,8}|[\[\]{},]{1,6}|null),?){0,4}\}"#,
        ) {
            for body in [bytes.as_slice(), json.as_bytes()] {
                match read(body) {
                    Ok(JsonBody(fields)) => prop_assert!(RawJson::parse(fields.value.as_str()).is_ok()),
                    Err(problem) => prop_assert_eq!(problem.code(), Code::InvalidBody),
                }
                let optional = OptionalJsonBody::<Fields>::from_request(request(body.to_vec()), &());
                if let Err(problem) = optional.now_or_never().unwrap() {
                    prop_assert_eq!(problem.code(), Code::InvalidBody);
                }
            }
        }

        #[test]
        fn any_id_is_one_of_a_path_or_is_refused(id in "\\PC{0,120}|[.a]{1,3}") {
            match checked_id("thing", id.clone()) {
                Ok(checked) => {
                    prop_assert!(checked == id && id.len() <= MAX_ID_BYTES && !id.contains(['/', ' ']));
                    prop_assert!(![".", ".."].contains(&id.as_str()));
                }
                Err(problem) => prop_assert_eq!(problem.code(), Code::InvalidId),
            }
        }
    }
}
