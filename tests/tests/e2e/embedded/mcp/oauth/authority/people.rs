//! The part of the authorization server for people: the page where they consent, their codes and refresh tokens, and the
//! tokens that are taken back.

use std::collections::BTreeMap;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Url;
use sha2::{Digest, Sha256};

use super::{Authority, Inner, form};

/// The page where people consent. The person of the test is the user in the URL, and allows everything; the person
/// `nobody` allows nothing.
pub(super) async fn authorize(
    State(authority): State<Authority>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let query = form(uri.query().unwrap());
    let person = headers
        .get("x-person")
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let mut back: Url = query["redirect_uri"].parse().unwrap();
    back.query_pairs_mut().append_pair("state", &query["state"]);
    if person == "nobody" {
        back.query_pairs_mut().append_pair("error", "access_denied");
    } else {
        let code = uuid::Uuid::new_v4().simple().to_string();
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("iss", &authority.issuer());
        authority.state().codes.insert(code, (person, query));
    }
    (StatusCode::FOUND, [("location", back.to_string())]).into_response()
}

/// The endpoint that takes tokens back.
pub(super) async fn take_back(State(authority): State<Authority>, body: String) -> StatusCode {
    let mut state = authority.state();
    let token = form(&body)["token"].clone();
    let refresh = Some(token.clone());
    for known in &mut state.tokens {
        known.is_revoked |= known.value == token || known.refresh == refresh;
    }
    state.taken_back.push(token);
    StatusCode::OK
}

/// The person of a code or of a refresh token, which is good for one use.
pub(super) fn person(state: &mut Inner, form: &BTreeMap<String, String>) -> Option<String> {
    match form["grant_type"].as_str() {
        "authorization_code" => {
            let (person, asked) = state.codes.remove(&form["code"])?;
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
            let is_same = asked["code_challenge"] == challenge
                && asked["code_challenge_method"] == "S256"
                && asked["redirect_uri"] == form["redirect_uri"]
                && asked["resource"] == form["resource"];
            is_same.then_some(person)
        }
        "refresh_token" => {
            let refresh = &form["refresh_token"];
            let mut tokens = state.tokens.iter_mut();
            let token = tokens.find(|token| token.refresh.as_ref() == Some(refresh))?;
            if token.is_revoked && token.ends.is_none() {
                return None;
            }
            token.refresh = None;
            Some(token.client.clone())
        }
        _ => None,
    }
}
