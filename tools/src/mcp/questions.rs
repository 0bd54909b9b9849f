//! The questions of a server to the person of a call (elicitation), in each of the three ways of the protocol.
//!
//! - The newer protocol ends the call with `inputRequired`. The call is made again with the responses and the server's state.
//! - The older protocol asks in the middle of the call. Nobody can answer there for days, so the server gets the answer
//!   "cancel", and the call is made again after the person's answer. The server asks again, and gets the answer then.
//! - An error with the code -32042 names addresses that the person must open before the call is made again.
//!
//! The notes of a question ([`Notes`]) have the answers so far, because another worker may make the call again. Must not be
//! here: the wait for the person (the workflow), the check of the answer (the gateway).

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_proto::Json;
use rmcp::model::{CallToolRequestParams, ErrorCode, ServerResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    error::ToolError,
    question::{Answer, Answered, Form, Question},
};

/// The code of the error with addresses to open.
pub(super) const OPEN_URLS: ErrorCode = ErrorCode(-32042);
/// The method of a question, in both protocols.
pub(super) const METHOD: &str = "elicitation/create";
/// The only value of a result of the newer protocol that asks.
const INPUT_REQUIRED: &str = "input_required";

/// The tools of a server that may ask people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Questions {
    /// No tool. The connection tells the server that it offers no elicitation.
    None,
    /// Tools with an effect that may be repeated, and every tool of the newer protocol.
    #[default]
    Repeatable,
    /// Every tool. The operator says that no tool of the server has an effect before its question.
    All,
}

/// The tool's notes of a question: the dialog so far.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Notes {
    /// The server's state, in the newer protocol.
    state: Option<String>,
    /// The requests of the server's last result that have no response yet.
    requests: BTreeMap<String, Value>,
    /// The responses to the other requests of the last result.
    responses: BTreeMap<String, Value>,
    /// The answered requests, in order: the request, and the result. A server that begins anew gets the results again.
    answered: Vec<(Value, Value)>,
    /// The request of the open question.
    asked: Asked,
}

/// The origin of the open question.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
enum Asked {
    /// The key of a request of the newer protocol.
    Key(String),
    /// A request of the older protocol.
    Request(Value),
    /// An address to open before the call. The next call needs no word of the answer.
    #[default]
    Address,
}

/// The questions of one call.
#[derive(Clone, Default)]
pub(super) struct Dialog {
    inner: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    notes: Notes,
    /// Number of the answered requests that the server need not ask again.
    replayed: usize,
    /// True after the call has begun anew without the server's state.
    has_restarted: bool,
    /// The first request of this call without an answer.
    open: Option<Value>,
}

