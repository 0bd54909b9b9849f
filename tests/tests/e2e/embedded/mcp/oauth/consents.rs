//! Servers that people consent to: each person's tools act with the person's own token, whatever dies, and nobody gets the
//! token of another person.

use std::{fs, time::Duration};

use everturn_tests::{
    events::{data, error, result},
    model::Model,
    stack::{Process, Stack},
    wait,
};
use reqwest::{
    Client,
    header::{COOKIE, HeaderMap, HeaderValue},
};
use serde_json::{Value, json};

use super::{
    ID, SECRET, assert_calls,
    authority::{Authority, Token},
    config, eight_calls, one_call,
};
use crate::embedded::{
    callers::{ended, turn_of},
    codec::{KEYS, TABLE, key},
    keys::{AUTH, create},
    mcp::calling,
};

const SECRET_VARIABLE: &str = "NOTES_SECRET";

/// A stack whose server people consent to.
struct People {
    stack: Stack,
    authority: Authority,
    ring: String,
}

/// The answer of the gateway's page.
struct Page {
    status: u16,
    text: String,
}

impl People {
    async fn new(model: Model) -> Self {
        let authority = Authority::start(&[(ID, SECRET)]).await;
        let stack = Stack::new(model).await;
        let client = format!(
            "grant = \"authorization_code\"\nclient_id = \"{ID}\"\nclient_secret_env = \"{SECRET_VARIABLE}\""
        );
        let tables = authority.tables("notes", "", &client);
        let config = config(&["notes"], &[authority.allowed()], &tables);
        stack.configure(&format!("{AUTH}\n{TABLE}\n{config}"));
        Self {
            stack,
            authority,
            ring: key("first"),
        }
    }

    fn environment(&self) -> [(&str, &str); 2] {
        [(KEYS, &self.ring), (SECRET_VARIABLE, SECRET)]
    }

    fn worker(&self) -> Process {
        self.stack.spawn(&["worker"], "worker", &self.environment())
    }

    async fn start(&self) -> (Process, Process) {
        let gateway = self.stack.gateway_with(&self.environment()).await;
        (self.worker(), gateway)
    }

    async fn key(&self, tenant: &str, owner: &str) -> String {
        let args = ["--tenant", tenant, "--owner", owner];
        create(&self.stack, &args).await
    }

    fn api(&self, path: &str) -> String {
        format!("{}/api/v1/tool-servers{path}", self.stack.url())
    }

    /// Begins a consent, and returns the address for the browser.
    async fn begin(&self, key: &str) -> String {
        let answer = Client::new()
            .post(self.api("/notes/consent"))
            .bearer_auth(key);
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
        let begun: Value = answer.json().await.unwrap();
        begun["authorization_url"].as_str().unwrap().to_owned()
    }

    /// Consents as this person at the authorization server.
    async fn consent(&self, key: &str, person: &str) {
        let question = browser(person).get(self.begin(key).await);
        let page = self.finish(&page(question).await, None).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(
            page.text.contains("You may close this window"),
            "{}",
            page.text
        );
    }

    /// Runs a turn, in which the tool acts as this person at the server.
    async fn acts_as(&self, key: &str, person: &str) {
        assert_eq!(result(&self.turn(key).await, "notes__whoami"), person);
    }

    /// Returns the key of a person who has consented, and whose tool acts.
    async fn connected_ann(&self) -> String {
        let ann = self.key("acme", "ann").await;
        self.consent(&ann, "ann-at-notes").await;
        self.acts_as(&ann, "ann-at-notes").await;
        ann
    }

    /// Returns the content of the database and of the logs, in which no token is.
    async fn stored_without_tokens(&self) -> String {
        let stored = self.stored().await;
        for Token { value, .. } in self.authority.tokens() {
            assert!(!stored.contains(&value) && !stored.contains(&hexadecimal(&value)));
        }
        stored
    }

    /// Sends the form of the page.
    async fn finish(&self, question: &Page, cookie: Option<&str>) -> Page {
        assert_eq!(question.status, 200, "{}", question.text);
        self.send(&form(&question.text), cookie).await
    }

    async fn send(&self, form: &[(String, String)], cookie: Option<&str>) -> Page {
        let url = format!("{}/oauth/callback", self.stack.url());
        let body: String = reqwest::Url::parse_with_params("http://form/", form)
            .unwrap()
            .query()
            .unwrap_or_default()
            .to_owned();
        let mut request = Client::new()
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .body(body);
        if let Some(cookie) = cookie {
            request = request.header(COOKIE, cookie);
        }
        page(request).await
    }

