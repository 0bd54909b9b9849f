//! A tenant that attacks a gateway in every way at once, for as long as it is not dropped: floods of requests and turns,
//! readers that read nothing, connections that never end a request, bodies as large and as deep as they may be, and keys that
//! do not exist.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

/// How hard it attacks.
#[derive(Debug, Clone, Copy)]
pub struct Force {
    /// Requests of each kind in a second: turns, pages, bodies, keys that do not exist.
    pub requests_per_second: u32,
    /// Connections of each kind: readers that read nothing, and requests without an end.
    pub connections: usize,
}

/// Whom it attacks.
#[derive(Debug, Clone)]
pub struct Target {
    /// The gateway.
    pub address: SocketAddr,
    /// A key of the tenant.
    pub key: String,
    /// A conversation of the tenant, with events to read.
    pub conversation: String,
}

/// How often each kind of request was answered with each status. 0 is no answer.
pub type Answers = BTreeMap<(&'static str, u16), u64>;

/// An attack that goes on.
pub struct Attack {
    answers: Arc<Mutex<Answers>>,
    _tasks: JoinSet<()>,
}

/// Bytes of a body: the gateway's limit is a little more than six times the largest message.
const BODY_BYTES: usize = 1024 * 1024;
/// Nesting of the JSON of a body.
const DEPTH: usize = 8 * 1024;
/// Requests of one kind that are on their way at the same time. What a gateway holds back slows the flood.
const AT_ONCE: usize = 16;
/// The time after which a flood gives a request up.
const GIVEN_UP: Duration = Duration::from_secs(20);
/// The time between two bytes of a request that has no end.
const DRIP: Duration = Duration::from_secs(1);
/// The time after which a reader that reads nothing comes again.
const AGAIN: Duration = Duration::from_secs(15);

impl Attack {
    /// Begins.
    pub fn begin(target: &Target, force: Force) -> Self {
        let answers = Arc::<Mutex<Answers>>::default();
        let mut tasks = JoinSet::new();
        let http = Client::builder().timeout(GIVEN_UP).build().unwrap();
        for (kind, request) in KINDS {
            let every = Duration::from_secs(1) / force.requests_per_second
                * u32::try_from(AT_ONCE).unwrap();
            for _ in 0..AT_ONCE {
                let (http, target) = (http.clone(), target.clone());
                let answers = Arc::clone(&answers);
                tasks.spawn(async move {
                    let mut ticks = interval(every);
                    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                    loop {
                        ticks.tick().await;
                        let status = send(request(&http, &target)).await;
                        *answers.lock().unwrap().entry((kind, status)).or_default() += 1;
                    }
                });
            }
        }
        for number in 0..force.connections {
            tasks.spawn(read_nothing(target.clone()));
            tasks.spawn(never_end(target.clone(), number));
        }
        Self {
            answers,
            _tasks: tasks,
        }
    }

    /// What was answered so far.
    pub fn answers(&self) -> Answers {
        self.answers.lock().unwrap().clone()
    }
}

type Kind = (&'static str, fn(&Client, &Target) -> RequestBuilder);

const KINDS: [Kind; 4] = [
    ("turn", |http, target| {
        let id = uuid::Uuid::new_v4();
        let url = target.url(&format!("loud-{id}/messages"));
        let body = json!({"content": "Speak.", "create": {}});
        http.post(url).bearer_auth(&target.key).json(&body)
    }),
    ("page", |http, target| {
        let url = target.url(&format!("{}/events", target.conversation));
        http.get(url).bearer_auth(&target.key)
    }),
    ("body", |http, target| {
        let url = target.url(&format!("{}/messages", target.conversation));
        let text = "\\u0041".repeat(BODY_BYTES / 6);
        let (open, close) = ("[".repeat(DEPTH), "]".repeat(DEPTH));
        let body = format!("{{\"content\":\"{text}\",\"x\":{open}{close}}}");
        let request = http.post(url).bearer_auth(&target.key);
        request
            .header("content-type", "application/json")
            .body(body)
    }),
    ("key", |http, target| {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let rest = &target.key["evk_0011223344556677".len()..];
        let url = target.url(&target.conversation);
        http.get(url)
            .bearer_auth(format!("evk_{}{rest}", &random[..16]))
    }),
];

impl Target {
    fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1/agent/conversations/{path}", self.address)
    }

    /// The request line and the first headers of a request, without the end of the head.
    pub fn head(&self, method: &str, path: &str) -> String {
        let (address, key) = (self.address, &self.key);
        format!(
            "{method} /api/v1/agent/conversations/{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n"
        )
    }

    /// A connection whose receiver takes little.
    pub async fn connect(&self) -> Option<TcpStream> {
        let socket = TcpSocket::new_v4().ok()?;
        socket.set_recv_buffer_size(4096).ok()?;
        socket.connect(self.address).await.ok()
    }
}

/// Sends a request, and reads its answer to the end.
async fn send(request: RequestBuilder) -> u16 {
    let Ok(answer) = request.send().await else {
        return 0;
    };
    let status = answer.status();
    let _body = answer.bytes().await;
    status.as_u16()
}

/// Opens the stream of the conversation from its beginning, reads nothing of it, and comes again.
async fn read_nothing(target: Target) {
    let path = format!("{}/events/stream", target.conversation);
    let request = format!("{}\r\n", target.head("GET", &path));
    loop {
        if let Some(mut connection) = target.connect().await {
            let _closed = connection.write_all(request.as_bytes()).await;
            sleep(AGAIN).await;
        } else {
            sleep(DRIP).await;
        }
    }
}

/// Sends a head or a body a byte at a time, and never ends it.
async fn never_end(target: Target, number: usize) {
    let begun = if number.is_multiple_of(2) {
        format!("{}x-slow: ", target.head("GET", ""))
    } else {
        let head = target.head("POST", "");
        format!("{head}content-type: application/json\r\ncontent-length: 100000\r\n\r\n{{")
    };
    loop {
        if let Some(mut connection) = target.connect().await {
            let mut sent = connection.write_all(begun.as_bytes()).await.is_ok();
            while sent {
                sleep(DRIP).await;
                let write = timeout(DRIP, connection.write_all(b" "));
                sent = !matches!(write.await, Ok(Err(_)));
            }
        }
        sleep(DRIP).await;
    }
}

/// How many requests were let through, and how many were refused for what they are or because there were too many.
pub fn sums(answers: &Answers) -> (u64, u64) {
    let is_good = |status: u16| StatusCode::from_u16(status).is_ok_and(|it| it.is_success());
    let sum = |good: bool| {
        let of = answers
            .iter()
            .filter(|((_, status), _)| is_good(*status) == good);
        of.map(|(_, count)| count).sum()
    };
    (sum(true), sum(false))
}