impl Dialog {
    /// Returns the dialog with the person's answer.
    pub(super) fn with(answered: Option<&Answered>) -> Result<Self, ToolError> {
        let Some(answered) = answered else {
            return Ok(Self::default());
        };
        let unreadable = || {
            let text =
                "The notes of the tool's question cannot be read. The tool was not called again.";
            ToolError::Failed(text.to_owned())
        };
        let mut notes: Notes = answered.notes.decode().map_err(|_| unreadable())?;
        let result = match &answered.answer {
            Answer::Declined => json!({"action": "decline"}),
            Answer::Given(fields) => {
                if let Some(number) = fields.inexact_number() {
                    return Err(ToolError::Failed(format!(
                        "The tool was not called again: a tool of an MCP server gets numbers of 64 bits, and {number} in \
                         the person's answer has more digits."
                    )));
                }
                json!({"action": "accept", "content": fields.to_value()})
            }
        };
        let mut replayed = 0;
        match std::mem::take(&mut notes.asked) {
            Asked::Key(key) => {
                let request = notes.requests.remove(&key).unwrap_or_default();
                notes.answered.push((request, result.clone()));
                notes.responses.insert(key, result);
                replayed = notes.answered.len();
            }
            Asked::Request(request) => notes.answered.push((request, result)),
            Asked::Address if answered.answer == Answer::Declined => {
                let text = "A person declined to open the address of the tool. The tool was not called again.";
                return Err(ToolError::Failed(text.to_owned()));
            }
            Asked::Address => {}
        }
        let state = State {
            notes,
            replayed,
            ..State::default()
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(state)),
        })
    }

    /// Returns the next question of the server's last result, if a request has no response yet.
    pub(super) fn next(&self, server: &str) -> Result<Option<Question>, ToolError> {
        let state = &mut *self.state();
        let Some((key, request)) = state.notes.requests.first_key_value() else {
            return Ok(None);
        };
        let is_question = request.get("method").is_some_and(|method| method == METHOD);
        let asked = request.get("params").filter(|_| is_question);
        let Some((message, form)) = asked.and_then(words) else {
            return Err(ToolError::Failed(format!(
                "MCP server `{server}` asks for more than a form or an address, which Everturn does not offer."
            )));
        };
        let asked = Asked::Key(key.clone());
        Ok(Some(state.question(asked, message, form)))
    }

    /// Adds the responses and the server's state to the parameters of the call. A call without both begins the dialog, also
    /// when the call is sent again.
    pub(super) fn add_to(&self, mut params: CallToolRequestParams) -> CallToolRequestParams {
        let state = &mut *self.state();
        let notes = &state.notes;
        if notes.state.is_none() && notes.responses.is_empty() {
            (state.replayed, state.open) = (0, None);
        }
        if !notes.responses.is_empty() {
            params = params.with_input_responses(notes.responses.clone());
        }
        if let Some(state) = &notes.state {
            params = params.with_request_state(state.clone());
        }
        params
    }

    /// Takes the requests of a result of the newer protocol. Returns false for the result of an ended call.
    pub(super) fn take(&self, answer: &ServerResult) -> bool {
        let round = match answer {
            ServerResult::InputRequiredResult(round) => json!(round),
            // rmcp does not know each form that servers write.
            ServerResult::CustomResult(custom) if is_round(&custom.0) => custom.0.clone(),
            _ => return false,
        };
        let state = &mut *self.state();
        let server_state = round.get("requestState").and_then(Value::as_str);
        state.notes.state = server_state.map(str::to_owned);
        state.notes.requests.clear();
        state.notes.responses.clear();
        let requests = round.get("inputRequests").and_then(Value::as_object);
        for (key, request) in requests.into_iter().flatten() {
            let request = unmarked(request.clone());
            match state.replay(&request) {
                Some(result) => state.notes.responses.insert(key.clone(), result),
                None => state.notes.requests.insert(key.clone(), request),
            };
        }
        true
    }

    /// True when the server's last result asked nothing: the server wants the call again later, with its state.
    pub(super) fn is_put_off(&self) -> bool {
        let notes = &self.state().notes;
        notes.requests.is_empty() && notes.responses.is_empty()
    }

    /// Forgets the server's state, once in a call: the next call begins the dialog anew. Returns false for a call without a state. A
    /// restarted server no longer knows its old states, and some states expire before a person answers.
    pub(super) fn restart(&self) -> bool {
        let state = &mut *self.state();
        let notes = &mut state.notes;
        let has_state = notes.state.take().is_some() || !notes.responses.is_empty();
        if !has_state || state.has_restarted {
            return false;
        }
        notes.responses.clear();
        state.has_restarted = true;
        true
    }

    /// Returns the result for a request of the older protocol in the middle of the call: the person's answer, or "cancel"
    /// when nobody has answered yet.
    pub(super) fn reply(&self, request: Value) -> Value {
        let request = unmarked(request);
        let state = &mut *self.state();
        if state.open.is_none()
            && let Some(result) = state.replay(&request)
        {
            return result;
        }
        state.open.get_or_insert(request);
        json!({"action": "cancel"})
    }

    /// Returns the question that the server asked in the middle of the call; `None` without an open question.
    pub(super) fn open_question(&self) -> Option<Question> {
        let state = &mut *self.state();
        let request = state.open.take()?;
        let (message, form) = words(&request)?;
        Some(state.question(Asked::Request(request), message, form))
    }

    /// Returns the question of an error with addresses: the first address.
    pub(super) fn address(&self, data: Option<&Value>) -> Option<Question> {
        let first = data?.get("elicitations")?.get(0)?;
        let (message, form) = words(first)?;
        Some(self.state().question(Asked::Address, message, form))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Dialog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A person's answers stay out of logs.
        formatter.debug_struct("Dialog").finish_non_exhaustive()
    }
}