    /// The time of the consent that the person sees.
    async fn consented(&self, key: &str) -> Value {
        let answer = Client::new().get(self.api("")).bearer_auth(key);
        let listed: Value = answer.send().await.unwrap().json().await.unwrap();
        assert_eq!(listed["servers"][0]["name"], "notes", "{listed}");
        listed["servers"][0]["consented_at"].clone()
    }

    async fn turn(&self, key: &str) -> Vec<Value> {
        turn_of(&self.stack, key, "clerk").await.1
    }

    /// Checks that a turn of the person is told that a consent is missing.
    async fn assert_no_consent(&self, key: &str) {
        let events = self.turn(key).await;
        let error = error(&events, "notes__whoami");
        assert!(error.contains("mcp_consent_needed"), "{error}");
        assert!(error.contains("was not called"), "{error}");
    }

    /// Everything that the database and the logs have.
    async fn stored(&self) -> String {
        let mut stored = self.stack.dump().await;
        for log in ["worker.log", "gateway.log"] {
            stored += &fs::read_to_string(self.stack.path(log)).unwrap();
        }
        stored
    }
}

/// The browser of a person.
fn browser(person: &str) -> Client {
    let mut headers = HeaderMap::new();
    headers.insert("x-person", HeaderValue::from_str(person).unwrap());
    Client::builder().default_headers(headers).build().unwrap()
}

async fn page(request: reqwest::RequestBuilder) -> Page {
    let answer = request.send().await.unwrap();
    Page {
        status: answer.status().as_u16(),
        text: answer.text().await.unwrap(),
    }
}

/// The hidden fields of a page.
fn form(page: &str) -> Vec<(String, String)> {
    let fields = page.split("name=\"").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("\" value=\"")?;
        let (value, _) = rest.split_once('"')?;
        Some((name.to_owned(), value.to_owned()))
    });
    fields.collect()
}

fn hexadecimal(text: &str) -> String {
    hex::encode_upper(text)
}

#[tokio::test]
async fn tools_act_for_the_person_who_consented_alone() {
    let people = People::new(calling(one_call()).await).await;
    let running = people.start().await;
    let (ann, bob) = (
        people.key("acme", "ann").await,
        people.key("acme", "bob").await,
    );
    let other_ann = people.key("globex", "ann").await;
    people.assert_no_consent(&ann).await;
    assert_eq!(people.consented(&ann).await, Value::Null);
    people.consent(&ann, "ann-at-notes").await;
    assert!(people.consented(&ann).await.is_string());
    people.acts_as(&ann, "ann-at-notes").await;
    for foreign in [&bob, &other_ann] {
        people.assert_no_consent(foreign).await;
        assert_eq!(people.consented(foreign).await, Value::Null);
    }
    people.consent(&bob, "bob-at-notes").await;
    people.acts_as(&bob, "bob-at-notes").await;
    people.acts_as(&ann, "ann-at-notes").await;
    let calls = ["ann-at-notes", "bob-at-notes", "ann-at-notes"];
    assert_eq!(people.authority.calls(), calls);
    // A credential of nobody consents to nothing, and its conversations use nobody's token.
    let nobody = create(&people.stack, &["--tenant", "acme"]).await;
    let refused = Client::new()
        .post(people.api("/notes/consent"))
        .bearer_auth(&nobody);
    let refused = refused.send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(
        refused
            .text()
            .await
            .unwrap()
            .contains("consent_needs_person")
    );
    people.assert_no_consent(&nobody).await;
    // What dies loses no consent.
    let (worker, gateway) = running;
    worker.kill().await;
    gateway.kill().await;
    let _running = people.start().await;
    people.acts_as(&ann, "ann-at-notes").await;
    assert_eq!(people.authority.tokens().len(), 2);
    let stored = people.stored_without_tokens().await;
    for action in ["consent_begun", "consent_given"] {
        assert!(stored.contains(action), "{action}");
    }
}

#[tokio::test]
async fn a_person_ends_the_consent_and_the_tokens_with_it() {
    let people = People::new(calling(one_call()).await).await;
    let _running = people.start().await;
    let ann = people.connected_ann().await;
    for _ in 0..2 {
        let end = Client::new()
            .delete(people.api("/notes/consent"))
            .bearer_auth(&ann);
        assert_eq!(end.send().await.unwrap().status(), 204);
    }
    let taken_back = people.authority.taken_back();
    assert_eq!(taken_back.len(), 1, "{taken_back:?}");
    assert!(taken_back[0].starts_with("refresh."), "{taken_back:?}");
    // The connection of the person is still open at the worker, and is used no more.
    people.assert_no_consent(&ann).await;
    assert_eq!(people.authority.calls().len(), 1);
    // The next consent may be to another account.
    people.consent(&ann, "ann-at-work").await;
    people.acts_as(&ann, "ann-at-work").await;
    let unknown = Client::new()
        .delete(people.api("/mail/consent"))
        .bearer_auth(&ann);
    assert_eq!(unknown.send().await.unwrap().status(), 404);
    let stored = people.stored().await;
    assert!(stored.contains("consent_ended"));
}

