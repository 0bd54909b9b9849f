//! The demands of Gemini's `streamGenerateContent`.

use serde_json::Value;

use super::{
    found::Problems,
    rules::{self, is_text, list},
    schemas::SchemaReader,
};

/// The parts of a content that carry something; a part has one of the fields.
const FIELDS: [&str; 4] = ["text", "inlineData", "functionCall", "functionResponse"];

/// `needs_signatures`: the first call of every content needs its signature.
pub(super) fn problems(body: &Value, needs_signatures: bool) -> Vec<String> {
    let mut found = Problems::default();
    fields(&mut found, body);
    let contents = list(&body["contents"]);
    let ends = [contents.first(), contents.last()];
    let are_users = ends
        .iter()
        .all(|it| it.is_some_and(|it| it["role"] == "user"));
    found.unless(are_users, || {
        "contents: the first or the last content is not a user's".to_owned()
    });
    let mut is_after_model = false;
    let mut calls = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let address = format!("contents[{at}]");
        let is_user = content["role"] == "user";
        found.unless(is_user || content["role"] == "model", || {
            format!("{address}: the role {}", content["role"])
        });
        found.unless(is_user || !is_after_model, || {
            format!("{address}: two contents of the model in a row")
        });
        is_after_model = !is_user;
        let parts = list(&content["parts"]);
        found.unless(!parts.is_empty(), || format!("{address}: no parts"));
        for part in parts {
            check_part(&mut found, &address, part, is_user);
        }
        results(
            &mut found,
            &address,
            &calls,
            &fields_of(parts, "functionResponse"),
        );
        calls = fields_of(parts, "functionCall");
        if needs_signatures {
            signature(&mut found, &address, parts);
        }
    }
    found.unless(calls.is_empty(), || {
        "contents: the last calls have no results".to_owned()
    });
    found.into_vec()
}

/// Returns a field of the parts that have the field.
fn fields_of<'a>(parts: &'a [Value], field: &str) -> Vec<&'a Value> {
    parts.iter().filter_map(|part| part.get(field)).collect()
}

/// Checks the fields beside the contents.
fn fields(found: &mut Problems, body: &Value) {
    let has = |field: &str| body.get(field).is_some();
    let mut declared = Vec::new();
    for tool in list(&body["tools"]) {
        for tool in list(&tool["functionDeclarations"]) {
            let schema = tool.get("parametersJsonSchema");
            declared.push((&tool["name"], schema.unwrap_or(&tool["parameters"])));
        }
    }
    // A tool without parameters has no schema.
    let named = |(name, schema): &(&Value, &Value)| !name.is_null() && schema.is_null();
    let schema = serde_json::json!({"type": "object"});
    let filled = declared
        .iter()
        .map(|it| if named(it) { (it.0, &schema) } else { *it });
    rules::tools(found, SchemaReader::Gemini, filled, has("tools"));
    found.unless(!has("toolConfig") || has("tools"), || {
        "toolConfig: without tools".to_owned()
    });
    let calling = &body["toolConfig"]["functionCallingConfig"];
    for name in list(&calling["allowedFunctionNames"]) {
        let is_offered = declared.iter().any(|(offered, _)| *offered == name);
        found.unless(calling["mode"] == "ANY" && is_offered, || {
            format!("toolConfig: the mode {calling}")
        });
    }
    let config = &body["generationConfig"];
    let thinking = &config["thinkingConfig"];
    let has_both = !thinking["thinkingBudget"].is_null() && !thinking["thinkingLevel"].is_null();
    let shows_none = thinking["thinkingBudget"] == 0 && thinking["includeThoughts"] == true;
    found.unless(!has_both && !shows_none, || {
        format!("thinkingConfig: {thinking}")
    });
    let has_type = config["responseMimeType"] == "application/json";
    found.unless(!(has_type && has("tools")), || {
        "generationConfig: a media type beside tools".to_owned()
    });
    let has_format = ["responseSchema", "responseJsonSchema"]
        .iter()
        .any(|field| config.get(field).is_some());
    found.unless(!(has_format && has("tools")), || {
        "generationConfig: a schema beside tools".to_owned()
    });
    found.unless(
        !has_format || config["responseMimeType"] == "application/json",
        || "generationConfig: a schema without its media type".to_owned(),
    );
    if has("systemInstruction") {
        let parts = list(&body["systemInstruction"]["parts"]);
        let fits = !parts.is_empty() && parts.iter().all(|part| is_text(&part["text"]));
        found.unless(fits, || "systemInstruction: an empty text".to_owned());
    }
}

fn check_part(found: &mut Problems, address: &str, part: &Value, is_user: bool) {
    let given = FIELDS.iter().filter(|field| part.get(field).is_some());
    found.unless(given.count() == 1, || format!("{address}: the part {part}"));
    if let Some(text) = part.get("text") {
        // The last part of a stream may be a signature beside an empty text.
        let is_signature = text.is_string() && is_text(&part["thoughtSignature"]);
        found.unless(is_text(text) || is_signature, || {
            format!("{address}: the text {text}")
        });
    }
    if let Some(data) = part.get("inlineData") {
        let fits = is_text(&data["mimeType"]) && is_text(&data["data"]);
        found.unless(fits, || format!("{address}: a file without a type or data"));
    }
    if let Some(call) = part.get("functionCall") {
        found.unless(!is_user, || format!("{address}: a user's call"));
        rules::name(found, address, &call["name"]);
        found.unless(call["args"].is_object(), || {
            format!("{address}: the arguments {}", call["args"])
        });
    }
    if let Some(result) = part.get("functionResponse") {
        found.unless(is_user, || format!("{address}: a model's result"));
        found.unless(result["response"].is_object(), || {
            format!("{address}: the result {}", result["response"])
        });
    }
    let signature = part.get("thoughtSignature");
    found.unless(signature.is_none_or(is_text), || {
        format!("{address}: an empty signature")
    });
}

/// Checks that the results are those of the calls in the content before, in their order.
fn results(found: &mut Problems, address: &str, calls: &[&Value], results: &[&Value]) {
    let keys = |of: &[&Value]| -> Vec<String> {
        let key = |it: &&Value| format!("{} {}", it["name"], it["id"]);
        of.iter().map(key).collect()
    };
    let (calls, results) = (keys(calls), keys(results));
    found.unless(calls == results, || {
        format!("{address}: calls {calls:?}, and results {results:?}")
    });
}

fn signature(found: &mut Problems, address: &str, parts: &[Value]) {
    let first = parts.iter().find(|part| part.get("functionCall").is_some());
    let fits = first.is_none_or(|part| is_text(&part["thoughtSignature"]));
    found.unless(fits, || {
        format!("{address}: the first call has no thoughtSignature")
    });
}