impl State {
    /// Returns the person's result for a request that the server asks again. A request that the server has not asked before
    /// makes the rest of the old answers void.
    fn replay(&mut self, request: &Value) -> Option<Value> {
        let answered = &mut self.notes.answered;
        let left = answered.get(self.replayed..).unwrap_or_default();
        let Some(skipped) = left.iter().position(|(known, _)| known == request) else {
            answered.truncate(self.replayed);
            return None;
        };
        answered.drain(self.replayed..self.replayed + skipped);
        let (_, result) = answered.get(self.replayed)?;
        self.replayed += 1;
        Some(result.clone())
    }

    fn question(&mut self, asked: Asked, message: String, form: Form) -> Question {
        self.notes.asked = asked;
        Question {
            message,
            form,
            notes: Json::of(&self.notes),
        }
    }
}

/// Returns a request without the parts that differ in each call.
fn unmarked(mut request: Value) -> Value {
    let strip = |fields: &mut Value| {
        if let Some(fields) = fields.as_object_mut() {
            fields.retain(|key, _| !matches!(key.as_str(), "_meta" | "elicitationId"));
        }
    };
    strip(&mut request);
    if let Some(params) = request.get_mut("params") {
        strip(params);
    }
    request
}

fn is_round(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some(INPUT_REQUIRED)
}