#[tokio::test]
async fn a_way_back_is_good_once_for_the_person_who_began() {
    let people = People::new(calling(one_call()).await).await;
    let _running = people.start().await;
    let (ann, bob) = (
        people.key("acme", "ann").await,
        people.key("acme", "bob").await,
    );
    let question = page(browser("ann-at-notes").get(people.begin(&ann).await)).await;
    assert!(
        question.text.contains("<b>ann</b> (tenant <b>acme</b>)"),
        "{}",
        question.text
    );
    // The page asks: the way back alone stores nothing.
    assert_eq!(people.consented(&ann).await, Value::Null);
    let open = Client::new().post(format!("{}/api/v1/auth/session", people.stack.url()));
    let opened = open.bearer_auth(&bob).send().await.unwrap();
    let cookie = opened.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let refused = people.finish(&question, Some(&cookie)).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert!(
        refused.text.contains("consent_of_other"),
        "{}",
        refused.text
    );
    assert!(people.authority.tokens().is_empty(), "the code is not used");
    let done = people.finish(&question, None).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let replayed = people.finish(&question, None).await;
    assert_eq!(replayed.status, 400);
    assert!(
        replayed.text.contains("consent_state_refused"),
        "{}",
        replayed.text
    );
    let foreign = [
        ("state".to_owned(), "guess".to_owned()),
        ("code".to_owned(), "c".to_owned()),
    ];
    assert_eq!(people.send(&foreign, None).await.status, 400);
    assert_eq!(people.authority.tokens().len(), 1);
    // A code of another way is good for nothing: its verifier is another one.
    let stolen = page(browser("bob-at-notes").get(people.begin(&bob).await)).await;
    let mine = page(browser("ann-at-notes").get(people.begin(&ann).await)).await;
    let mut mixed = form(&mine.text);
    mixed[1] = form(&stolen.text)[1].clone();
    assert_eq!(mixed[1].0, "code");
    let refused = people.send(&mixed, None).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(refused.text.contains("consent_refused"), "{}", refused.text);
    // A person who does not allow the access.
    let denied = page(browser("nobody").get(people.begin(&bob).await)).await;
    assert_eq!(denied.status, 409);
    assert!(denied.text.contains("was not allowed"), "{}", denied.text);
    assert_eq!(people.consented(&bob).await, Value::Null);
    assert_eq!(people.authority.tokens().len(), 1);
}

#[tokio::test]
async fn tokens_are_renewed_once_by_all_workers() {
    let people = People::new(eight_calls().await).await;
    people.authority.tokens_hold(Duration::from_secs(2));
    let _running = people.start().await;
    let _second = people.worker();
    let ann = people.key("acme", "ann").await;
    people.consent(&ann, "ann-at-notes").await;
    wait::until("the token has ended", || async {
        people.authority.has_ended().then_some(())
    })
    .await;
    people.authority.tokens_hold(Duration::from_secs(3600));
    people.authority.refreshes_after(Duration::from_millis(500));
    let turns = (0..3).map(|_| people.turn(&ann));
    for events in futures::future::join_all(turns).await {
        assert_calls(&events, 8, "ann-at-notes");
    }
    // The authorization server takes a refresh token once.
    let grants: Vec<_> = people
        .authority
        .tokens()
        .iter()
        .map(|it| it.form["grant_type"].clone())
        .collect();
    assert_eq!(grants, ["authorization_code", "refresh_token"]);
    people.stored_without_tokens().await;
}

#[tokio::test]
async fn a_consent_that_ended_at_its_server_is_asked_for_again() {
    let people = People::new(calling(one_call()).await).await;
    let _running = people.start().await;
    let ann = people.connected_ann().await;
    people.authority.revoke();
    let (conversation, events) = turn_of(&people.stack, &ann, "clerk").await;
    let error = error(&events, "notes__whoami");
    assert!(error.contains("mcp_consent_needed"), "{error}");
    assert_eq!(
        data(&ended(&people.stack, &ann, &conversation).await, "observe").len(),
        1
    );
    assert_eq!(people.consented(&ann).await, Value::Null);
    people.assert_no_consent(&ann).await;
    people.consent(&ann, "ann-at-notes").await;
    people.acts_as(&ann, "ann-at-notes").await;
    assert_eq!(
        json!(people.authority.calls()),
        json!(["ann-at-notes", "ann-at-notes"])
    );
}