/// Returns the words and the form of a request; `None` for a request without a form that a person can be shown.
fn words(request: &Value) -> Option<(String, Form)> {
    let message = request.get("message").and_then(Value::as_str);
    let message = message.unwrap_or_default().to_owned();
    if let Some(url) = request.get("url").and_then(Value::as_str) {
        return Some((message, Form::Url(url.to_owned())));
    }
    let schema = request.get("requestedSchema").filter(|it| it.is_object())?;
    Some((message, Form::Fields(Json::of(schema))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(message: &str) -> Value {
        json!({"mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}}})
    }

    fn asks(message: &str, id: u32) -> Value {
        let mut request = form(message);
        request["_meta"] = json!({"progressToken": id});
        request
    }

    fn round(requests: &Value, state: &str) -> ServerResult {
        let round = json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
        serde_json::from_value(round).unwrap()
    }

    fn request(message: &str) -> Value {
        json!({"method": METHOD, "params": form(message)})
    }

    fn answered(question: &Question, fields: Option<&str>) -> Answered {
        let answer = match fields {
            Some(fields) => Answer::Given(Json::parse(fields).unwrap()),
            None => Answer::Declined,
        };
        Answered {
            number: 1,
            notes: question.notes.clone(),
            answer,
        }
    }

    fn params(dialog: &Dialog) -> Value {
        json!(dialog.add_to(CallToolRequestParams::new("t")))
    }

    fn accept(fields: &Value) -> Value {
        json!({"action": "accept", "content": fields})
    }

    #[test]
    fn the_requests_of_a_result_are_asked_one_by_one() {
        let dialog = Dialog::with(None).unwrap();
        let both = json!({"a": request("A?"), "b": request("B?")});
        assert!(dialog.take(&round(&both, "s1")));
        let first = dialog.next("s").unwrap().unwrap();
        assert_eq!(first.message, "A?");
        let dialog = Dialog::with(Some(&answered(&first, Some(r#"{"n":1}"#)))).unwrap();
        let second = dialog.next("s").unwrap().unwrap();
        assert_eq!(second.message, "B?");
        let dialog = Dialog::with(Some(&answered(&second, None))).unwrap();
        assert_eq!(dialog.next("s").unwrap(), None);
        let sent = params(&dialog);
        assert_eq!(sent["requestState"], "s1");
        assert_eq!(sent["inputResponses"]["a"], accept(&json!({"n": 1})));
        assert_eq!(sent["inputResponses"]["b"], json!({"action": "decline"}));
        // A server that finds the answer wrong asks again, and the person is asked again.
        assert!(dialog.take(&round(&json!({"a": request("A?")}), "s2")));
        assert_eq!(dialog.next("s").unwrap().unwrap().message, "A?");
    }

    /// The state of a restarted server is void. The server asks anew, and gets the answers that the person gave.
    #[test]
    fn a_person_is_not_asked_again_when_a_server_begins_anew() {
        let dialog = Dialog::with(None).unwrap();
        assert!(!dialog.restart(), "a call without a state");
        dialog.take(&round(&json!({"a": request("A?")}), "s1"));
        let question = dialog.next("s").unwrap().unwrap();
        let dialog = Dialog::with(Some(&answered(&question, Some(r#"{"n":1}"#)))).unwrap();
        assert!(dialog.restart());
        assert_eq!(params(&dialog), json!({"name": "t"}));
        assert!(dialog.take(&round(&json!({"new": request("A?")}), "s2")));
        assert!(!dialog.is_put_off());
        assert_eq!(dialog.next("s").unwrap(), None);
        let sent = params(&dialog);
        assert_eq!(sent["inputResponses"]["new"], accept(&json!({"n": 1})));
        assert_eq!(sent["requestState"], "s2");
        assert!(!dialog.restart(), "once in a call");
    }

    #[test]
    fn a_request_in_mid_call_gets_the_answer_in_the_next_call() {
        let dialog = Dialog::with(None).unwrap();
        assert_eq!(dialog.reply(asks("A?", 1)), json!({"action": "cancel"}));
        assert_eq!(dialog.reply(asks("B?", 2)), json!({"action": "cancel"}));
        let first = dialog.open_question().unwrap();
        assert_eq!(
            (first.message.as_str(), dialog.open_question()),
            ("A?", None)
        );
        let dialog = Dialog::with(Some(&answered(&first, Some(r#"{"n":1}"#)))).unwrap();
        for _sent_again in 0..2 {
            assert_eq!(params(&dialog), json!({"name": "t"}));
            assert_eq!(dialog.reply(asks("A?", 3)), accept(&json!({"n": 1})));
            assert_eq!(dialog.reply(asks("B?", 4)), json!({"action": "cancel"}));
        }
        let second = dialog.open_question().unwrap();
        let dialog = Dialog::with(Some(&answered(&second, None))).unwrap();
        dialog.reply(asks("A?", 5));
        assert_eq!(dialog.reply(asks("B?", 6)), json!({"action": "decline"}));
        assert_eq!(dialog.open_question(), None);
    }

    #[test]
    fn an_address_is_opened_before_the_call() {
        let data = json!({"elicitations": [{"mode": "url", "message": "Sign in.", "url": "https://a.example", "elicitationId": "1"}]});
        let dialog = Dialog::with(None).unwrap();
        let question = dialog.address(Some(&data)).unwrap();
        assert_eq!(question.form, Form::Url("https://a.example".to_owned()));
        let dialog = Dialog::with(Some(&answered(&question, Some("{}")))).unwrap();
        assert_eq!(params(&dialog), json!({"name": "t"}));
        let declined = Dialog::with(Some(&answered(&question, None)));
        assert!(
            matches!(declined, Err(ToolError::Failed(_))),
            "{declined:?}"
        );
        assert_eq!(dialog.address(None), None);
    }

    #[test]
    fn what_nobody_can_answer_is_refused() {
        let dialog = Dialog::with(None).unwrap();
        let sampling = json!({"a": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}});
        dialog.take(&round(&sampling, "s"));
        assert!(matches!(dialog.next("s"), Err(ToolError::Failed(_))));
        dialog.take(&round(&json!({"a": request("A?")}), "s"));
        let question = dialog.next("s").unwrap().unwrap();
        let long = answered(&question, Some(r#"{"n":123456789012345678901234}"#));
        assert!(matches!(
            Dialog::with(Some(&long)),
            Err(ToolError::Failed(_))
        ));
        let strange = Answered {
            notes: Json::of(&7),
            ..answered(&question, None)
        };
        assert!(matches!(
            Dialog::with(Some(&strange)),
            Err(ToolError::Failed(_))
        ));
    }
}
